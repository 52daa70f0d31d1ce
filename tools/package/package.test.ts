// Slow: builds a Debian package twice and installs it on a scratch machine.
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pcapFile } from '#sensor/testing/capture-files.ts';
import { receiptFor, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { ethernetFrame, udp4 } from '#sensor/testing/frame-sender.ts';
import { buildDeb } from './build-deb.ts';
import { packagedPrograms } from './programs.ts';
import { type Bill, makeBill } from './software-bill.ts';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const unit = `${root}/packaging/svc-sensor/svc-sensor.service`;
const sensor = packagedPrograms.find((one) => one.name === 'svc-sensor')!;
const build = (folder: string) =>
  buildDeb(sensor, { root, folder, version: '0.1.0', epochSeconds: 1_767_225_600, compression: 'none' });

let folder: string;
let deb: string;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-package-test-'));
  deb = await build(join(folder, 'one'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function runTool(command: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

test('the same sources give the same package, byte for byte', async () => {
  const digest = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
  assert.equal(digest(await build(join(folder, 'two'))), digest(deb));
});

test('NET-9.5: the package holds what runs and nothing else: no tests, no other program, all of it owned by root', () => {
  const { stdout } = runTool('dpkg-deb', '-c', deb);
  const lines = stdout.trim().split('\n');
  const paths = lines.map((line) => line.split(/\s+/).at(-1)!);
  assert.ok(lines.every((line) => line.includes(' root/root ')));
  assert.deepEqual(
    paths.filter((path) => /\.(test|prove|bench)\.ts|\/testing\/|\/(monitor|operations|lab)\//.test(path)),
    [],
  );
  for (const wanted of [
    'sensor/collection/worker.ts',
    'sensor/kernel/counter.bpf.o',
    'sensor/kernel/filter.bpf.o',
    'node_modules/@koromix/',
    'bin/node',
  ])
    assert.ok(
      paths.some((path) => path.includes(`/usr/lib/svc-sensor/${wanted}`)),
      wanted,
    );
});

test('lintian finds no error in the package but what it says is meant, with the reason', (t) => {
  if (!existsSync('/usr/bin/lintian')) {
    assert.ok(!process.env.CI, 'this test needs lintian');
    t.diagnostic('left out: needs lintian');
    return;
  }
  // Only a package of a test is not compressed.
  const parts = ['data', 'control'].map((part) => `uses-no-compression-for-${part}-tarball`);
  // No error comes of the spelling within Node.js, which takes a third of the time.
  const options = ['--allow-root', '--dont-check-part=binaries/spelling', `--suppress-tags=${parts.join()}`];
  const { status, stdout } = runTool('lintian', ...options, deb);
  assert.equal(status, 0, stdout);
  const { stdout: said } = runTool(
    'sh',
    '-c',
    `dpkg-deb --fsys-tarfile ${deb} | tar xO ./usr/share/lintian/overrides/svc-sensor`,
  );
  assert.match(said, /^(# \w.+\nsvc-sensor: \S.+\n)+$/);
});

test('the package holds its bill of materials: every npm package in it and its Node.js, with the lockfile’s digests', () => {
  const extracted = join(folder, 'extracted');
  assert.equal(runTool('dpkg-deb', '-x', deb, extracted).status, 0);
  const documents = join(extracted, 'usr/share/doc/svc-sensor');
  const bill = JSON.parse(readFileSync(join(documents, 'sbom.cdx.json'), 'utf8')) as Bill;
  assert.deepEqual([bill.bomFormat, bill.specVersion], ['CycloneDX', '1.6']);
  assert.match(bill.serialNumber, /^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const library = join(extracted, 'usr/lib/svc-sensor');
  const inside = globSync('node_modules/{*,@*/*}/package.json', { cwd: library }).map((file) => {
    const { name, version } = JSON.parse(readFileSync(join(library, file), 'utf8')) as Record<string, string>;
    return `${name}@${version}`;
  });
  const listed = bill.components.map((one) => one['bom-ref']);
  assert.ok(inside.length > 3, `${inside.length} packages`);
  assert.deepEqual(listed.filter((ref) => !ref.startsWith('node@')).sort(), inside.sort());
  const node = bill.components.find((one) => one.name === 'node')!;
  const bytes = readFileSync(join(library, 'bin/node'));
  assert.equal(node.hashes[0]!.content, createHash('sha256').update(bytes).digest('hex'));
  const lock = JSON.parse(readFileSync(`${root}/package-lock.json`, 'utf8'));
  for (const { name, type, version, hashes, licenses, purl } of bill.components) {
    assert.equal(licenses.length, 1, name);
    if (type !== 'library') continue;
    const locked = lock.packages[`node_modules/${name}`];
    assert.equal(version, locked.version);
    assert.equal(`sha512-${Buffer.from(hashes[0]!.content, 'hex').toString('base64')}`, locked.integrity);
    assert.equal(decodeURIComponent(purl), `pkg:npm/${name}@${version}`);
  }
});

test('the bill of the whole project has all that npm itself lists, and nothing of development alone', (t) => {
  const { stdout } = runTool(
    'npm',
    'sbom',
    '--sbom-format=cyclonedx',
    '--omit=dev',
    '--package-lock-only',
    `--prefix=${root}`,
  );
  const bill = makeBill({ root, name: 'svc', version: '0.1.0', epochSeconds: 0, hasNode: false });
  const ours = new Map(bill.components.map((one) => [one['bom-ref'], one.hashes]));
  assert.ok(
    ours.size > 50 && ![...ours.keys()].some((ref) => /^(typescript|knip|@biomejs|chdb|@chdb)/.test(ref)),
  );
  // Debian 12's npm says that it does not know the command, with the exit code 0.
  if (!stdout.startsWith('{')) return t.diagnostic('not compared: this npm has no sbom command');
  const { components } = JSON.parse(stdout) as Bill;
  // npm leaves out what a development dependency needs as well, so its list may be the shorter one.
  assert.ok(components.length > 50);
  for (const one of components) assert.deepEqual(ours.get(one['bom-ref']), one.hashes, one['bom-ref']);
});

test('systemd understands the unit and finds it little exposed; it leaves the JavaScript engine its memory', (t) => {
  if (!existsSync('/usr/bin/systemd-analyze')) {
    assert.ok(!process.env.CI, 'this test needs systemd-analyze');
    t.diagnostic('left out: needs systemd-analyze');
    return;
  }
  // The program that it starts is not installed here.
  const text = readFileSync(unit, 'utf8');
  const copy = join(folder, 'svc-sensor.service');
  writeFileSync(copy, text.replaceAll('/usr/bin/svc-sensor', '/bin/true'));
  const verified = runTool('systemd-analyze', 'verify', '--man=no', copy);
  assert.deepEqual([verified.status, verified.stderr], [0, '']);
  const { stdout } = runTool('systemd-analyze', 'security', '--offline=true', '--no-pager', copy);
  const exposure = Number(/Overall exposure level[^:]*: ([\d.]+)/.exec(stdout)?.[1]);
  t.diagnostic(`exposure ${exposure}`);
  assert.ok(exposure <= 2.2, stdout);
  assert.match(text, /^Delegate=cpu io memory pids$/m);
  assert.doesNotMatch(text, /^MemoryDenyWriteExecute=(yes|true|1)/m);
  assert.match(text, /^CapabilityBoundingSet=CAP_NET_RAW$/m);
});

/** A machine of its own to install on: this one's files under an overlay, without the project and without npm's Node.js. */
async function startScratchMachine(t: TestContext) {
  const scratch = join(folder, 'machine');
  mkdirSync(scratch);
  const script = `set -e
    mount --make-rprivate /
    mount -t tmpfs tmpfs ${scratch}
    mkdir ${scratch}/upper ${scratch}/work ${scratch}/root
    mount -t overlay overlay -o lowerdir=/,upperdir=${scratch}/upper,workdir=${scratch}/work ${scratch}/root
    cd ${scratch}/root
    for hidden in /${root.split('/')[1]} /usr/local /root /opt; do [ ! -d ".$hidden" ] || mount -t tmpfs tmpfs ".$hidden"; done
    mount -t tmpfs tmpfs ./tmp && chmod 1777 ./tmp
    mount -t proc proc ./proc && mount --rbind /sys ./sys && mount --rbind /dev ./dev
    cp ${folder}/given/* ./tmp/
    rm -f ./usr/bin/npm ./usr/bin/node
    echo up
    exec sleep 600`;
  const holder = spawn('unshare', ['-m', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => holder.kill('SIGKILL'));
  const ended = new Promise((resolve) => holder.once('exit', resolve));
  const up = new Promise<string>((resolve) => holder.stdout!.once('data', (piece) => resolve(String(piece))));
  assert.equal(await Promise.race([up, ended]), 'up\n');
  const enter = [`--target=${holder.pid}`, '--mount', 'chroot', `${scratch}/root`];
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/nonexistent' };
  return {
    /** Asynchronous, because the monitor that it may talk to lives in this process. */
    run: (command: string) =>
      new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
        execFile('nsenter', [...enter, 'sh', '-c', command], { env }, (error, stdout, stderr) =>
          resolve({ status: error ? Number(error.code) : 0, stdout, stderr }),
        );
      }),
    start: (command: string): ChildProcess =>
      spawn('nsenter', [...enter, 'sh', '-c', `exec ${command}`], {
        env,
        stdio: ['ignore', 'ignore', 'pipe'],
      }),
  };
}

test('it installs with dpkg alone, and the sensor reads, enrols and runs as its own user with CAP_NET_RAW and nothing else', async (t) => {
  if (process.getuid?.() !== 0) {
    assert.ok(!process.env.CI, 'this test needs root');
    t.diagnostic('left out: needs root to install a package');
    return;
  }
  const given = join(folder, 'given');
  mkdirSync(given);
  copyFileSync(deb, join(given, 'svc-sensor.deb'));
  const frame = ethernetFrame(0x0800, udp4('192.0.2.1', '198.51.100.2', 100));
  writeFileSync(
    join(given, 'small.pcap'),
    pcapFile([{ bytes: frame, seconds: 1_700_000_000, nanoseconds: 0 }]),
  );
  const monitor = await startFakeMonitor(t, (request) => {
    const credential = `svcsen_5_${'s'.repeat(43)}`;
    if (request.path.endsWith('/enrol'))
      return { status: 201, body: { sensor_id: 5, site_id: 1, site_name: 'Site', credential } };
    if (request.path.endsWith('/plan'))
      return {
        status: 200,
        body: {
          plan_version: 1,
          application_usage_version: 1,
          application_protocol_version: 1,
          local_cidrs: [],
          protected_targets: [],
        },
      };
    return request.path.endsWith('/telemetry') ? receiptFor(request) : { status: 404 };
  });
  const machine = await startScratchMachine(t);
  const installed = await machine.run('dpkg --no-triggers -i /tmp/svc-sensor.deb');
  assert.equal(installed.status, 0, installed.stderr);
  assert.match(installed.stdout, /svc-sensor enrol && systemctl/);
  assert.notEqual(
    (await machine.run(`test -e ${root}/package.json || command -v npm || command -v node`)).status,
    0,
    'neither the project nor npm is there',
  );

  const compiled = await machine.run('find /var/cache/svc-sensor -type f -user svc-sensor | wc -l');
  assert.ok(Number(compiled.stdout) > 100, 'the service finds its modules compiled at its first start');

  const asNobody = 'setpriv --reuid nobody --regid nogroup --clear-groups --';
  const help = await machine.run(`${asNobody} svc-sensor --help`);
  assert.match(help.stdout, /Usage: svc-sensor .*read .*run .*enrol /s, help.stderr);
  const read = await machine.run(`${asNobody} svc-sensor read --json /tmp/small.pcap`);
  assert.equal(JSON.parse(read.stdout).capture.ip_packets, 1, read.stderr);
  assert.equal(
    (await machine.run('gzip -dc /usr/share/man/man8/svc-sensor.8.gz | grep -c SVC_SENSOR_SPOOL_MIB')).stdout,
    '1\n',
  );

  const settings = `SVC_MONITOR_URL=${monitor.url}\\nSVC_SENSOR_CAPTURES=uplink:lo\\nSVC_SENSOR_RING_MIB=4`;
  await machine.run(`printf '${settings}\\n' > /etc/svc-sensor/sensor.env`);
  const enrolled = await machine.run('echo token-1 | svc-sensor enrol');
  assert.equal(enrolled.stdout, 'Enrolled on site Site as sensor 5.\n', enrolled.stderr);
  assert.equal(
    (await machine.run('stat -c %U:%a /var/lib/svc-sensor/credential.json')).stdout,
    'svc-sensor:600\n',
  );

  const running = machine.start('svc-sensor run');
  let said = '';
  const counts = new Promise<void>((resolve) => {
    running.stderr!.on('data', (piece: Buffer) => {
      said += piece.toString();
      if (said.includes('capture listens')) resolve();
    });
  });
  const ended = new Promise<number | null>((resolve) => running.once('close', resolve));
  await Promise.race([counts, ended]);
  // nsenter becomes chroot, sh, the wrapper, setpriv and Node.js in turn, all under one process id.
  const status = readFileSync(`/proc/${running.pid}/status`, 'utf8');
  for (const set of ['CapEff', 'CapBnd', 'CapAmb'])
    assert.match(status, new RegExp(`^${set}:\\s+0000000000002000$`, 'm'), said);
  assert.doesNotMatch(status, /^Uid:\s+0/m);
  running.kill('SIGTERM');
  assert.equal(await ended, 0, said);
  assert.ok(
    monitor.requests.some((request) => request.path.endsWith('/telemetry')),
    said,
  );

  const asRoot = await machine.run('HOME=/root svc-sensor read --json /tmp/small.pcap');
  assert.equal(JSON.parse(asRoot.stdout).capture.ip_packets, 1, asRoot.stderr);
  assert.equal((await machine.run('ls -A /root')).stdout, '', 'a command of root leaves nothing behind');
  await machine.run('mkdir -p /root/.cache/svc-sensor/v24');
  assert.equal((await machine.run('dpkg --no-triggers --purge svc-sensor')).status, 0);
  assert.equal(
    (
      await machine.run(
        "find /etc /usr /lib /root /var/lib /var/cache /var/log -name '*svc-sensor*'; getent passwd svc-sensor",
      )
    ).stdout,
    '',
  );
});
