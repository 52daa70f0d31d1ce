import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from 'typebox/value';
import { attackClasses } from '#contracts/sensor-api/detection.ts';
import { type Incident, incidentClasses, incidentsContract } from './incidents.ts';
import { type LivePoint, liveBucketsMax, liveContract, liveTargetsMax } from './live.ts';

const at = '2026-11-23T08:00:00Z';

const incident: Incident = {
  id: '0193a1f0-0000-7000-8000-000000000001',
  revision: 3,
  target: { kind: 'host', value: '198.51.100.7' },
  direction: 'inbound',
  class: 'syn_flood',
  severity: 'attack',
  vectors: [{ class: 'syn_flood', packets_share: 0.97, bytes_share: 0.9, ports: [80] }],
  state: 'active',
  started_at: at,
  last_observed_at: at,
  recovered_at: null,
  detected_at: at,
  current: { bps: 12_000_000, pps: 25_000 },
  peak: { bps: 12_800_000, bps_at: at, pps: 26_000, pps_at: at },
  totals: { bytes: 15_000_000, packets: 250_000 },
  coverage: 'complete',
  drill: false,
  actions: [{ kind: 'alerted', at, ended_at: null }],
};

const incidents = (changes: object) => ({
  contract_version: 1,
  source_site_id: 1,
  cluster_ids: [1],
  incidents: [{ ...incident, ...changes }],
});

test('NET-4.g: an incident fits its contract, and one with a source address, an unknown class or no revision does not', () => {
  const { request } = incidentsContract;
  assert.equal(Value.Check(request, incidents({})), true);
  assert.equal(Value.Check(request, incidents({ sources: ['203.0.113.0/24'] })), false);
  assert.equal(Value.Check(request, incidents({ class: 'flood' })), false);
  assert.equal(Value.Check(request, incidents({ revision: 0 })), false);
  assert.deepEqual(incidentClasses, attackClasses, 'sensors and operations have the same classes');
});

const point: LivePoint = {
  timestamp: at,
  inbound_bps: 8000,
  outbound_bps: null,
  pps: 10,
  expected_bps: null,
  expected_pps: null,
  ddos_bps: null,
  ddos_pps: null,
  coverage: 1,
  observed_seconds: 10,
};

const live = (changes: object, points = 1, targets = 1) => ({
  contract_version: 1,
  source_site_id: 1,
  cluster_ids: [1],
  targets: Array.from({ length: targets }, (_, i) => ({
    id: i + 1,
    address: '198.51.100.7',
    assigned_at: at,
    series: Array.from({ length: points }, () => ({ ...point, ...changes })),
  })),
});

test('NET-2.5: a live request has at most 10 targets of 30 buckets, of more than 0 and at most 10 seconds', () => {
  const { request } = liveContract;
  assert.equal(Value.Check(request, live({}, liveBucketsMax, liveTargetsMax)), true);
  assert.equal(Value.Check(request, live({}, liveBucketsMax + 1)), false);
  assert.equal(Value.Check(request, live({}, 1, liveTargetsMax + 1)), false);
  assert.equal(Value.Check(request, live({ observed_seconds: 0 })), false);
  assert.equal(Value.Check(request, live({ observed_seconds: 10.1 })), false);
});

test('NET-2.5.2: a live request with an expected or an attack rate is refused', () => {
  const { request } = liveContract;
  assert.equal(Value.Check(request, live({ ddos_bps: 0 })), false);
  assert.equal(Value.Check(request, live({ expected_pps: 1 })), false);
  assert.equal(Value.Check(request, live({ applications: [] })), false);
});
