import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CodedError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { InterfaceGuard } from '#operations/hypervisors/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { loopOf } from '#operations/testing/loop-of.ts';

let world: World;
let operator: string;
let support: string;
let isBroken = false;
/** What the hypervisor says its guards have dropped, by guest. */
const guards = new Map<string, InterfaceGuard[]>();
const switched: string[] = [];

before(async () => {
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest(guest, step) {
        if (isBroken) throw new CodedError('hypervisor.refused', 'node-7 <says> no');
        return usual.ensureGuest(guest, step);
      },
      async observeGuests() {
        const guests = await usual.observeGuests();
        return guests.map((guest) => ({ ...guest, guards: guards.get(guest.name) ?? [] }));
      },
      async applyGuard(guest, isOn) {
        switched.push(`${guest} ${isOn ? 'on' : 'off'}`);
      },
    }),
  });
  for (const staffRole of ['operator', 'support'] as const) {
    const email = `${staffRole}@staff.test`;
    await world.accounts.createPerson(systemActor, { email, name: staffRole, password, staffRole });
  }
  operator = await world.signIn('operator@staff.test');
  support = await world.signIn('support@staff.test');
});
after(() => world[Symbol.asyncDispose]());

const get = async (path: string, cookie: string) => {
  const headers = { accept: 'text/html', cookie };
  const answer = await fetch(`${world.url}${path}`, { headers, redirect: 'manual' });
  return { status: answer.status, text: await answer.text() };
};

async function post(path: string, cookie: string, fields: Record<string, string> = {}) {
  const page = (await get('/console/', cookie)).text;
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(page)?.[1] ?? '';
  const answer = await fetch(`${world.url}${path}`, {
    method: 'POST',
    headers: { accept: 'text/html', cookie },
    body: new URLSearchParams({ ...fields, csrf_token }),
    redirect: 'manual',
  });
  return { status: answer.status, to: answer.headers.get('location'), text: await answer.text() };
}

test('API-3.4: what failed waits in a queue, with what the hypervisor said, until an operator retries or resolves it', async () => {
  const { tenant } = await world.createCustomer('Queue');
  isBroken = true;
  const failed: number[] = [];
  for (const name of ['fails-1', 'fails-2']) failed.push((await world.deploy(tenant, name)).serverId);
  isBroken = false;
  const [first, second] = failed as [number, number];
  const queue = await get('/console/servers/?status=failed', operator);
  assert.match(queue.text, /2 failed to provision and need an operator/);
  assert.match(queue.text, /node-7 &lt;says&gt; no/, 'escaped');
  const page = await get(`/console/servers/${first}`, operator);
  assert.match(page.text, /Provision again/);
  const read = await get(`/console/servers/${first}`, support);
  assert.match(read.text, /node-7/);
  assert.doesNotMatch(read.text, /Provision again|Hand it over|Remove it/, 'support only reads');
  assert.equal((await post(`/console/servers/${first}/retry`, support)).status, 403);
  assert.equal(
    (await post(`/console/servers/${first}/resolve`, support, { resolution: 'repaired' })).status,
    403,
  );

  const early = await post(`/console/servers/${first}/resolve`, operator, { resolution: 'repaired' });
  assert.deepEqual([early.status, /no running guest/.test(early.text)], [409, true]);
  assert.equal((await post(`/console/servers/${first}/retry`, operator)).status, 303);
  await world.jobs.drain();
  assert.match((await get(`/console/servers/${first}`, operator)).text, /Running since/);

  const remove = (confirm_name: string) =>
    post(`/console/servers/${second}/resolve`, operator, { resolution: 'remove', confirm_name });
  assert.equal((await remove('fails-1')).status, 422);
  assert.equal((await remove('fails-2')).status, 303);
  await world.jobs.drain();
  assert.equal((await get(`/console/servers/${second}`, operator)).status, 404);
  assert.match((await get('/console/servers/?status=failed', operator)).text, /Nothing has failed/);
});

test('API-1.2: an operator’s power command is the same action that customers see, and support has none', async () => {
  const { tenant } = await world.createCustomer('Power');
  const { serverId } = await world.deploy(tenant, 'powered');
  const path = `/console/servers/${serverId}`;
  assert.equal((await post(`${path}/actions`, support, { action: 'stop' })).status, 403);
  assert.equal((await post(`${path}/actions`, operator, { action: 'stop' })).status, 303);
  assert.equal((await post(`${path}/actions`, operator, { action: 'start' })).status, 409, 'busy');
  assert.doesNotMatch((await get(path, operator)).text, /Power off\?/, 'it is being powered off');
  await world.jobs.drain();
  assert.match((await get(path, operator)).text, /Stopped since/);
  const [action] = await world.servers.listActions(systemActor, tenant.id, serverId, 1);
  assert.deepEqual([action?.command, action?.status], ['stop', 'success']);
});

test('spoofed traffic is stored as attempts: operators see who tried what and when, customers how much', async () => {
  const customer = await world.createCustomer('Spoofer');
  const { serverId } = await world.deploy(customer.tenant, 'spoofer');
  const name = `vm-${serverId}`;
  const path = `/console/servers/${serverId}`;
  const owner = await world.signIn(customer.email);
  const seen = async (packets: number, sources: string[]) => {
    const claimed = sources.map((source) => ({ reason: 'address' as const, source }));
    guards.set(name, [
      { device: 'vm-5b0c91ee', networkId: null, dropped: { address: packets, arp: 0 }, claimed },
    ]);
    await world.observePower();
  };
  const attempts = async () =>
    (await world.guards.listAttempts(systemActor, serverId)).map(({ reason, packets, sources }) =>
      [reason, packets, ...sources.toSorted()].join(' '),
    );
  const portal = async () =>
    /Spoofed traffic<\/dt><dd>(.*?)<\/dd>/s.exec(
      (await get(`/client/servers/${serverId}`, owner)).text,
    )?.[1] ?? '';
  await seen(0, []);
  assert.deepEqual(await attempts(), []);
  assert.match(await portal(), /^0$/);
  await seen(44_000, ['203.0.113.77']);
  await seen(44_000, []);
  await seen(44_100, ['203.0.113.78', '203.0.113.77']);
  // The guest was restarted, and its guard counts anew.
  await seen(7, []);
  assert.deepEqual(await attempts(), ['address 44107 203.0.113.77 203.0.113.78']);
  const page = (await get(path, support)).text;
  assert.match(page, /Source address not assigned to this interface/);
  assert.match(page, /203\.0\.113\.77/);
  assert.match(page, /44,107/);
  assert.match(await portal(), /44,107 packets dropped in 30 days/);
  assert.match((await get('/console/', operator)).text, /One server sends spoofed traffic/);
  // Ten minutes without any end an attempt.
  await world.database.pool.query(
    `update spoofing_attempts set last_at = last_at - interval '10 minutes' where server_id = $1`,
    [serverId],
  );
  assert.doesNotMatch((await get('/console/', operator)).text, /spoofed traffic/);
  await seen(9, []);
  assert.deepEqual((await attempts()).toSorted(), ['address 2', 'address 44107 203.0.113.77 203.0.113.78']);
  // Attempts are kept for three months.
  await world.database.pool.query(
    `update spoofing_attempts set last_at = last_at - interval '3 months' where packets = 2`,
  );
  await loopOf(world.guards, 'operations-spoofing-retention').runOnce();
  assert.deepEqual(await attempts(), ['address 44107 203.0.113.77 203.0.113.78']);
  guards.set('vm-999999999', guards.get(name)!);
  await world.observePower();
  assert.deepEqual(
    await world.guards.listAttempts(systemActor, 999_999_999),
    [],
    'a guest that is no server of ours',
  );
  guards.clear();
});

test('operators switch a server’s guard, which is audited and shown to its owner; support and customers can not', async () => {
  const customer = await world.createCustomer('Router');
  const { serverId } = await world.deploy(customer.tenant, 'router');
  const path = `/console/servers/${serverId}`;
  const owner = await world.signIn(customer.email);
  assert.match((await get(path, operator)).text, /Switch the spoofing guard off\?/);
  assert.doesNotMatch((await get(path, support)).text, /Switch the spoofing guard off/);
  assert.equal((await post(`${path}/guard`, support, { state: 'off' })).status, 403);
  assert.equal((await post(`${path}/guard`, owner, { state: 'off' })).status, 404);
  assert.equal((await post(`${path}/guard`, operator, { state: 'off' })).status, 303);
  assert.match((await get(path, operator)).text, /The hypervisor has not been told yet/);
  await world.jobs.drain();
  assert.deepEqual(switched.splice(0), [`vm-${serverId} off`]);
  assert.match((await get(path, support)).text, /Off: this server may send from any MAC and address/);
  assert.match(
    (await get(`/client/servers/${serverId}`, owner)).text,
    /an operator has switched the guard off/,
  );
  const audited = await world.database.pool.query(
    `select after, tenant_id::int as tenant from audit_entries where operation = 'guard.switch' and subject_id = $1`,
    [String(serverId)],
  );
  assert.deepEqual(audited.rows, [{ after: { isOn: false }, tenant: customer.tenant.id }]);
  await post(`${path}/guard`, operator, { state: 'on' });
  await world.jobs.drain();
  assert.deepEqual(switched.splice(0), [`vm-${serverId} on`]);
  assert.equal((await post('/console/servers/999999999/guard', operator, { state: 'off' })).status, 404);
});

test('servers are found by name, address and id, and page after page', async () => {
  const { tenant } = await world.createCustomer('Found');
  const { serverId, allocations } = await world.deploy(tenant, 'needle');
  for (const q of ['needle', 'NEED', String(serverId), allocations[0]!.address])
    assert.match((await get(`/console/servers/?q=${encodeURIComponent(q)}`, support)).text, /needle/, q);
  assert.doesNotMatch((await get('/console/servers/?q=%25eedl_', support)).text, />needle</);
  assert.match((await get(`/console/servers/?tenant=${tenant.id}`, support)).text, /Servers of Found/);
});

test('operators make clusters and nodes, give their room, close and remove them; support looks on', async () => {
  const [location] = await world.catalog.listLocations();
  const make = (cookie: string, name: string) =>
    post('/console/clusters/', cookie, { name, location: String(location!.id), driver: 'libvirt' });
  assert.equal((await make(support, 'fra-2')).status, 403);
  assert.equal((await make(operator, 'Not a name')).status, 422);
  assert.equal((await make(operator, 'fra-2')).status, 303);
  assert.equal((await make(operator, 'fra-2')).status, 422, 'the name is taken');
  const cluster = (await world.clusters.listClusters()).find((one) => one.name === 'fra-2')!;
  const sizes = { vcpus: '32', memory_gib: '128', disk_gb: '2000' };
  const place = {
    name: 'node-1',
    uri: 'qemu+ssh://svc@node-1/system',
    storage_pool: 'guests',
    bridge: 'br0',
  };
  const add = (more: object) =>
    post(`/console/clusters/${cluster.id}/nodes`, operator, { ...place, ...sizes, ...more });
  assert.match((await add({ vcpus: '0' })).text, /whole number above zero/);
  assert.equal((await add({ memory_gib: 'much' })).status, 422);
  assert.equal((await add({})).status, 303);
  assert.equal((await add({})).status, 422, 'the name is taken');
  const page = await get('/console/clusters/', support);
  assert.match(page.text, /node-1/);
  assert.doesNotMatch(page.text, /Create cluster|Add a node/);
  const node = (await world.clusters.listNodes(systemActor, cluster.id))[0]!;
  assert.deepEqual(node.capacity, { vcpus: 32, memoryMb: 131_072, diskGb: 2_000 });
  const path = `/console/clusters/nodes/${node.id}`;
  assert.match((await get(path, support)).text, /Being checked/);
  await world.jobs.drain();
  const checked = (await get(path, support)).text;
  assert.match(checked, /What the node needs[\s\S]*It is simulated\./);
  assert.doesNotMatch(checked, /Check node/);
  assert.equal((await post(`${path}/check`, support)).status, 403);
  assert.equal((await post(`${path}/check`, operator)).status, 303);
  assert.match((await get(path, operator)).text, /Being checked[\s\S]*It is simulated\./);
  await world.jobs.drain();
  assert.match((await get(path, operator)).text, /Check node/);
  assert.equal((await post(path, operator, { ...place, ...sizes, memory_gib: '64' })).status, 303);
  assert.equal((await post(`${path}/close`, operator)).status, 303);
  const closed = (await world.clusters.findNode(systemActor, node.id))!;
  assert.deepEqual([closed.isOpen, closed.capacity.memoryMb], [false, 65_536]);
  assert.match((await get(path, support)).text, /Closed for new servers/);
  assert.equal((await post(`${path}/remove`, support)).status, 403);
  assert.equal((await post(`${path}/remove`, operator)).status, 303);
  assert.equal((await get(path, operator)).status, 404);
  const used = (await world.clusters.listNodes(systemActor, world.clusterId))[0]!;
  assert.equal((await post(`/console/clusters/nodes/${used.id}/remove`, operator)).status, 409);
  for (const wrong of ['/console/clusters/nodes/999', '/console/clusters/999/nodes/new'])
    assert.equal((await get(wrong, operator)).status, 404);
});
