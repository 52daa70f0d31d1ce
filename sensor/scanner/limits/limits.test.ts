import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findScanLimits, type GroupPlace, giveScanLimits } from './index.ts';

/** A folder in place of the kernel's: it has the files that the kernel would show. */
function standIn(t: TestContext, membership: string, files: Record<string, string>): GroupPlace {
  const root = mkdtempSync(join(tmpdir(), 'svc-groups-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const parents = new Map([
    [700, 600],
    [600, 500],
  ]);
  return {
    ...{ root, membership, processId: 700, startOf: () => 5000 },
    parentOf: (processId) => parents.get(processId) ?? 0,
  };
}
const read = (place: GroupPlace, ...path: string[]) => readFileSync(join(place.root, ...path), 'utf8');
/** Of scan 1 of process 700. */
const group = 'svc-scan-700-5000-1';
const service = '0::/system.slice/svc-sensor.service\n';
const base = 'system.slice/svc-sensor.service';
const delegated = {
  'cgroup.controllers': 'cpuset cpu io memory pids\n',
  [`${base}/cgroup.controllers`]: 'cpu io memory pids\n',
  [`${base}/cgroup.subtree_control`]: '',
  [`${base}/cgroup.procs`]: '600\n700\n',
};

test('NET-8.3: in a delegated group of version 2 a scan has one CPU, 384 and 512 MiB, 64 tasks and the lowest weights', (t) => {
  const place = standIn(t, service, delegated);
  const limits = findScanLimits(place);
  assert.ok(typeof limits !== 'string', String(limits));
  assert.equal(limits.version, 2);
  const enclosure = limits.enclose('1');
  const values = Object.fromEntries(
    readdirSync(join(place.root, base, group)).map((file) => [file, read(place, base, group, file)]),
  );
  assert.deepEqual(values, {
    'cpu.max': '100000 100000',
    'cpu.weight': '10',
    'io.weight': 'default 10',
    'memory.high': '402653184',
    'memory.max': '536870912',
    'memory.oom.group': '1',
    'memory.swap.max': '0',
    'pids.max': '64',
  });
  assert.deepEqual(enclosure.procsFiles, [join(place.root, base, group, 'cgroup.procs')]);
  assert.equal(read(place, base, 'cgroup.subtree_control'), '+cpu +memory +pids +io');
  assert.equal(read(place, base, 'svc-sensor', 'cgroup.procs'), '700', 'the sensor made room');
});

test('NET-8.3: without controllers, or where other processes are in the group, there are no limits, and it says why', (t) => {
  const foreign = standIn(t, service, { ...delegated, [`${base}/cgroup.procs`]: '700\n999\n' });
  assert.match(String(findScanLimits(foreign)), /other processes are in the group .*Delegate=yes/);
  assert.equal(read(foreign, base, 'cgroup.subtree_control'), '', 'nothing was changed');
  const poor = standIn(t, service, { ...delegated, [`${base}/cgroup.controllers`]: 'cpu\n' });
  assert.match(String(findScanLimits(poor)), /no controller memory, pids here/);
  assert.match(
    String(findScanLimits(standIn(t, '', {}))),
    /version 2 is not mounted; version 1 has no hierarchy/,
  );
});

const version1 = {
  'cpu/tasks': '',
  'memory/box/tasks': '',
  'pids/tasks': '',
};
const membership1 = '9:name=systemd:/\n8:pids:/\n4:memory:/box\n1:cpu,cpuacct:/\n0::/\n';

test('NET-8.3: with version 1 the same limits are set in its hierarchies, and what it lacks is named', (t) => {
  const place = standIn(t, membership1, version1);
  const limits = findScanLimits(place);
  assert.ok(typeof limits !== 'string', String(limits));
  assert.deepEqual([limits.version, limits.missing], [1, ['blkio.bfq.weight']]);
  const { procsFiles } = limits.enclose('1');
  assert.equal(read(place, 'cpu/svc-sensor', group, 'cpu.cfs_quota_us'), '100000');
  assert.equal(read(place, 'cpu/svc-sensor', group, 'cpu.shares'), '102');
  assert.equal(read(place, 'memory/box/svc-sensor', group, 'memory.limit_in_bytes'), '536870912');
  assert.equal(read(place, 'pids/svc-sensor', group, 'pids.max'), '64');
  const files = ['cpu', 'memory/box', 'pids'].map((path) =>
    join(place.root, path, 'svc-sensor', group, 'cgroup.procs'),
  );
  assert.deepEqual([...procsFiles].sort(), files);
});

test('NET-8.3: where a required limit is refused, nothing is left behind', (t) => {
  const place = standIn(t, membership1, version1);
  // A folder where the file would be: it can not be written.
  mkdirSync(join(place.root, 'pids/svc-sensor', group, 'pids.max'), { recursive: true });
  const limits = findScanLimits(place);
  assert.ok(typeof limits !== 'string', String(limits));
  assert.throws(() => limits.enclose('1'), /pids.max can not be set/);
  assert.ok(existsSync(join(place.root, 'cpu')));
});

/** The kernel removes a group with its files; a folder on disk must be empty. */
function emptyGroup(folder: string): void {
  for (const file of readdirSync(folder)) rmSync(join(folder, file));
}

const versions = [
  { version: 2, membership: service, files: delegated, folder: base },
  { version: 1, membership: membership1, files: version1, folder: 'cpu/svc-sensor' },
];
for (const { version, membership, files, folder } of versions)
  test(`NET-8.3: groups of version ${version} that a killed sensor left are removed; an empty one of a scan that runs stays`, (t) => {
    const place = standIn(t, membership, files);
    const first = findScanLimits(place);
    assert.ok(typeof first !== 'string', String(first));
    const { procsFiles } = first.enclose('1');
    const path = join(place.root, folder);
    const left = ['svc-scan-0193a1f0', 'svc-scan-700-4999-2', 'svc-scan-650-5000-3'];
    for (const name of left) mkdirSync(join(path, name));
    mkdirSync(join(path, 'svc-other'));
    emptyGroup(join(path, group));
    // As the kernel shows what was set.
    if (version === 2) writeFileSync(join(path, 'cgroup.subtree_control'), 'cpu io memory pids\n');
    // `./svc sensor scan` beside the sensor, between two of its programs.
    const startOf = (processId: number) => (processId === 650 ? null : 5000);
    const second = findScanLimits({ ...place, processId: 800, startOf });
    assert.ok(typeof second !== 'string', String(second));
    for (const file of procsFiles.filter((one) => one.startsWith(path)))
      assert.ok(existsSync(join(file, '..')), file);
    assert.deepEqual(
      left.filter((name) => existsSync(join(path, name))),
      [],
    );
    assert.ok(existsSync(join(path, 'svc-other')));
  });

const needsRoot = { skip: process.getuid?.() === 0 ? false : 'changing owners takes root' };
const lesser = { uid: 65_534, gid: 65_534 };

test(
  'NET-8.3: root gives the user that it goes on as a group of version 2 with the sensor in it, and no limits',
  needsRoot,
  (t) => {
    // As the kernel shows it once the sensor has made room.
    const place = standIn(t, service, {
      ...delegated,
      [`${base}/cgroup.subtree_control`]: 'cpu io memory pids\n',
      [`${base}/svc-sensor/cgroup.procs`]: '700\n',
    });
    const owner = (...path: string[]) => statSync(join(place.root, base, ...path)).uid;
    giveScanLimits(lesser, place);
    assert.equal(read(place, base, 'svc-sensor/svc-sensor/cgroup.procs'), '700');
    assert.equal(read(place, base, 'svc-sensor/cgroup.subtree_control'), '+cpu +memory +pids +io');
    const groups = [
      '.',
      'cgroup.procs',
      'svc-sensor',
      'svc-sensor/cgroup.procs',
      'svc-sensor/cgroup.subtree_control',
    ];
    assert.deepEqual(
      groups.map((path) => owner(path)),
      [0, 0, lesser.uid, lesser.uid, 0],
    );
    // As the kernel shows the lowered sensor's group.
    writeFileSync(join(place.root, base, 'svc-sensor/cgroup.controllers'), 'cpu io memory pids\n');
    writeFileSync(join(place.root, base, 'svc-sensor/cgroup.subtree_control'), 'cpu io memory pids\n');
    const lowered = { ...place, membership: `${service.trim()}/svc-sensor/svc-sensor\n` };
    const limits = findScanLimits(lowered);
    assert.ok(typeof limits !== 'string', String(limits));
    const { procsFiles } = limits.enclose('1');
    assert.deepEqual(procsFiles, [join(place.root, base, 'svc-sensor', group, 'cgroup.procs')]);
    // A start of root's from there, such as of a demo's sensor that died.
    giveScanLimits(lesser, lowered);
    assert.equal(existsSync(join(place.root, base, 'svc-sensor/svc-sensor/svc-sensor')), false);
  },
);

test(
  'NET-8.3: root gives the user that it goes on as the groups of version 1 in which those of scans are',
  needsRoot,
  (t) => {
    const place = standIn(t, membership1, version1);
    giveScanLimits(lesser, place);
    for (const path of ['cpu', 'memory/box', 'pids']) {
      assert.equal(statSync(join(place.root, path)).uid, 0);
      assert.equal(statSync(join(place.root, path, 'svc-sensor')).uid, lesser.uid, path);
    }
  },
);

test('NET-8.3: a second process leaves the group of a running scan alone, and removes it once that process is killed', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('control groups take root');
  const folder = fileURLToPath(new URL('.', import.meta.url));
  const find = `import { findScanLimits } from '${folder}index.ts'; const limits = findScanLimits();`;
  const start = (script: string) =>
    spawn(process.execPath, ['--input-type=module', '-e', find + script], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
  const scanning = start(`console.log(limits.enclose('1').procsFiles.join()); process.stdin.resume();`);
  t.after(() => scanning.kill('SIGKILL'));
  const [line] = (await once(scanning.stdout, 'data')) as [Buffer];
  const groups = line
    .toString()
    .trim()
    .split(',')
    .map((file) => join(file, '..'));
  const another = async () => assert.deepEqual(await once(start(''), 'exit'), [0, null]);
  await another();
  for (const path of groups) assert.ok(existsSync(path), path);
  scanning.kill('SIGKILL');
  await once(scanning, 'exit');
  await another();
  for (const path of groups) assert.ok(!existsSync(path), path);
});
