/**
 * A libvirtd of its own for tests, with QEMU in software: in namespaces, with its folders on tmpfs, so that it meets no
 * other libvirtd of the machine and leaves nothing behind. Needs root.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Why there can be none here, or false. */
export function whyNoLibvirt(): string | false {
  if (process.getuid?.() !== 0) return 'needs root';
  const programs = [
    '/usr/sbin/libvirtd',
    '/usr/bin/virsh',
    '/usr/bin/qemu-system-x86_64',
    '/usr/bin/genisoimage',
    '/usr/sbin/ebtables-nft',
  ];
  const missing = programs.filter((file) => !existsSync(file));
  return missing.length > 0 ? `needs ${missing.join(', ')}` : false;
}

export type LibvirtWorld = Awaited<ReturnType<typeof createLibvirtWorld>>;

const sectorBytes = 512;

/**
 * Starts it, with a pool that holds the images `tiny` and `other`, disks that hold their names and can't boot, and a bridge that leads
 * nowhere. With `hasGuardHook` it has the hook that holds what filters don't see.
 */
export async function createLibvirtWorld({ hasGuardHook = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-libvirt-'));
  const poolFolder = join(folder, 'pool');
  await mkdir(poolFolder);
  await mkdir(join(folder, 'run'));
  for (const image of ['tiny', 'other']) {
    const file = join(poolFolder, `${image}.qcow2`);
    await writeFile(join(folder, 'raw'), image.padEnd(sectorBytes, '\0'));
    execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', join(folder, 'raw'), file]);
    execFileSync('qemu-img', ['resize', '-q', file, '16M']);
  }
  // Nothing starts from it.
  await writeFile(join(poolFolder, 'boot.iso'), Buffer.alloc(64 * 1024));
  await writeFile(
    join(folder, 'libvirtd.conf'),
    `unix_sock_dir = "${folder}/run"\nauth_unix_rw = "none"\nlog_outputs = "4:file:${folder}/log"\n`,
  );
  await writeFile(join(folder, 'start.sh'), startScript(folder, hasGuardHook));
  const child = spawn(
    'unshare',
    ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', join(folder, 'start.sh')],
    // Not a pipe: it would not be read while `virsh` is waited for.
    { stdio: 'ignore' },
  );
  const uri = `qemu+unix:///system?socket=${folder}/run/libvirt-sock`;
  const virsh = (...args: string[]) =>
    execFileSync('virsh', ['-q', '-c', uri, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const world = {
    uri,
    storagePool: 'guests',
    bridge: 'br0',
    /** The argument list that runs `argv` in its network namespace. */
    inside: (argv: readonly string[]) => ['nsenter', `--net=/proc/${child.pid}/ns/net`, ...argv],
    /** A connection to a socket of its file system. */
    connect: (path: string) => connect(`/proc/${child.pid}/root${path}`),
    /** Gives this node and another one a bridge of this name, joined by a pair of ports as by the provider's VLAN. */
    joinBridges(other: { inside: (argv: readonly string[]) => string[]; pid: number }, bridge: string) {
      const port = `up-${bridge}`;
      const run = (inside: typeof world.inside, text: string) => {
        const [program, ...args] = inside(text.split(' '));
        execFileSync(program!, args);
      };
      run(world.inside, `ip link add ${port} type veth peer name ${port} netns ${other.pid}`);
      for (const inside of [world.inside, other.inside])
        for (const command of [
          `ip link add ${bridge} type bridge`,
          `ip link set ${bridge} up`,
          `ip link set ${port} master ${bridge} up`,
        ])
          run(inside, command);
    },
    pid: child.pid!,
    /** The pool's folder. */
    poolFolder,
    virsh,
    /** Makes a pool of 2 MiB, a file system of its own, with the image `tiny`; resolves with its folder. */
    async addSmallPool(name: string): Promise<string> {
      const target = join(folder, name);
      await mkdir(target);
      const mount = ['mount', '-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', target];
      execFileSync('nsenter', [`--mount=/proc/${child.pid}/ns/mnt`, ...mount]);
      const outside = `/proc/${child.pid}/root${target}`;
      await copyFile(join(poolFolder, 'tiny.qcow2'), join(outside, 'tiny.qcow2'));
      virsh('pool-create-as', name, 'dir', '--target', target);
      return outside;
    },
    /** What is written at the beginning of a disk of the pool, also of one that is in use. */
    readDisk(volume: string): string {
      const [input, output] = [join(poolFolder, volume), join(folder, 'sector')];
      const size = [`bs=${sectorBytes}`, 'count=1'];
      execFileSync('qemu-img', [
        'dd',
        '-U',
        '-f',
        'qcow2',
        '-O',
        'raw',
        ...size,
        `if=${input}`,
        `of=${output}`,
      ]);
      return readFileSync(output, 'utf8').replaceAll('\0', '');
    },
    async [Symbol.asyncDispose]() {
      await end(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await untilItAnswers(() => virsh('list'), child);
    virsh('pool-create-as', 'guests', 'dir', '--target', poolFolder);
    if (hasGuardHook) {
      const file = join(folder, 'network.xml');
      await writeFile(file, guardNetwork);
      virsh('net-define', file);
    }
    // The first time it is asked it tries out every emulator, which takes a busy machine a while.
    virsh('capabilities');
    return world;
  } catch (error) {
    const said = await readFile(join(folder, 'log'), 'utf8').catch(() => '');
    await world[Symbol.asyncDispose]();
    throw new Error(`libvirtd did not start: ${said.slice(-2_000)}`, { cause: error });
  }
}

/** As `docs/operating/nodes.md` has it. */
const guardNetwork =
  "<network><name>svc-guard</name><forward mode='bridge'/><bridge name='svc-guard'/></network>";
const guardHook = fileURLToPath(new URL('../libvirt/guard-hook', import.meta.url));

function startScript(folder: string, hasGuardHook: boolean): string {
  const folders = '/run/libvirt /run/lock /var/lib/libvirt /var/log/libvirt /etc/libvirt /var/cache/libvirt';
  return `set -e
mount --make-rprivate /
for folder in ${folders}; do mkdir -p $folder; mount -t tmpfs tmpfs $folder; done
# Debian's libvirt resolves its default user and group before it reads qemu.conf. Only libvirt-daemon-system creates
# them, and nothing here runs as them, so they exist in this mount namespace alone.
for list in passwd group; do
  cp /etc/$list ${folder}/$list
  grep -q '^libvirt-qemu:' ${folder}/$list || sed -n 's/^nobody:\\|^nogroup:/libvirt-qemu:/p' /etc/$list >> ${folder}/$list
  mount --bind ${folder}/$list /etc/$list
done
cat > /etc/libvirt/qemu.conf <<END
user = "root"
group = "root"
security_driver = "none"
stdio_handler = "file"
cgroup_controllers = [ ]
remember_owner = 0
namespaces = [ ]
END
${hasGuardHook ? `install -D ${guardHook} /etc/libvirt/hooks/network.d/svc-guard` : ''}
# In software, as the emulators of a machine that can not virtualise: the behaviour of a nested /dev/kvm is not defined.
# A file that can't be written: with one that can, libvirt asks every emulator again before each definition.
if [ -e /dev/kvm ]; then
  touch ${folder}/kvm
  mount --bind ${folder}/kvm /dev/kvm
  mount -o remount,bind,ro /dev/kvm
fi
ip link set lo up
ip link add br0 type bridge
ip link set br0 up
# Bridges consult the rules of packets as well as those of frames.
for kind in iptables ip6tables; do echo 1 > /proc/sys/net/bridge/bridge-nf-call-$kind; done
# Not by exec: the first process of a PID namespace has to bury what the emulators leave, which a shell does.
libvirtd -f ${folder}/libvirtd.conf --pid-file ${folder}/libvirtd.pid
`;
}

async function untilItAnswers(ask: () => unknown, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + 180_000;
  for (;;) {
    try {
      ask();
      return;
    } catch (error) {
      if (Date.now() > deadline || child.exitCode !== null) throw error;
      await new Promise((wake) => setTimeout(wake, 100));
    }
  }
}

function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  // The first process of the PID namespace dies with it, and everything in the namespace with that.
  child.kill('SIGKILL');
  return ended;
}
