/**
 * Disk images with a real Linux for guests of tests: GRUB, the kernel of Debian's cloud images and busybox. They hold no file
 * system; GRUB finds kernel and initramfs by their sectors.
 *
 * The guest sets itself up from the seed image as cloud-init does: host name, network and what is to run at each boot. Its port 80 answers what it is (`/cgi-bin/describe`)
 * and runs the shell script that is sent to `/cgi-bin/run`; its port 7 is an echo. On its screen
 * is a shell, of which its serial port says when it is there.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const cacheFolder = fileURLToPath(new URL('../../../.cache/guest-image', import.meta.url));
const sectorBytes = 512;
/** GRUB's own sectors end before it. */
const kernelSector = 2_048;

/** Files of Debian packages, which are not installed: a kernel would become the next one that this machine boots. */
function unpackPackages(): string {
  if (existsSync(cacheFolder)) return cacheFolder;
  const folder = `${cacheFolder}.${process.pid}`;
  mkdirSync(folder, { recursive: true });
  try {
    const depends = execFileSync('apt-cache', ['depends', 'linux-image-cloud-amd64'], { encoding: 'utf8' });
    const kernel = /Depends: (linux-image-\S+)/.exec(depends)?.[1];
    if (kernel === undefined)
      throw new Error('apt knows no kernel of linux-image-cloud-amd64: run apt-get update');
    const names = [kernel, 'busybox-static', 'grub-common', 'grub-pc-bin'];
    execFileSync('apt-get', ['download', '-qq', ...names], { cwd: folder, stdio: 'ignore' });
    for (const file of readdirSync(folder)) {
      execFileSync('dpkg-deb', ['-x', file, '.'], { cwd: folder });
      rmSync(join(folder, file));
    }
    renameSync(folder, cacheFolder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return cacheFolder;
}

/** A file of a package; from Debian 13 on all of them are under `usr`. */
const inPackage = (path: string): string =>
  [join(unpackPackages(), path), join(unpackPackages(), 'usr', path)].find(existsSync)!;

/** The program `busybox`, whose `ping` needs no package. */
export const findBusybox = (): string => inPackage('bin/busybox');

/** Writes an image that boots and says that its image is `name`. */
export function writeLinuxImage(file: string, name: string): void {
  const root = unpackPackages();
  const grub = join(root, 'usr/lib/grub/i386-pc');
  const kernel = readFileSync(
    join(root, 'boot', readdirSync(join(root, 'boot')).find((one) => one.startsWith('vmlinuz'))!),
  );
  const initramfs = packInitramfs();
  const kernelSectors = Math.ceil(kernel.length / sectorBytes);
  const initramfsSector = kernelSector + kernelSectors;
  const initramfsSectors = Math.ceil(initramfs.length / sectorBytes);
  writeFileSync(
    `${file}.cfg`,
    `linux (hd0)${kernelSector}+${kernelSectors} quiet console=tty0 panic=-1 image=${name}
initrd (hd0)${initramfsSector}+${initramfsSectors}
boot
`,
  );
  const args = ['-O', 'i386-pc', '-d', grub, '-p', '/', '-c', `${file}.cfg`, '-o', `${file}.core`];
  execFileSync(join(root, 'usr/bin/grub-mkimage'), [...args, 'biosdisk', 'linux']);
  const disk = Buffer.alloc((initramfsSector + initramfsSectors) * sectorBytes);
  readFileSync(join(grub, 'boot.img')).copy(disk, 0);
  readFileSync(`${file}.core`).copy(disk, sectorBytes);
  kernel.copy(disk, kernelSector * sectorBytes);
  initramfs.copy(disk, initramfsSector * sectorBytes);
  writeFileSync(`${file}.raw`, disk);
  execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', `${file}.raw`, file]);
  for (const end of ['cfg', 'core', 'raw']) rmSync(`${file}.${end}`);
}

/** What a guest answers to `describe`. */
export interface LinuxFacts {
  image: string;
  hostname: string;
  vcpus: number;
  /** What the kernel left of it. */
  memoryMb: number;
  diskGb: number;
  /** Another one at each boot. */
  boot: string;
}

const init = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module; done
mount -t iso9660 -o ro $(findfs LABEL=cidata) /seed
# The boot hook of the vendor data, which has no double quotes.
printf '%b' "$(sed -n 's/.*boothook","content":"#cloud-boothook\\\\n\\([^"]*\\)".*/\\1/p' /seed/vendor-data)" | sh
hostname $(sed 's/.*"local-hostname":"\\([^"]*\\)".*/\\1/' /seed/meta-data)
ip link set lo up
# A line for each NIC: its MAC, its addresses, its routes.
sed 's/"match":/\\n/g' /seed/network-config | grep '"macaddress"' | while read -r line; do
  mac=$(echo "$line" | sed 's/.*"macaddress":"\\([^"]*\\)".*/\\1/')
  for device in /sys/class/net/*; do
    [ "$(cat $device/address)" = "$mac" ] || continue
    nic=$(basename $device)
    ip link set $nic up
    for address in $(echo "\${line%%\\"routes\\"*}" | grep -o '"[0-9a-f.:]*/[0-9]*"' | tr -d '"'); do
      ip addr add $address dev $nic
    done
    for gateway in $(echo "$line" | grep -o '"via":"[^"]*"' | cut -d'"' -f4); do
      ip route add default via $gateway dev $nic
    done
  done
done
nc -ll -p 7 -e cat &
httpd -h /www
echo guest is up > /dev/ttyS0
while true; do setsid cttyhack sh; done
`;

const describe = `#!/bin/sh
printf 'Content-Type: application/json\\r\\n\\r\\n'
printf '{"image":"%s","hostname":"%s","vcpus":%s,"memoryMb":%s,"diskGb":%s,"boot":"%s"}' \\
  "$(sed 's/.*image=//' /proc/cmdline)" "$(hostname)" "$(nproc)" "$(awk '/MemTotal/ {print int($2/1024)}' /proc/meminfo)" \\
  "$(awk '{print int($1/2097152)}' /sys/block/vda/size)" "$(cat /proc/sys/kernel/random/boot_id)"
`;

/** busybox of Debian has none. */
const chpasswd = `#!/bin/sh
read -r line; [ "$1" = -e ] && echo "$line:1::::::" > /etc/shadow
`;

const runScript = `#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
head -c $CONTENT_LENGTH | sh 2>&1
`;

const modules = ['virtio_pci', 'virtio_net', 'virtio_blk', 'isofs', '8021q'];

function packInitramfs(): Buffer {
  const files = new Map<string, { mode: number; content: Buffer }>();
  const add = (path: string, mode: number, content: Buffer | string = '') =>
    files.set(path, { mode, content: Buffer.from(content) });
  for (const folder of ['bin', 'dev', 'proc', 'sys', 'seed', 'modules', 'www', 'www/cgi-bin', 'etc'])
    add(folder, 0o040755);
  add('init', 0o100755, init);
  add('etc/shadow', 0o100600, 'root:*:1::::::\n');
  add('bin/chpasswd', 0o100755, chpasswd);
  add('bin/busybox', 0o100755, readFileSync(findBusybox()));
  add('www/cgi-bin/describe', 0o100755, describe);
  add('www/cgi-bin/run', 0o100755, runScript);
  const order: string[] = [];
  const built = inPackage('lib/modules');
  const found = new Map(
    readdirSync(built, { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.ko(\.xz)?$/.test(path))
      .map((path) => [basename(path).split('.')[0]!.replaceAll('-', '_'), path]),
  );
  const load = (name: string) => {
    const path = found.get(name);
    // Debian 13 has some in the kernel itself, and compresses the others.
    if (path === undefined || order.includes(`${name}.ko`)) return;
    const file = join(built, path);
    const content = path.endsWith('.xz') ? execFileSync('xz', ['-dc', file]) : readFileSync(file);
    const depends = /\0depends=([^\0]*)\0/.exec(content.toString('latin1'))?.[1] ?? '';
    for (const other of depends.split(',')) if (other !== '') load(other);
    order.push(`${name}.ko`);
    add(`modules/${name}.ko`, 0o100644, content);
  };
  for (const name of modules) load(name);
  add('modules/order', 0o100644, `${order.join('\n')}\n`);
  return packCpio(files);
}

/** An archive of the kind that the kernel unpacks: cpio "newc". */
function packCpio(files: ReadonlyMap<string, { mode: number; content: Buffer }>): Buffer {
  const parts: Buffer[] = [];
  const pad = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
  const put = (path: string, inode: number, mode: number, content: Buffer) => {
    const fields = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, path.length + 1, 0];
    const head = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${path}\0`;
    parts.push(pad(Buffer.from(head)), pad(content));
  };
  let inode = 1;
  for (const [path, { mode, content }] of files) put(path, inode++, mode, content);
  put('TRAILER!!!', 0, 0, Buffer.alloc(0));
  return Buffer.concat(parts);
}
