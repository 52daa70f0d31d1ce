import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import {
  portScansContract,
  ScanRequestOutcomes,
  ScanRequestsPage,
  ScanRequestUpdates,
  scanRequestsContract,
  scanRequestsLimitDefault,
  scanRequestsLimitMax,
  scanRequestsPath,
} from '#contracts/admin-api/port-scans.ts';
import { projectPermissions } from '#contracts/admin-api/schemas.ts';
import {
  ScanPlan,
  ScanReceipt,
  ScanReport,
  type ScanResult,
  type ScanTarget,
  scanReportBytesMax,
} from '#contracts/sensor-api/port-scans.ts';
import { portsAsked, type ScanService } from './index.ts';

const at = '2026-11-23T08:00:00Z';
const id = '0193a1f0-0000-7000-8000-000000000001';
const fits = (schema: TSchema, value: unknown) => Value.Check(schema, value);

const service: ScanService = {
  transport: 'tcp',
  port: 22,
  first_observed_at: at,
  observed_at: at,
  scan_id: id,
  service: 'ssh',
  product: 'OpenSSH',
  version: '9.6p1',
  extra_info: null,
  method: 'probed',
  confidence: 10,
  tunnel: null,
  cpe: ['cpe:/a:openbsd:openssh:9.6p1'],
};
const findings = {
  profile: 'full' as const,
  state: 'partial' as const,
  started_at: at,
  finished_at: at,
  phases: [
    {
      transport: 'tcp' as const,
      ports_asked: portsAsked.full,
      ports_answered: 3,
      filtered: 10,
      silent: 0,
      finished: true,
    },
  ],
  services: [service],
  notes: ['paused' as const],
};
const result: ScanResult = {
  kind: 'result',
  plan_revision: 4,
  scan_id: id,
  scan_request_id: null,
  target_id: 'nic-3:198.51.100.7',
  at,
  ...findings,
};
const target: ScanTarget = {
  target_id: 'nic-3:198.51.100.7',
  address: '198.51.100.7',
  interface: 'br0',
  source_address: '198.51.100.1',
  vm_id: 2,
  nic_id: 3,
  inventory_at: at,
};

test('NET-4.k: a report of a scan is one of three kinds, and unknown fields and impossible values are refused', () => {
  const { plan_revision, scan_id, scan_request_id, target_id } = result;
  const attempt = { plan_revision, scan_id, scan_request_id, target_id, at };
  const heartbeat = { ...attempt, kind: 'heartbeat', phase: 'tcp_discovery', percent: 40, paused_for: null };
  assert.equal(fits(ScanReport, { ...attempt, kind: 'started', profile: 'full', pool: 'daily' }), true);
  assert.equal(fits(ScanReport, heartbeat), true);
  assert.equal(fits(ScanReport, { ...heartbeat, found: [{ transport: 'udp', port: 53 }] }), true);
  assert.equal(fits(ScanReport, result), true);
  assert.equal(fits(ScanReport, { ...result, kind: 'ended' }), false);
  assert.equal(fits(ScanReport, { ...result, credential: 'svcsen_1_x' }), false);
  assert.equal(fits(ScanReport, { ...heartbeat, percent: 101 }), false);
  assert.equal(fits(ScanReport, { ...heartbeat, paused_for: 'tea' }), false);
  assert.equal(fits(ScanReport, { ...result, target_id: "1'; drop" }), false);
  const full = Array.from({ length: 4096 }, () => service);
  assert.equal(fits(ScanReport, { ...result, services: full }), true);
  assert.equal(fits(ScanReport, { ...result, services: [...full, service] }), false);
  assert.ok(JSON.stringify({ ...result, services: full }).length < scanReportBytesMax);
  assert.equal(fits(ScanReceipt, { scan_id: id, receipt: 'accepted' }), true);
});

test('NET-2.7.5: an open port is a number with bounded text, and no state other than open can be said', () => {
  const of = (change: object) => fits(ScanReport, { ...result, services: [{ ...service, ...change }] });
  assert.equal(of({ product: null, version: null, method: 'table', confidence: 3 }), true);
  assert.equal(of({ state: 'open|filtered' }), false);
  assert.equal(of({ port: 0 }), false);
  assert.equal(of({ transport: 'sctp' }), false);
  assert.equal(of({ product: 'x'.repeat(257) }), false);
  assert.equal(of({ cpe: Array(5).fill('cpe:/a:x:y') }), false);
});

test('NET-8.5: a plan has at most 4,096 targets and as many requests', () => {
  const request = { scan_request_id: id, target_id: target.target_id };
  const plan = (targets: number, requests: number) => ({
    plan_version: 1,
    revision: 1,
    scan_policy: { version: 1, daily_full_scan_at: at },
    targets: Array(targets).fill(target),
    requests: Array(requests).fill(request),
    withdrawn: [id],
  });
  assert.equal(fits(ScanPlan, plan(4096, 4096)), true);
  assert.equal(fits(ScanPlan, { ...plan(1, 0), scan_policy: undefined }), true, 'NET-2.7.4: optional');
  assert.equal(fits(ScanPlan, plan(4097, 0)), false);
  assert.equal(fits(ScanPlan, plan(0, 4097)), false);
});

test('NET-4.e, NET-4.f: requests, what became of them, and results fit their contracts', () => {
  const request = {
    ...{ id, billing_account_id: 1, virtual_machine_id: 2, cluster_id: 3, allocation_id: 4 },
    ...{ address: '198.51.100.7', assigned_at: at, kind: 'manual', profile: 'full' },
    ...{ requested_at: at, expires_at: at, revision: 1 },
  };
  assert.equal(fits(ScanRequestsPage, { requests: [request], next_after: null }), true);
  assert.equal(
    fits(ScanRequestsPage, { requests: [{ ...request, kind: 'hourly' }], next_after: null }),
    false,
  );
  const update = { id, state: 'running', started_at: at, heartbeat_at: at, progress: 12.5 };
  const updates = (change: object, count = 1) => ({
    contract_version: 1,
    source_site_id: 1,
    updates: Array(count).fill({ ...update, ...change }),
  });
  assert.equal(fits(ScanRequestUpdates, updates({}, 100)), true);
  assert.equal(fits(ScanRequestUpdates, updates({}, 101)), false);
  assert.equal(fits(ScanRequestUpdates, updates({ state: 'complete' })), false, 'only a result completes');
  assert.equal(fits(ScanRequestOutcomes, { outcomes: [{ id, outcome: 'cancelled' }] }), true);
  assert.ok(scanRequestsPath.endsWith('/') && scanRequestsLimitDefault <= scanRequestsLimitMax);

  const delivered = {
    scan_id: id,
    request_id: id,
    allocation_id: 4,
    address: '198.51.100.7',
    assigned_at: at,
  };
  const post = (count: number, change: object = {}) => ({
    contract_version: 1,
    source_site_id: 1,
    cluster_ids: [3],
    results: Array(count).fill({ ...delivered, ...findings, ...change }),
  });
  assert.equal(fits(portScansContract.request, post(50)), true);
  assert.equal(fits(portScansContract.request, post(51)), false);
  assert.equal(fits(portScansContract.request, post(1, { source_address: '198.51.100.1' })), false);
  const receipts = { receipts: [{ scan_id: id, receipt: 'unmatched' }] };
  assert.equal(fits(portScansContract.answer, receipts), true);
  for (const { permission } of [scanRequestsContract, portScansContract])
    assert.ok(projectPermissions.includes(permission));
});
