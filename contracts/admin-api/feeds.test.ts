import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from 'typebox/value';
import { scanServicesMax } from '#contracts/port-scan/index.ts';
import { Timestamp } from '#contracts/scalars.ts';
import { type Incident, incidentsContract } from './incidents.ts';
import { type LivePoint, liveBucketsMax, liveContract, liveTargetsMax } from './live.ts';
import { findingsMax, projectionsMax, vulnerabilitiesContract } from './vulnerabilities.ts';

const at = '2026-11-23T08:00:00Z';

test('NET-4.f: a timestamp is RFC 3339 in the years 1 to 9999', () => {
  const [first, last] = ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'];
  for (const text of [at, first, last, '2026-11-23T08:00:00+01:00'])
    assert.equal(Value.Check(Timestamp, text), true, text);
  const wrong = ['2026-11-23', '2026-11-23T08:00:00', `${at}[u-ca=hebrew]`, '0001-01-01T00:00:00+00:01'];
  for (const text of [...wrong, '23 Nov 2026 08:00:00 GMT', '2026-11-23T23:59:60Z'])
    assert.equal(Value.Check(Timestamp, text), false, text);
});

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

const scanId = '0193a1f0-0000-7000-8000-000000000001';
const finding = {
  ...{ cve_id: 'CVE-2024-6387', severity: 'high', score: 8.1, cvss_version: '3.1', cvss_vector: null },
  ...{
    summary: '',
    published_at: at,
    modified_at: at,
    incomplete: null,
    disputed: false,
    known_exploited: false,
  },
};
const service = {
  ...{ transport: 'tcp', port: 22, scan_id: scanId, observed_at: at, fingerprint: '0'.repeat(64) },
  ...{ product: 'OpenSSH', version: '9.6p1', assessment: 'assessed', reason: null, findings: [finding] },
};
const projection = {
  ...{ allocation_id: 1, address: '198.51.100.7', assigned_at: at, scan_id: scanId, checked_at: at },
  ...{ database_at: at, services: [service], counts: { active: 1, ignored: 0, unable: 0, truncated: 0 } },
};
const many = <T>(one: T, count: number): T[] => Array.from({ length: count }, () => one);

test('NET-4.d: a projection fits its contract within the bounds of its lists, and one with another field or word does not', () => {
  const fits = (changes: object, count = 1) =>
    Value.Check(vulnerabilitiesContract.request, {
      ...{ contract_version: 1, source_site_id: 1, cluster_ids: [1] },
      projections: many({ ...projection, ...changes }, count),
    });
  const withService = (changes: object) => ({ services: [{ ...service, ...changes }] });
  assert.equal(fits({}, projectionsMax), true);
  assert.equal(fits({}, projectionsMax + 1), false);
  assert.equal(fits({ services: many(service, scanServicesMax) }), true);
  assert.equal(fits({ services: many(service, scanServicesMax + 1) }), false);
  assert.equal(fits(withService({ findings: many(finding, findingsMax) })), true);
  assert.equal(fits(withService({ findings: many(finding, findingsMax + 1) })), false);
  assert.equal(fits({ database_at: null }), true);
  const ofPackage = (fixed_in: unknown) =>
    fits(withService({ findings: [{ ...finding, package: { fixed_in } }] }));
  assert.deepEqual([ofPackage('1:9.2p1-2+deb12u3'), ofPackage(null), ofPackage(7)], [true, true, false]);
  assert.equal(fits(withService({ assessment: 'unable', reason: 'distribution_package' })), true);
  for (const changes of [
    { sources: [] },
    { checked_at: 'yesterday' },
    withService({ assessment: 'vulnerable' }),
    withService({ reason: 'unknown' }),
    withService({ port: 0 }),
    withService({ fingerprint: 'OpenSSH 9.6p1' }),
    withService({ findings: [{ ...finding, cve_id: 'GHSA-1' }] }),
    withService({ findings: [{ ...finding, score: 10.1 }] }),
    withService({ findings: [{ ...finding, incomplete: 'maybe' }] }),
    withService({ findings: [{ ...finding, summary: 'a'.repeat(2001) }] }),
  ])
    assert.equal(fits(changes), false, JSON.stringify(changes).slice(0, 200));
});
