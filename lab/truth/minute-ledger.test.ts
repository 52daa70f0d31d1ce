import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AddressCount, parseCounters } from './counters.ts';
import { createMinuteLedger, type Reading } from './minute-ledger.ts';

const startMs = 1_795_257_180_000;
const address = '203.0.113.17';
const count = (bytes: number): AddressCount => ({
  rxBytes: bytes,
  rxPackets: bytes / 100,
  txBytes: bytes * 2,
  txPackets: bytes / 50,
});
const reading = (seconds: number, bytes: number): Reading => ({
  atMs: startMs + seconds * 1000,
  counts: new Map([[address, count(bytes)]]),
});
/** Closes minute after minute; each entry is [bytes before the boundary, bytes after it]. */
function close(ledger: ReturnType<typeof createMinuteLedger>, minutes: [number, number][], late = 0) {
  return minutes.flatMap(([before, after], i) => {
    const boundary = (i + 1) * 60;
    const [from, to] = [reading(boundary - 0.35 + late, before), reading(boundary + 0.3 + late, after)];
    return ledger.close(startMs + boundary * 1000, from, to);
  });
}

test('a minute is what the counters grew by between two still boundaries, and the first one is never exact', () => {
  const ledger = createMinuteLedger(reading(20, 0));
  const rows = close(ledger, [
    [1000, 1000],
    [1700, 1700],
  ]);
  assert.deepEqual(
    rows.map((row) => [row.minute, row.rx_bytes, row.tx_bytes, row.exact]),
    [
      [startMs / 1000, 1000, 2000, false],
      [startMs / 1000 + 60, 700, 1400, true],
    ],
  );
});

test('traffic at a boundary makes the minutes on both sides inexact, and only those', () => {
  const ledger = createMinuteLedger(reading(20, 0));
  const rows = close(ledger, [
    [1000, 1000],
    [1700, 1800],
    [2500, 2500],
    [2600, 2600],
  ]);
  assert.deepEqual(
    rows.map((row) => row.exact),
    [false, false, false, true],
  );
});

test('a reading that came after its boundary makes the minutes inexact even when the counters stood still', () => {
  const ledger = createMinuteLedger(reading(20, 0));
  const rows = close(
    ledger,
    [
      [1000, 1000],
      [1700, 1700],
    ],
    0.4,
  );
  assert.deepEqual(
    rows.map((row) => row.exact),
    [false, false],
  );
});

test('an address that is counted from the middle of a minute has an exact minute from its first packet on', () => {
  const ledger = createMinuteLedger(reading(20, 0));
  close(ledger, [[0, 0]]);
  const late = (seconds: number, bytes: number): Reading => {
    const at = reading(seconds, 0);
    return { ...at, counts: new Map([...at.counts, ['203.0.113.18', count(bytes)]]) };
  };
  const rows = ledger.close(startMs + 120_000, late(119.65, 500), late(120.3, 500));
  assert.deepEqual(
    rows.map((row) => [row.address, row.rx_bytes, row.exact]),
    [
      [address, 0, true],
      ['203.0.113.18', 500, true],
    ],
  );
});

test('what nft counts at egress loses its Ethernet headers, at ingress it has none', () => {
  const element = (bytes: number) => ({ elem: { val: address, counter: { packets: 10, bytes } } });
  const json = JSON.stringify({
    nftables: [
      { metainfo: {} },
      { set: { name: 'rx4', elem: [element(1000)] } },
      { set: { name: 'tx4', elem: [element(1140)] } },
      { set: { name: 'rx6' } },
      { set: { name: 'host_rx4', elem: [element(540)] } },
      { set: { name: 'host_tx4', elem: [element(300)] } },
    ],
  });
  assert.deepEqual(
    [...parseCounters(json)],
    [[address, { rxBytes: 1400, rxPackets: 20, txBytes: 1300, txPackets: 20 }]],
  );
});
