import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredWindow } from '#monitor/live/index.ts';
import { buildBuckets } from './build-parcel.ts';
import { indexWindows } from './index-windows.ts';

const address = '203.0.113.10';
/** Seven seconds after the end of a bucket: every capture had its time. */
const nowMs = Date.UTC(2026, 10, 23, 10, 0, 7);
/** The start of a bucket so far back; 1 is the newest complete one. */
const ago = (count: number) => Date.UTC(2026, 10, 23, 10) - count * 10_000;

interface Told extends Partial<Omit<StoredWindow, 'hosts'>> {
  startedAtMs: number;
  rx?: number;
  tx?: number;
  of?: string;
}

function windowOf({ rx = 0, tx = 0, of = address, ...more }: Told): StoredWindow {
  return {
    ...{ sensorId: 1, capture: 'eth0', role: 'uplink', observedMs: 10_000, packets: 100, ipBytes: rx + tx },
    ...{ parserDropped: 0, kernelDropped: 0, hostsLeftOut: 0 },
    ...more,
    hosts: [{ address: of, rxBytes: rx, txBytes: tx, packets: 40 }],
  };
}

function bucketsOf(
  told: readonly Told[],
  {
    assignedAtMs = 0,
    isLimited = false,
    at = nowMs,
  }: { assignedAtMs?: number; isLimited?: boolean; at?: number } = {},
) {
  const windows = indexWindows(told.map(windowOf), isLimited, at);
  return windows ? buildBuckets(windows, address, assignedAtMs, at) : [];
}
const timesOf = (points: readonly { timestamp: string }[]) => points.map((one) => Date.parse(one.timestamp));

test('NET-2.5.0: at most the 30 completed ten-second buckets of the last five minutes, in order', () => {
  const told = Array.from({ length: 40 }, (_, i) => ({ startedAtMs: ago(i - 1), rx: 10 }));
  const points = bucketsOf(told);
  assert.deepEqual(
    timesOf(points),
    Array.from({ length: 30 }, (_, i) => ago(30 - i)),
  );
});

test('NET-2.5.1: a rate is the address’s own bytes by the time that its capture measured', () => {
  const [point] = bucketsOf([
    { startedAtMs: ago(1), rx: 1000, tx: 500, observedMs: 4000, ipBytes: 9_999_999 },
  ]);
  assert.deepEqual(point, {
    timestamp: new Date(ago(1)).toISOString(),
    ...{ inbound_bps: 2000, outbound_bps: 1000, pps: 10, coverage: 0.4, observed_seconds: 4 },
    ...{ expected_bps: null, expected_pps: null, ddos_bps: null, ddos_pps: null },
  });
});

test('NET-2.5.1: a mirrored pair of uplink and bridge counts once, at its strongest capture', () => {
  const uplink = { startedAtMs: ago(1), rx: 1000, tx: 100 };
  const bridge = { ...uplink, capture: 'br0', role: 'bridge' as const, rx: 990, tx: 99 };
  const other = { ...uplink, sensorId: 2, rx: 400, tx: 40 };
  for (const told of [
    [uplink, bridge, other],
    [other, bridge, uplink],
  ]) {
    const points = bucketsOf(told);
    assert.deepEqual(
      points.map((one) => [one.inbound_bps, one.outbound_bps, one.coverage]),
      [[800, 80, 1]],
    );
  }
});

test('NET-2.4.3, NET-2.5.1: coverage is unknown where no capture has both maxima, or its parser lost packets', () => {
  const first = { startedAtMs: ago(1), rx: 1000, tx: 10 };
  const second = { ...first, capture: 'br0', rx: 900, tx: 11 };
  assert.deepEqual(
    bucketsOf([first, second]).map((one) => [one.inbound_bps, one.coverage]),
    [[800, null]],
  );
  assert.equal(bucketsOf([{ ...first, parserDropped: 1 }])[0]!.coverage, null);
  assert.equal(
    bucketsOf([{ ...first, kernelDropped: 100 }])[0]!.coverage,
    0.5,
    'half of the packets were dropped',
  );
});

test('NET-2.5.1: parts of one capture are one interval, averaged by the time that they observed', () => {
  const points = bucketsOf([
    { startedAtMs: ago(1), rx: 300, observedMs: 3000 },
    { startedAtMs: ago(1), rx: 500, observedMs: 5000 },
  ]);
  assert.deepEqual(
    points.map((one) => [one.inbound_bps, one.observed_seconds]),
    [[800, 8]],
  );
});

test('NET-2.5.1: intervals that overlap no stronger one are averaged with it by observed time', () => {
  const long = { startedAtMs: ago(3), rx: 2000, observedMs: 20_000 };
  const points = bucketsOf([long, { startedAtMs: ago(1), rx: 100 }]);
  assert.deepEqual(
    points.map((one) => [one.inbound_bps, one.observed_seconds]),
    [
      [800, 10],
      [800, 10],
      [80, 10],
    ],
  );
});

test('NET-2.5.1: an interval that crosses the assignment is discarded whole', () => {
  const told = [
    { startedAtMs: ago(3), rx: 10, observedMs: 20_000 },
    { startedAtMs: ago(1), rx: 20 },
  ];
  assert.deepEqual(timesOf(bucketsOf(told, { assignedAtMs: ago(3) })), [ago(3), ago(2), ago(1)]);
  assert.deepEqual(timesOf(bucketsOf(told, { assignedAtMs: ago(3) + 1 })), [ago(1)]);
});

test('NET-2.5.1: windows longer than 60 seconds are excluded', () => {
  const start = { startedAtMs: ago(10), rx: 60_000 };
  assert.equal(bucketsOf([{ ...start, observedMs: 60_000 }]).length, 6);
  assert.equal(bucketsOf([{ ...start, observedMs: 60_001 }]).length, 0);
});

test('NET-2.5.1: a bucket without the address is absent, never zero', () => {
  const points = bucketsOf([
    { startedAtMs: ago(3), rx: 10 },
    { startedAtMs: ago(2), rx: 10, of: '203.0.113.11' },
    { startedAtMs: ago(1), rx: 0, tx: 0 },
  ]);
  assert.deepEqual(
    points.map((one) => [Date.parse(one.timestamp), one.inbound_bps]),
    [
      [ago(3), 8],
      [ago(1), 0],
    ],
    'a capture that reports zero says zero',
  );
});

test('NET-2.5.1: a bucket waits for the captures that report, four seconds at most', () => {
  const told = [
    { startedAtMs: ago(2), rx: 10 },
    { startedAtMs: ago(2), rx: 10, capture: 'br0' },
    { startedAtMs: ago(1), rx: 10, capture: 'br0' },
  ];
  const endMs = ago(0);
  assert.deepEqual(timesOf(bucketsOf(told, { at: endMs + 3999 })), [ago(2)]);
  assert.deepEqual(timesOf(bucketsOf(told, { at: endMs + 4000 })), [ago(2), ago(1)]);
  const all = [...told, { startedAtMs: ago(1), rx: 12 }];
  assert.deepEqual(timesOf(bucketsOf(all, { at: endMs + 100 })), [ago(2), ago(1)]);
  const gone = [{ startedAtMs: ago(8), rx: 1, capture: 'gone' }, ...all.slice(1)];
  assert.deepEqual(timesOf(bucketsOf(gone.slice(1), { at: endMs + 100 })), [ago(2), ago(1)]);
});

test('NET-2.5.3: coverage is unknown when a bound cut the read', () => {
  const [point] = bucketsOf([{ startedAtMs: ago(1), rx: 10 }], { isLimited: true });
  assert.deepEqual([point!.inbound_bps, point!.coverage], [8, null]);
});
