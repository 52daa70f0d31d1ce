import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

let world: World;
let operator: string;
let support: string;

before(async () => {
  world = await createWorld();
  for (const staffRole of ['operator', 'support'] as const) {
    const email = `${staffRole}@staff.test`;
    await world.accounts.createPerson(systemActor, { email, name: staffRole, password, staffRole });
  }
  operator = await world.signIn('operator@staff.test');
  support = await world.signIn('support@staff.test');
});
after(() => world[Symbol.asyncDispose]());

async function get(path: string, cookie: string): Promise<string> {
  const answer = await fetch(`${world.url}${path}`, { headers: { accept: 'text/html', cookie } });
  return answer.text();
}

async function post(path: string, cookie: string, fields: Record<string, string>): Promise<number> {
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(await get('/console/', cookie))?.[1] ?? '';
  const answer = await fetch(`${world.url}${path}`, {
    method: 'POST',
    headers: { accept: 'text/html', cookie },
    body: new URLSearchParams({ ...fields, csrf_token }),
    redirect: 'manual',
  });
  return answer.status;
}

test('NET-2.4.7: the console shows which source owns addresses, who is refused and what was set aside, and hands over', async () => {
  const { tenant } = await world.createCustomer('Sources');
  const { serverId } = await world.deploy(tenant, 'sources-1');
  await world.backdate(serverId, '2 hours');
  const allocation = (await world.addresses.listAllocationsOfServers([serverId]))[0]!;
  const project = async (name: string) => {
    const permissions = ['protect_telemetry_ingest'];
    return (await world.adminProjects.create(systemActor, { name, permissions, clusterIds: null })).id;
  };
  const [owner, waiting] = [await project('Monitor <old>'), await project('Monitor new')];
  const timestamp = new Date(worldMinuteMs - 300_000).toISOString();
  const deliver = async (projectId: number, siteId: number, bps: number) => {
    const unknown = {
      expected_bps: null,
      expected_pps: null,
      ddos_bps: null,
      ddos_pps: null,
      coverage: null,
    };
    const point = { timestamp, inbound_bps: bps, outbound_bps: 0, pps: 1, ...unknown, applications: [] };
    const request: TelemetryRequest = {
      contract_version: 1,
      source_site_id: siteId,
      cluster_ids: [world.clusterId],
      targets: [
        {
          id: allocation.id,
          address: allocation.address,
          assigned_at: allocation.assignedAt,
          series: [point],
        },
      ],
    };
    const { receipts } = await world.protectTraffic.receive({ projectId, clusterIds: null }, request);
    return receipts[0]!.receipt;
  };
  await deliver(owner, 3, 1e15);
  assert.equal(await deliver(waiting, 4, 8), 'source_conflict');

  const ownerPage = await get(`/console/projects/${owner}`, operator);
  assert.match(ownerPage, /Sources of this project/);
  assert.match(ownerPage, /A rate above 400 Gbit\/s/);
  assert.ok(ownerPage.includes(allocation.address));
  const waitingPage = await get(`/console/projects/${waiting}`, operator);
  assert.match(waitingPage, /site 3 of Monitor &lt;old&gt;/);
  assert.match(waitingPage, /Hand over these addresses\?/);
  assert.doesNotMatch(await get(`/console/projects/${waiting}`, support), /Hand over these addresses\?/);

  const path = `/console/projects/${waiting}/sources`;
  const fields = { site_id: '4', owner_site_id: '3', owner_project_id: String(owner) };
  assert.equal(await post(path, support, fields), 403);
  assert.equal(await post(path, operator, { ...fields, owner_site_id: '99' }), 404);
  assert.equal(await deliver(waiting, 4, 8), 'source_conflict');
  assert.equal(await post(path, operator, fields), 303);
  assert.equal(await deliver(waiting, 4, 8), 'accepted');
  assert.equal(await deliver(owner, 3, 8), 'source_conflict');
});
