import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { projectionOf } from '#operations/testing/projection-of.ts';
import { scanOf } from '#operations/testing/scan-of.ts';
import { hostileBodies } from '#service-kit/testing/hostile-bodies.ts';
import { minutesAgo, point } from './testing/telemetry-points.ts';

/** 20,000 take a minute. */
const requests = Number(process.env.SVC_TEST_HOSTILE_REQUESTS ?? 240);

let world: World;
let token: string;
let bodies: Record<string, object>;
before(async () => {
  world = await createWorld();
  token = await world.createToken([
    'protect_telemetry_ingest',
    'protect_live_ingest',
    'ddos_incident_ingest',
    'protect_port_scan_ingest',
    'protect_vulnerability_ingest',
  ]);
  const { tenant } = await world.createCustomer('Hostile');
  const { serverId } = await world.deploy(tenant, 'hostile-1');
  await world.backdate(serverId, '2 hours');
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  bodies = bodiesOf(allocation!);
});
after(() => world[Symbol.asyncDispose]());

/** A valid body for each route that takes one. */
function bodiesOf(allocation: Allocation): Record<string, object> {
  const source = { contract_version: 1, source_site_id: 7, cluster_ids: [world.clusterId] };
  const of = { id: allocation.id, address: allocation.address, assigned_at: allocation.assignedAt };
  const application = {
    ...{ name: 'example.com', inbound_bytes: 600, outbound_bytes: 60, transport: 'tcp', server_port: 443 },
  };
  const minute = point(
    minutesAgo(15),
    { in: 600, out: 60 },
    { applications: [application], own_scan: { inbound_bps: 8, outbound_bps: 1 } },
  );
  const { applications: _, own_scan: __, ...rates } = minute;
  const bucketMs = Math.floor(world.clock.nowMs() / 10_000) * 10_000 - 20_000;
  const bucket = { ...rates, timestamp: new Date(bucketMs).toISOString(), observed_seconds: 10 };
  const request = { id: '7d444840-9dc0-41d1-b245-5ffdce74fad2', state: 'claimed' };
  return {
    telemetry: { ...source, targets: [{ ...of, series: [minute] }] },
    live: { ...source, targets: [{ ...of, series: [bucket] }] },
    incidents: { ...source, incidents: [incidentOf(allocation.address)] },
    'port-scans': { ...source, results: [scanOf(allocation, { ports: [22] })] },
    vulnerabilities: { ...source, projections: [projectionOf(allocation)] },
    'scan-requests': {
      ...{ contract_version: 1, source_site_id: 7 },
      updates: [{ ...request, started_at: null, heartbeat_at: null, progress: null }],
    },
  };
}

const post = (path: string, body: unknown) =>
  fetch(`${world.url}/api/admin/v1/protect/${path}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

test('every receiver takes its valid body', async () => {
  for (const [path, body] of Object.entries(bodies)) {
    const answer = await post(path, body);
    assert.equal(answer.status, 200, `${path}: ${await answer.text()}`);
  }
});

test(`no value of JSON in any place of a delivery is a fault of the server, in ${requests} requests`, async () => {
  const statuses = new Map<number, number>();
  for (const [path, valid] of Object.entries(bodies)) {
    for (const body of hostileBodies(valid, Math.ceil(requests / 6), 11)) {
      const answer = await post(path, body);
      const text = await answer.text();
      const sent = JSON.stringify(body).slice(0, 2000);
      assert.ok(answer.status < 500, `${answer.status} ${path} ${sent}: ${text}`);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    }
  }
  assert.ok(statuses.get(200)! > 0 && statuses.get(422)! > requests / 2, JSON.stringify([...statuses]));
});

test('a text that can not be kept is refused with its place', async () => {
  const [incident] = (bodies.incidents as { incidents: object[] }).incidents;
  const body = { ...bodies.incidents, incidents: [{ ...incident, class: 'syn_flood', id: 'a\0b' }] };
  const { error } = (await (await post('incidents', body)).json()) as {
    error: { fields: { path: string }[] };
  };
  assert.equal(error.fields[0]!.path, 'incidents.0.id');
  const scan = structuredClone(bodies['port-scans']) as { results: { services: { product: string }[] }[] };
  scan.results[0]!.services[0]!.product = 'Open\ud800SSH';
  const answer = await post('port-scans', scan);
  assert.equal(answer.status, 422);
  const refused = (await answer.json()) as { error: { fields: { path: string; message: string }[] } };
  assert.deepEqual(refused.error.fields, [
    {
      ...{ path: 'results.0.services.0.product', code: 'characters' },
      message: 'must not contain U+0000 or half a surrogate pair',
    },
  ]);
});
