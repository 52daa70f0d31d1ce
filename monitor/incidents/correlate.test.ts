import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { combine, divide } from './correlate.ts';
import { groupPeers } from './correlate-sites.ts';
import type { Observation } from './incident.ts';
import { type ObservationPart, observation } from './testing/observations.ts';

const now = Date.UTC(2026, 10, 23, 10, 0, 0);
let rowId = 0;

function seen(sensorId: number, part: ObservationPart): Observation {
  rowId += 1;
  const { seconds: _, ...said }: IncidentObservation = observation(part);
  return {
    rowId,
    sensorId,
    siteId: 1,
    incidentId: null,
    said,
    target: said.target,
    targetKey: `host ${said.target.value}`,
    direction: said.direction,
    severity: said.severity,
    isDrill: said.drill,
  };
}

const view = (observations: Observation[], released: Observation[] = []) =>
  combine(observations, now, (one) => released.includes(one as Observation));

test('the strongest capture counts for rates, peak and totals; captures of the same traffic never add', () => {
  const uplink = seen(1, {
    startedAtMs: now - 20_000,
    lastObservedAtMs: now - 1000,
    bps: 900e6,
    pps: 100_000,
    totals: { bytes: 2e9, packets: 2e6 },
  });
  const bridge = seen(1, {
    startedAtMs: now - 19_000,
    lastObservedAtMs: now - 2000,
    capture: 'br0',
    bps: 890e6,
    pps: 120_000,
    totals: { bytes: 1.9e9, packets: 2.1e6 },
  });
  const { measured, startedAtMs, lastObservedAtMs, state } = view([uplink, bridge]);
  assert.deepEqual(measured.current, { bps: 900e6, pps: 100_000 });
  assert.deepEqual([measured.peak.bps, measured.peak.pps], [900e6, 120_000], 'each with its own time');
  assert.deepEqual(measured.totals, { bytes: 2e9, packets: 2e6 });
  assert.deepEqual([state, startedAtMs, lastObservedAtMs], ['active', now - 20_000, now - 1000]);
});

test('both nodes of a server that moves make one incident, and their totals add: they saw it one after the other', () => {
  const left = seen(1, {
    startedAtMs: now - 600_000,
    lastObservedAtMs: now - 300_000,
    totals: { bytes: 1000, packets: 10 },
  });
  const arrived = seen(2, {
    startedAtMs: now - 290_000,
    lastObservedAtMs: now,
    totals: { bytes: 700, packets: 30 },
  });
  assert.equal(divide([left, arrived]).length, 1);
  assert.deepEqual(view([left, arrived]).measured.totals, { bytes: 1700, packets: 40 });
});

test('times that overlap are one incident of any classes; later only the same class continues it, for 300 s', () => {
  const first = seen(1, { startedAtMs: now - 900_000, recoveredAtMs: now - 700_000 });
  const overlapping = seen(2, {
    startedAtMs: now - 710_000,
    class: 'ack_flood',
    recoveredAtMs: now - 700_000,
  });
  const other = seen(1, { startedAtMs: now - 600_000, class: 'udp_flood' });
  const same = seen(1, { startedAtMs: now - 400_000 });
  const late = seen(1, { startedAtMs: now - 399_999 });
  const sizes = (...all: Observation[]) => divide(all).map(({ length }) => length);
  assert.deepEqual(sizes(first, overlapping), [2]);
  assert.deepEqual(sizes(first, other), [1, 1]);
  assert.deepEqual(sizes(first, same), [2]);
  assert.deepEqual(sizes(first, late), [1, 1]);
});

test('NET-3.2: an incident has recovered only when every live observation was recovered by its sensor', () => {
  const recovered = seen(1, {
    startedAtMs: now - 300_000,
    lastObservedAtMs: now - 100_000,
    recoveredAtMs: now - 40_000,
  });
  const gone = seen(2, { startedAtMs: now - 300_000, lastObservedAtMs: now - 200_000 });
  assert.equal(view([recovered]).state, 'recovered');
  assert.equal(view([recovered]).recoveredAtMs, now - 40_000);
  const open = view([recovered, gone]);
  assert.deepEqual(
    [open.state, open.recoveredAtMs],
    ['stale', null],
    'a sensor that is gone leaves it stale',
  );
  assert.equal(open.measured.current, null);
  assert.equal(open.measured.coverage, 'unknown');
  assert.equal(view([recovered, gone], [gone]).state, 'recovered', 'its server has left that node');
  assert.equal(view([gone], [gone]).state, 'stale', 'without any recovery it stays');
  const later = seen(2, { startedAtMs: now - 300_000, lastObservedAtMs: now - 30_000 });
  assert.equal(view([recovered, later], [later]).state, 'active', 'it was observed after that recovery');
});

test('NET-3.2: an observation is stale after ninety seconds by its own time', () => {
  const at = (ago: number) => view([seen(1, { startedAtMs: now - 200_000, lastObservedAtMs: now - ago })]);
  assert.equal(at(90_000).state, 'active');
  assert.equal(at(90_001).state, 'stale');
  assert.equal(at(90_001).lastObservedAtMs, now - 90_001, 'with the original time');
});

test('a capture that names the class counts before one that could not', () => {
  const unnamed = seen(1, { startedAtMs: now - 5000, class: 'other', bps: 2e9 });
  const named = seen(1, { startedAtMs: now - 5000, capture: 'br0', class: 'protocol_flood', bps: 1e9 });
  assert.equal(view([unnamed, named]).class, 'protocol_flood');
  assert.equal(view([unnamed]).class, 'other');
});

test('attacks of a site that begin within 60 s and share a class are correlated, in any order', () => {
  const peer = (id: string, startedAtMs: number, ...classes: string[]) => ({
    ...{ id, siteId: 1, startedAtMs, lastObservedAtMs: startedAtMs, classes, correlationId: null },
  });
  const peers = [
    peer('a', 0, 'syn_flood'),
    peer('b', 50_000, 'syn_flood', 'udp_flood'),
    peer('c', 100_000, 'udp_flood'),
    peer('d', 100_000, 'icmp_flood'),
    peer('e', 111_000, 'syn_flood'),
    { ...peer('f', 0, 'syn_flood'), siteId: 2 },
  ];
  const named = (list: typeof peers) =>
    groupPeers(list)
      .map((group) =>
        group
          .map(({ id }) => id)
          .sort()
          .join(''),
      )
      .sort();
  assert.deepEqual(named(peers), ['abc', 'd', 'e', 'f']);
  assert.deepEqual(named(peers.toReversed()), ['abc', 'd', 'e', 'f']);
});
