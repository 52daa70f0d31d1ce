import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { findScanLimits, type GroupPlace } from './index.ts';

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
  return { root, membership, processId: 700, parentOf: (processId) => parents.get(processId) ?? 0 };
}
const read = (place: GroupPlace, ...path: string[]) => readFileSync(join(place.root, ...path), 'utf8');
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
  const enclosure = limits.enclose('svc-scan-1');
  const values = Object.fromEntries(
    readdirSync(join(place.root, base, 'svc-scan-1')).map((file) => [
      file,
      read(place, base, 'svc-scan-1', file),
    ]),
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
  assert.deepEqual(enclosure.procsFiles, [join(place.root, base, 'svc-scan-1', 'cgroup.procs')]);
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
  const { procsFiles } = limits.enclose('svc-scan-1');
  assert.equal(read(place, 'cpu/svc-sensor/svc-scan-1/cpu.cfs_quota_us'), '100000');
  assert.equal(read(place, 'cpu/svc-sensor/svc-scan-1/cpu.shares'), '102');
  assert.equal(read(place, 'memory/box/svc-sensor/svc-scan-1/memory.limit_in_bytes'), '536870912');
  assert.equal(read(place, 'pids/svc-sensor/svc-scan-1/pids.max'), '64');
  const files = ['cpu', 'memory/box', 'pids'].map((path) =>
    join(place.root, path, 'svc-sensor/svc-scan-1/cgroup.procs'),
  );
  assert.deepEqual([...procsFiles].sort(), files);
});

test('NET-8.3: where a required limit is refused, nothing is left behind', (t) => {
  const place = standIn(t, membership1, version1);
  // A folder where the file would be: it can not be written.
  mkdirSync(join(place.root, 'pids/svc-sensor/svc-scan-1/pids.max'), { recursive: true });
  const limits = findScanLimits(place);
  assert.ok(typeof limits !== 'string', String(limits));
  assert.throws(() => limits.enclose('svc-scan-1'), /pids.max can not be set/);
  assert.ok(existsSync(join(place.root, 'cpu')));
});
