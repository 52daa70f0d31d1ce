import assert from 'node:assert/strict';
import { totalmem } from 'node:os';
import { test } from 'node:test';
import { readSensorConfig } from '#sensor/config.ts';
import { HostPressure, type HostSample, readHost } from './host-pressure.ts';

const gibibyte = 1024 ** 3;
const healthy: HostSample = {
  ...{ cpuBusy: 0, cpuTotal: 0, memoryAvailable: 8 * gibibyte, memoryTotal: 16 * gibibyte },
  ...{ diskFree: gibibyte, cpuSome: 9.9, memoryFull: 0.9 },
};
const limits = readSensorConfig({}).scans;

test('NET-8.4: each limit pauses at its value and not below', () => {
  const judge = (change: Partial<HostSample>) => new HostPressure(limits).take({ ...healthy, ...change }, 0);
  assert.equal(judge({}), null);
  assert.equal(judge({ cpuSome: 10 }), 'cpu');
  assert.equal(judge({ memoryFull: 1 }), 'memory');
  assert.equal(judge({ cpuSome: null, memoryFull: null }), null, 'a kernel without PSI');
  assert.equal(judge({ memoryAvailable: 1.59 * gibibyte }), 'memory', 'a tenth of 16 GiB');
  assert.equal(judge({ memoryAvailable: 1.61 * gibibyte }), null);
  assert.equal(judge({ memoryTotal: 4 * gibibyte, memoryAvailable: gibibyte }), null);
  assert.equal(judge({ memoryTotal: 4 * gibibyte, memoryAvailable: gibibyte - 1 }), 'memory');
  assert.equal(judge({ diskFree: gibibyte - 1 }), 'disk');
  const busy = (percent: number) => {
    const pressure = new HostPressure(limits);
    pressure.take(healthy, 0);
    return pressure.take({ ...healthy, cpuBusy: percent, cpuTotal: 100 }, 5000);
  };
  assert.deepEqual([busy(84), busy(85)], [null, 'cpu']);
});

test('NET-8.4: scans go on after 30 healthy seconds; a gap of more than ten seconds begins them anew', () => {
  const pressure = new HostPressure(limits);
  assert.equal(pressure.take({ ...healthy, memoryFull: 5 }, 0), 'memory');
  for (let at = 5000; at <= 30_000; at += 5000) assert.equal(pressure.take(healthy, at), 'memory');
  // Healthy since the measurement at 5 s.
  assert.equal(pressure.take(healthy, 35_000), null);
  pressure.take({ ...healthy, diskFree: 0 }, 40_000);
  for (let at = 45_000; at <= 70_000; at += 5000) pressure.take(healthy, at);
  assert.equal(pressure.take(healthy, 80_001), 'disk', 'it was asleep');
  // A measurement that is ten seconds late is no gap.
  for (const at of [85_001, 95_001, 105_001]) assert.equal(pressure.take(healthy, at), 'disk');
  assert.equal(pressure.take(healthy, 110_001), null);
});

test('NET-8.4: this host can be measured', () => {
  const sample = readHost('/');
  assert.ok(sample.cpuTotal > sample.cpuBusy && sample.cpuBusy > 0);
  assert.equal(sample.memoryTotal, totalmem());
  assert.ok(
    sample.memoryAvailable > sample.memoryTotal / 1000 && sample.memoryAvailable < sample.memoryTotal,
  );
  assert.ok(sample.diskFree > 0);
});
