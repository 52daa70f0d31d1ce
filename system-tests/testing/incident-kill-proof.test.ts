import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareIncidents, type IncidentEvidence, type KnownIncident } from './incident-kill-proof.ts';

const flood = { address: '203.0.113.10', class: 'syn_flood', fromMs: 1_000_000, toMs: 1_040_000 };
const incident: KnownIncident = {
  ...{ id: 'a', address: flood.address, class: flood.class, state: 'recovered' },
  ...{ startedMs: 1_001_000, recoveredMs: 1_101_000 },
};
const of = (change: Partial<IncidentEvidence>, one: Partial<KnownIncident> = {}) => {
  const known = [{ ...incident, ...one }];
  return compareIncidents({ floods: [flood], known, delivered: known, deafTimes: [], ...change });
};

test('an incident explains its flood when it began with it, or when a dead sensor listened again', () => {
  assert.deepEqual(of({}), []);
  assert.match(of({}, { startedMs: 1_020_000 })[0]!, /began 20000 ms after its first packet/);
  const deafTimes = [
    { fromMs: 1_003_000, toMs: 1_012_000 },
    { fromMs: 1_014_000, toMs: 1_018_000 },
  ];
  assert.deepEqual(of({ deafTimes }, { startedMs: 1_020_000 }), []);
  assert.equal(of({ deafTimes }, { startedMs: 1_025_000 }).length, 1);
});

test('an incident that is missing, doubled, of another class, not over or over too early is a fault', () => {
  assert.match(of({ known: [], delivered: [] })[0]!, /0 incidents/);
  assert.match(of({ known: [incident, { ...incident, id: 'b' }] })[0]!, /2 incidents/);
  assert.match(of({}, { class: 'udp_flood' })[0]!, /is called udp_flood/);
  assert.match(of({}, { state: 'stale', recoveredMs: null })[0]!, /is stale/);
  assert.match(of({}, { recoveredMs: 1_080_000 })[0]!, /recovered 40000 ms after its last packet/);
  assert.match(of({ floods: [] })[0]!, /was not sent/);
});

test('operations has each incident once and unchanged', () => {
  assert.match(of({ delivered: [] })[0]!, /0 times in operations/);
  assert.match(of({ delivered: [{ ...incident, state: 'active' }] })[0]!, /in operations .* active/);
  assert.match(of({ delivered: [incident, { ...incident, id: 'b' }] })[0]!, /is in operations alone/);
});
