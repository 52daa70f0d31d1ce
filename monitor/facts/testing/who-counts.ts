/** Which of several captures of an address and minute counts: every engine decides like the rules in plain memory (NET-2.2.5). */
import assert from 'node:assert/strict';
import type { DroppedCounters } from '#contracts/sensor-api/telemetry.ts';
import { nameApplication } from '#monitor/applications/index.ts';
import { captureMinute, host, usageRow } from '#monitor/testing/index.ts';
import type { Exploration, ExploredDimension } from '../contract/exploration.ts';
import type { StoreUnderTest } from './conformance.ts';
import { createMemoryFacts, type MemoryFacts } from './memory/memory-facts.ts';
import { type Random, randomToken, seededBelow } from './random-uploads.ts';

interface Told {
  role: 'uplink' | 'bridge';
  /** Number of the sensor in `origins`. */
  sensor: 0 | 1;
  capture: string;
  packets: number;
  /** Of the only address, and of what it used. */
  bytes: number;
  address: string;
  deviceKey?: string;
}

/** Of captures that saw the same bytes the first counts by sensor and name. */
export async function checkFirstCapture(store: StoreUnderTest, nowSecond: number): Promise<void> {
  const same = { role: 'uplink', address: '192.0.2.10', bytes: 500 } as const;
  // The number of a capture is of when it came first: neither the sensor's order nor that of names.
  await checkPackets(
    store,
    nowSecond,
    [
      { ...same, sensor: 1, capture: 'a0', packets: 11 },
      { ...same, sensor: 0, capture: 'b1', packets: 22 },
      { ...same, sensor: 0, capture: 'a9', packets: 33 },
      { ...same, sensor: 0, capture: 'c0', packets: 44 },
    ],
    'sensor',
    [[String(store.origins[0]!.sensorId), 33]],
  );
}

/** Of an address in several segments the strongest capture of each counts. */
export async function checkSegments(store: StoreUnderTest, nowSecond: number): Promise<void> {
  const address = '10.0.0.9';
  const of = { role: 'bridge', sensor: 0, address } as const;
  await checkPackets(
    store,
    nowSecond,
    [
      { ...of, capture: 'a', packets: 11, bytes: 500, deviceKey: 'br0|02:00:00:00:00:01' },
      { ...of, capture: 'b', packets: 22, bytes: 900, deviceKey: 'br0|02:00:00:00:00:01' },
      { ...of, capture: 'c', packets: 33, bytes: 700, deviceKey: 'br0|02:00:00:00:00:01' },
      { ...of, capture: 'd', packets: 44, bytes: 600, deviceKey: 'br1|02:00:00:00:00:02' },
      // Of no segment that is known, which may be either.
      { ...of, capture: 'e', packets: 99, bytes: 9000 },
    ],
    'address',
    [
      [`${address}%br1`, 44],
      [`${address}%br0`, 22],
    ],
  );
}

/** Counters of an address are what was delivered, wherever the capture that counts is; what filters dropped stands beside them. */
export async function checkDelivered(store: StoreUnderTest, nowSecond: number): Promise<void> {
  const minute = Math.floor(nowSecond / 60) * 60 - 1800;
  const random = seededBelow(11);
  const siteId = store.origins[0]!.siteId;
  const at = (index: number) => `192.0.2.${10 + index}`;
  const drops = (
    address: string,
    dropped: DroppedCounters,
    rest = { rxBytes: 100, txBytes: 50, packets: 3 },
  ) => ({
    ...host(address, 0, 0),
    ...{ ...rest, dropped },
  });
  const sees = (address: string, rxBytes: number, txBytes: number, packets: number) => ({
    ...host(address, 0, 0),
    ...{ rxBytes, txBytes, packets },
  });
  const both = { rxBytes: 4000, rxPackets: 40, txBytes: 700, txPackets: 7 };
  const none = { rxBytes: 0, rxPackets: 0, txBytes: 0, txPackets: 0 };
  // Uploads may come in any order, and a minute in several parts.
  const uploads = [
    // Of the host of the filters: its bridge has what goes out before it is dropped.
    { sensor: 0, capture: 'br0', role: 'bridge', hosts: [sees(at(0), 100, 900, 11), sees(at(3), 0, 500, 5)] },
    {
      sensor: 0,
      capture: 'eth0',
      role: 'uplink',
      hosts: [
        ...[drops(at(0), both, { rxBytes: 100, txBytes: 100, packets: 4 }), drops(at(1), both)],
        ...[drops(at(2), both), drops(at(3), { ...none, txBytes: 600, txPackets: 6 }, noBytes)],
        drops(at(4), both, noBytes),
      ],
    },
    {
      sensor: 0,
      capture: 'eth0',
      role: 'uplink',
      hosts: [drops(at(0), { ...none, txBytes: 100, txPackets: 1 }, noBytes)],
    },
    // Of a switch in front of it: what comes in before it is dropped.
    { sensor: 1, capture: 'mirror', role: 'uplink', hosts: [sees(at(2), 4100, 50, 43)] },
  ] as const;
  for (const { sensor, hosts, ...part } of uploads) {
    const seen = { ...captureMinute({ minute, ...part }), hosts: [...hosts] };
    await store.append([
      { origin: store.origins[sensor]!, token: randomToken(random), minutes: [seen], gaps: [] },
    ]);
  }
  const ranges = [0, 1, 2, 3, 4].map((i) => ({
    siteId,
    address: at(i),
    fromMinute: minute,
    toMinute: minute + 60,
  }));
  const found = await store.facts.readAddresses(ranges);
  assert.deepEqual(
    found.map(({ sightings: [one] }) => [one!.rxBytes, one!.txBytes, one!.packets, one!.dropped]),
    [
      // The bridge counts 900 out, of which 800 were dropped.
      [100, 100, 3, { ...both, txBytes: 800, txPackets: 8, countedBytes: 800, countedPackets: 8 }],
      [100, 50, 3, { ...both, countedBytes: 0, countedPackets: 0 }],
      [100, 50, 3, { ...both, countedBytes: 4000, countedPackets: 40 }],
      // Never less than nothing: a packet passed the bridge in the minute before.
      [0, 0, 0, { ...none, txBytes: 600, txPackets: 6, countedBytes: 500, countedPackets: 5 }],
      [0, 0, 0, { ...both, countedBytes: 0, countedPackets: 0 }],
    ],
  );
  for (const hours of ['settled', 'all'] as const) {
    await store.facts.rollUp(hours);
    const { total } = await store.facts.explore({
      ...{ siteId, fromMinute: minute, toMinute: minute + 60, source: 'addresses' },
      ...{ by: [], filters: [], owners: [], networks: [], measure: 'bytes', order: 'size' },
      ...{ rows: { limit: 5 }, stepSeconds: null },
    });
    assert.deepEqual([total.inBytes, total.outBytes], [300, 200], `${hours} rolled up`);
  }
}

const noBytes = { rxBytes: 0, txBytes: 0, packets: 0 };

/** Each capture's minute is an upload; packets by this are asked of both sources, of minutes and of sums. */
async function checkPackets(
  store: StoreUnderTest,
  nowSecond: number,
  told: readonly Told[],
  by: ExploredDimension,
  expected: readonly (readonly unknown[])[],
): Promise<void> {
  const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond });
  const minute = Math.floor(nowSecond / 60) * 60 - 1800;
  await upload(store, model, minute, told, seededBelow(7));
  for (const hours of ['settled', 'all'] as const) {
    // A site's own minutes are made by either.
    await store.facts.rollUp(hours);
    for (const source of ['addresses', 'applications'] as const) {
      const asked: Exploration = {
        ...{ siteId: store.origins[0]!.siteId, fromMinute: minute, toMinute: minute + 60, source },
        ...{ by: [by], filters: [], owners: [], networks: [], measure: 'packets', order: 'size' },
        ...{ rows: { limit: 5 }, stepSeconds: 60 },
      };
      const answer = await store.facts.explore(asked);
      assert.deepEqual({ ...answer, grains: [] }, await model.explore(asked));
      assert.deepEqual(
        answer.rows.map(({ key, packets }) => [...key, packets]),
        expected,
        `${source}, ${hours} rolled up`,
      );
    }
  }
}

async function upload(
  store: StoreUnderTest,
  model: MemoryFacts,
  minute: number,
  told: readonly Told[],
  random: Random,
): Promise<void> {
  for (const { role, sensor, capture, packets, bytes, address, deviceKey } of told) {
    const seen = captureMinute({
      ...{ minute, capture, role },
      hosts: [{ ...host(address, bytes, 50, deviceKey), packets }],
      usage: [usageRow({ client: address, name: 'example.net', serverBytes: bytes, packets })],
    });
    const token = randomToken(random);
    const one = { origin: store.origins[sensor]!, token, minutes: [seen], gaps: [] };
    await model.append([one]);
    await store.append([one]);
  }
}
