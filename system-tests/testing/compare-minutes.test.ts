import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TruthRow } from '#lab/index.ts';
import { compareMinutes, findUnclear } from './compare-minutes.ts';
import type { ProtectMinute } from './people.ts';

const minute = 1_795_257_180;
const address = '203.0.113.17';
const row = (part: Partial<TruthRow> = {}): TruthRow => ({
  minute,
  address,
  rx_bytes: 100,
  tx_bytes: 50,
  rx_packets: 1,
  tx_packets: 1,
  exact: true,
  ...part,
});
const shown = (inbound: number, outbound: number): ProtectMinute => ({
  timestamp: new Date(minute * 1000).toISOString(),
  address,
  inbound_bytes: inbound,
  outbound_bytes: outbound,
  coverage: 1,
});
const faults = (minutes: ProtectMinute[], truth: TruthRow[], gaps?: Set<number>) => {
  return compareMinutes(minutes, truth, gaps).faults.length;
};

test('an equal minute counts, a lost byte, an added byte and a doubled minute are faults', () => {
  assert.deepEqual(compareMinutes([shown(100, 50)], [row()]), { equal: 1, faults: [] });
  assert.equal(faults([shown(99, 50)], [row()]), 1);
  assert.equal(faults([shown(100, 51)], [row()]), 1);
  assert.equal(faults([shown(200, 100)], [row()]), 1);
  assert.equal(faults([shown(100, 50), shown(100, 50)], [row()]), 1);
});

test('a minute with a gap may show less, never more', () => {
  const gaps = new Set([minute]);
  assert.equal(faults([shown(60, 10)], [row()], gaps), 0);
  assert.equal(faults([shown(101, 10)], [row()], gaps), 1);
});

test('a minute without exact counters is not compared', () => {
  assert.deepEqual(compareMinutes([shown(1, 1)], [row({ exact: false })]), { equal: 0, faults: [] });
});

test('a machine that paused around one end of a minute is not an error; a lab without pauses in its traffic is', () => {
  const rows = (exact: number, unclear: number) => [
    ...Array.from({ length: exact }, () => row()),
    ...Array.from({ length: unclear }, () => row({ exact: false })),
  ];
  assert.deepEqual(findUnclear(rows(2, 2)), []);
  assert.deepEqual(findUnclear(rows(40, 40)), []);
  assert.equal(findUnclear(rows(20, 40)).length, 1);
});
