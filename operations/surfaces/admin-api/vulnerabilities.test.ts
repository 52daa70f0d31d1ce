import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Projection, ProjectionAcknowledgements } from '#contracts/admin-api/vulnerabilities.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor } from '#operations/testing/deliver-scans.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import {
  findingOf,
  fingerprintOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { scanOf, serviceOf } from '#operations/testing/scan-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

let world: World;
let token: string;
let scans: Awaited<ReturnType<typeof createScanMonitor>>;
before(async () => {
  world = await createWorld();
  token = await world.createToken(['protect_vulnerability_ingest']);
  scans = await createScanMonitor(world);
});
after(() => world[Symbol.asyncDispose]());

const path = '/api/admin/v1/protect/vulnerabilities/';

function post(projections: readonly Projection[], site = 7, bearer = token): Promise<Response> {
  return fetch(`${world.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ contract_version: 1, source_site_id: site, cluster_ids: [world.clusterId], projections },
    }),
  });
}

async function deliver(projections: readonly Projection[], site = 7, bearer = token): Promise<string[]> {
  const answer = await post(projections, site, bearer);
  assert.equal(answer.status, 200, await answer.clone().text());
  const { acknowledgements } = (await answer.json()) as ProjectionAcknowledgements;
  assert.deepEqual(
    acknowledgements.map(({ allocation_id, scan_id }) => [allocation_id, scan_id]),
    projections.map(({ allocation_id, scan_id }) => [allocation_id, scan_id]),
  );
  return acknowledgements.map(({ outcome }) => outcome);
}

/** A customer with a server whose addresses were assigned eight days ago. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase().replaceAll(' ', '-'));
  await world.backdate(serverId, '8 days');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const subject = { serverId, tenantId: customer.tenant.id };
  const list = () => world.protectFindings.list(systemActor, subject, { limit: 1000 });
  return {
    ...{ ...customer, serverId, subject, list, first: allocations[0]! },
    read: () => world.protectFindings.read(systemActor, subject),
    cves: async () => (await list()).map(({ cveId }) => cveId),
  };
}

async function later(interval: string, happens: () => Promise<unknown>): Promise<void> {
  await moveWorldClock(world.database, interval);
  try {
    await happens();
  } finally {
    await moveWorldClock(world.database, '0');
  }
}

test('NET-4.d: a projection is stored before it is acknowledged, and shown with its evidence and the ages of check and database', async () => {
  const reader = await createReader('Stored');
  const projection = projectionOf(reader.first);
  assert.deepEqual(await deliver([projection]), ['accepted']);
  const [found, ...others] = await reader.list();
  assert.deepEqual(others, []);
  const [service] = projection.services;
  assert.deepEqual(
    [found!.address, found!.transport, found!.port, found!.product, found!.version, found!.cveId],
    [reader.first.address, 'tcp', 22, 'OpenSSH', '9.6p1', 'CVE-2024-6387'],
  );
  assert.deepEqual(
    [
      found!.severity,
      found!.score,
      found!.scanId,
      found!.observedAt.toISOString(),
      found!.checkedAt.toISOString(),
    ],
    ['high', 8.1, service!.scan_id, service!.observed_at, projection.checked_at],
  );
  const { summary } = await reader.read();
  assert.deepEqual(
    [summary.active, summary.ignored, summary.unable, summary.high, summary.databaseAt?.toISOString()],
    [1, 0, 0, 1, projection.database_at],
  );
});

test('NET-9.1: the feed is advertised at version 1 to a project with the permission, and no other may deliver', async () => {
  const discover = async (bearer: string) => {
    const answer = await fetch(`${world.url}/api/admin/v1/discovery/`, {
      headers: { authorization: `Bearer ${bearer}` },
    });
    return ((await answer.json()) as { capabilities: Record<string, unknown> }).capabilities;
  };
  assert.deepEqual(await discover(token), {
    protect_vulnerability_ingest: true,
    protect_vulnerability_contract_version: 1,
  });
  const other = await world.createToken(['protect_port_scan_ingest']);
  assert.equal((await discover(other)).protect_vulnerability_ingest, undefined);
  const refused = await post([], 7, other);
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /protect_vulnerability_ingest/);
});

test('NET-2.6.5: a projection of another address, assignment, cluster, or from before the assignment is unmatched', async () => {
  const reader = await createReader('Owned');
  const other = await createReader('Other owner');
  const wrong = [
    projectionOf({ ...reader.first, address: other.first.address }),
    projectionOf({ ...reader.first, assignedAt: secondsAgo(60) }),
    projectionOf({ ...reader.first, id: other.first.id }),
    projectionOf({ ...reader.first, id: 987_654_321 }),
    projectionOf(reader.first, { checkedSecondsAgo: 9 * 86_400 }),
    projectionOf(reader.first, { services: [projectedService({ observed_at: secondsAgo(9 * 86_400) })] }),
  ];
  assert.deepEqual(new Set(await deliver(wrong)), new Set(['unmatched']));
  assert.deepEqual(await reader.list(), []);
  await world.servers.destroyServer(systemActor, null, reader.serverId);
  await world.jobs.drain();
  assert.deepEqual(await deliver([projectionOf(reader.first)]), ['unmatched']);
  const { rows } = await world.database.pool.query('select 1 from finding_projections where server_id = $1', [
    reader.serverId,
  ]);
  assert.deepEqual(rows, []);
});

test('NET-2.6.5: a projection about a scan of another server is unmatched, as evidence of a port too', async () => {
  const reader = await createReader('Own scans');
  const other = await createReader('Foreign scans');
  const foreign = scanOf(other.first);
  const own = scanOf(reader.first, { services: [serviceOf(secondsAgo(20), 22)] });
  await scans.deliver(foreign, own);
  // Another project has the scans of both; this one has none, and waits until that one is silent.
  await world.database.pool.query("update port_scan_series set received_at = svc_now() - interval '4 hours'");
  assert.deepEqual(
    await deliver([
      projectionOf(reader.first, { scan_id: foreign.scan_id }),
      projectionOf(reader.first, {
        scan_id: randomUUID(),
        services: [projectedService({ scan_id: foreign.scan_id })],
      }),
      projectionOf(reader.first, { scan_id: own.scan_id }),
    ]),
    ['unmatched', 'unmatched', 'accepted'],
  );
});

test('NET-2.6.5: a source that another one delivers scans or projections of the address for is a source conflict', async () => {
  const reader = await createReader('Source');
  const scanned = await createReader('Scanned');
  await scans.deliver(scanOf(scanned.first));
  assert.deepEqual(await deliver([projectionOf(scanned.first)]), ['source_conflict']);
  assert.deepEqual(await deliver([projectionOf(reader.first, { checkedSecondsAgo: 30 })]), ['accepted']);
  const next = projectionOf(reader.first, { services: [] });
  assert.deepEqual(await deliver([next], 8), ['source_conflict']);
  await later('27 hours 1 second', async () => {
    assert.deepEqual(await deliver([next], 8), ['accepted']);
  });
  assert.deepEqual(await reader.list(), []);
});

test('NET-2.6.5: the newest check holds in any order of delivery; the same check again is unchanged', async () => {
  const reader = await createReader('Ordered');
  const check = (secondsBefore: number, ...cves: string[]) =>
    projectionOf(reader.first, {
      checkedSecondsAgo: secondsBefore,
      services: [
        projectedService({
          observed_at: secondsAgo(secondsBefore + 60),
          findings: cves.map((cve) => findingOf(cve)),
        }),
      ],
    });
  const older = check(300, 'CVE-2020-0001', 'CVE-2020-0002');
  const newer = check(200, 'CVE-2020-0002', 'CVE-2020-0003');
  assert.deepEqual(await deliver([newer, older, newer]), ['accepted', 'superseded', 'unchanged']);
  assert.deepEqual(await reader.cves(), ['CVE-2020-0002', 'CVE-2020-0003']);
  const empty = { ...check(100), services: [] };
  assert.deepEqual(await deliver([empty, newer, older]), ['accepted', 'superseded', 'superseded']);
  assert.deepEqual(await reader.cves(), []);
});

test('NET-2.6.5: a check one microsecond newer holds', async () => {
  const reader = await createReader('Microseconds');
  const second = secondsAgo(60).slice(0, 19);
  const one = projectionOf(reader.first, { checked_at: `${second}.000001Z` });
  const two = projectionOf(reader.first, { checked_at: `${second}.000002Z`, services: [] });
  assert.deepEqual(await deliver([one, two, one]), ['accepted', 'accepted', 'superseded']);
  assert.deepEqual(await reader.list(), []);
});

test('NET-2.6.5: an advisory that changed is delivered without a new scan', async () => {
  const reader = await createReader('Advisory');
  const service = projectedService();
  await deliver([projectionOf(reader.first, { checkedSecondsAgo: 50, services: [service] })]);
  const rated = { ...service, findings: [findingOf('CVE-2024-6387', { severity: 'critical', score: 9.8 })] };
  assert.deepEqual(
    await deliver([projectionOf(reader.first, { checkedSecondsAgo: 40, services: [rated] })]),
    ['accepted'],
  );
  const [found] = await reader.list();
  assert.deepEqual([found!.severity, found!.score, found!.scanId], ['critical', 9.8, service.scan_id]);
  const withdrawn = { ...service, findings: [findingOf('CVE-2020-0001')] };
  await deliver([projectionOf(reader.first, { checkedSecondsAgo: 30, services: [withdrawn] })]);
  assert.deepEqual(await reader.cves(), ['CVE-2020-0001']);
});

test('NET-2.6.2: services that can not be assessed are listed with the reason, and findings of the original of a package are no findings', async () => {
  const reader = await createReader('Packaged');
  await deliver([
    projectionOf(reader.first, {
      services: [
        projectedService({
          ...{ version: '9.6p1 Ubuntu 3ubuntu13.5', assessment: 'unable', reason: 'distribution_package' },
        }),
        projectedService({
          port: 80,
          product: null,
          assessment: 'unable',
          reason: 'not_probed',
          findings: [],
        }),
      ],
    }),
  ]);
  assert.deepEqual(await reader.list(), []);
  const { summary, unable } = await reader.read();
  assert.deepEqual([summary.active, summary.unable, summary.assessed], [0, 2, 0]);
  assert.deepEqual(
    unable.map(({ port, reason, upstreamCount }) => [port, reason, upstreamCount]),
    [
      [22, 'distribution_package', 1],
      [80, 'not_probed', 0],
    ],
  );
  const upstream = await world.protectFindings.list(systemActor, reader.subject, {
    ...{ isUpstream: true, limit: 10 },
  });
  assert.deepEqual(
    upstream.map(({ cveId }) => cveId),
    ['CVE-2024-6387'],
  );
});

test('NET-8.R4: evidence older than seven days is neither stored nor shown, and its rows are deleted', async () => {
  const reader = await createReader('Expires');
  const old = projectedService({ port: 80, observed_at: secondsAgo(7 * 86_400 + 60) });
  await deliver([projectionOf(reader.first, { services: [projectedService(), old] })]);
  assert.deepEqual(
    (await reader.list()).map(({ port }) => port),
    [22],
  );
  assert.deepEqual(
    await deliver([projectionOf((await createReader('Late')).first, { checkedSecondsAgo: 7 * 86_400 + 60 })]),
    ['unchanged'],
  );
  await later('6 days 23 hours', async () => assert.equal((await reader.list()).length, 1));
  await later('7 days 1 second', async () => {
    assert.deepEqual(await reader.list(), []);
    const { summary, unable } = await reader.read();
    assert.deepEqual([summary.active, summary.assessed, unable], [0, 0, []]);
    await loopOf(world.protectFindings, 'operations-finding-retention').runOnce();
    for (const table of ['finding_projections', 'finding_services', 'findings']) {
      const { rows } = await world.database.pool.query(`select 1 from ${table} where allocation_id = $1`, [
        reader.first.id,
      ]);
      assert.deepEqual(rows, [], table);
    }
  });
});

test('NET-2.7.11: findings of an address are not shown to its next owner, and not to the last one any more', async () => {
  const before = await createReader('Before');
  const next = await createReader('Next');
  await deliver([projectionOf(before.first)]);
  assert.equal((await before.list()).length, 1);
  await world.database.pool.query('update allocations set released_at = svc_now() where id = $1', [
    before.first.id,
  ]);
  await world.database.pool.query(
    `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
     select pool_id, cluster_id, $2, $3, address, prefix_length, gateway, false from allocations where id = $1`,
    [before.first.id, next.tenant.id, next.serverId],
  );
  for (const reader of [before, next]) {
    assert.deepEqual(await reader.list(), []);
    const { summary, unable } = await reader.read();
    assert.deepEqual([summary.active, summary.checkedAt, unable], [0, null, []]);
  }
  const all = await world.protectFindings.listAll(systemActor, { serverId: before.serverId, limit: 10 });
  assert.deepEqual(all, []);
});

test('NET-4.d: what contradicts itself is refused with the field, and nothing is stored', async () => {
  const reader = await createReader('Invalid');
  const service = projectedService();
  const bad: [Projection, RegExp][] = [
    [projectionOf(reader.first, { checkedSecondsAgo: -600 }), /projections\.1\.checked_at/],
    [projectionOf(reader.first, { database_at: secondsAgo(-600) }), /projections\.1\.database_at/],
    [projectionOf(reader.first, { services: [service, service] }), /services\.1\.port/],
    [projectionOf(reader.first, { services: [{ ...service, reason: 'no_version' }] }), /services\.0\.reason/],
    [
      projectionOf(reader.first, {
        services: [{ ...service, findings: [findingOf('CVE-2020-0001'), findingOf('CVE-2020-0001')] }],
      }),
      /findings\.1\.cve_id/,
    ],
    [
      projectionOf(reader.first, {
        services: [{ ...service, findings: [findingOf('CVE-2020-0001', { summary: 'a\0b' })] }],
      }),
      /findings\.0\.summary/,
    ],
    [{ ...projectionOf(reader.first), sources: [] } as unknown as Projection, /sources/],
    [projectionOf(reader.first, { services: [{ ...service, fingerprint: 'OpenSSH' }] }), /fingerprint/],
  ];
  for (const [projection, says] of bad) {
    const answer = await post([projectionOf(reader.first), projection]);
    assert.equal(answer.status, 422, String(says));
    assert.match(await answer.text(), says);
  }
  assert.deepEqual(await reader.list(), []);
});

test('a projection of 4,096 services is stored, and a body over 8 MiB is a 413', async () => {
  const reader = await createReader('Large');
  const services = Array.from({ length: 4096 }, (_, n) =>
    projectedService({ port: n + 1, scan_id: randomUUID(), fingerprint: fingerprintOf(String(n)) }),
  );
  assert.deepEqual(await deliver([projectionOf(reader.first, { services })]), ['accepted']);
  assert.equal((await reader.read()).summary.active, 4096);
  const findings = Array.from({ length: 500 }, (_, n) =>
    findingOf(`CVE-2020-${1000 + n}`, { summary: 'a'.repeat(2000) }),
  );
  const large = services.slice(0, 9).map((service) => ({ ...service, findings }));
  const refused = await post([projectionOf(reader.first, { services: large })]);
  assert.equal(refused.status, 413);
  assert.match(await refused.text(), new RegExp(`larger than ${8 * 1024 * 1024} bytes`));
});
