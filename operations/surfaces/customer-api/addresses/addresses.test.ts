import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CodedError, hasCode } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { createFindingMonitor, projectionOf } from '#operations/testing/projection-of.ts';
import { visit } from '#operations/testing/visit.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
/** What the hypervisor says when it is asked for other addresses, so often; null: it carries it out. */
let refusals: Error[] = [];
before(async () => {
  world = await createWorld({
    addressesMax: 3,
    hypervisor: (usual) => ({
      ...usual,
      async setAddresses(guest) {
        const refusal = refusals.shift();
        if (refusal) throw refusal;
        await usual.setAddresses(guest);
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

async function customerOf(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const send = (method: string, path: string, given?: object, headers = {}) =>
    call(method, `/api/v2${path}`, { key, headers, ...(given && { body: given }) });
  const reserve = async (given: object = {}) => {
    const made = await send('POST', '/addresses', given);
    assert.equal(made.status, 201, made.text);
    return made.body;
  };
  const deploy = async () => (await world.deploy(customer.tenant, 'kept')).serverId;
  /** Asks for it, and returns the action once it has ended. */
  const move = async (path: string, given?: object) => {
    const asked = await send('POST', path, given);
    assert.equal(asked.status, 202, asked.text);
    await settle();
    const { actions } = (await send('GET', `/servers/${asked.body.server_id}/actions`)).body;
    return actions.find(({ id }: { id: number }) => id === asked.body.id);
  };
  const attach = (id: number, serverId: number) => move(`/addresses/${id}/attach`, { server_id: serverId });
  const detach = (id: number) => move(`/addresses/${id}/detach`);
  const read = async (id: number) => (await send('GET', `/addresses/${id}`)).body;
  return { ...customer, key, send, reserve, deploy, attach, detach, read };
}

/** Until nothing is left to do, as time would. */
async function settle(): Promise<void> {
  for (;;) {
    const { rowCount } = await world.database.pool.query(
      "update jobs set run_at = svc_now(), claimed_until = null where finished_at is null and kind <> 'destroy-notices.send'",
    );
    if (rowCount === 0) return;
    await world.jobs.drain();
  }
}

const generationsOf = async (serverId: number) => world.addresses.listAllocationsOfServers([serverId]);
const guestAddresses = async (serverId: number): Promise<string[]> =>
  (
    await world.database.pool.query(
      `select host(a) as address from simulated_guests, unnest(addresses) a where name = 'vm-' || $1::bigint`,
      [serverId],
    )
  ).rows.map(({ address }) => address);
const eventsOf = async (addressId: number): Promise<string[]> =>
  (
    await world.database.pool.query(
      "select type from events where (data ->> 'address_id')::bigint = $1 order by id",
      [addressId],
    )
  ).rows.map(({ type }) => type);

test('an address is reserved, listed with the limit, renamed under its ETag, and released', async () => {
  const { send, reserve, read, tenant } = await customerOf('Reserving');
  const made = await reserve({ name: 'front', location: 'fra' });
  assert.deepEqual(
    [made.name, made.family, made.state, made.server_id, made.tenant_id, made.location.slug],
    ['front', 4, 'available', null, tenant.id, 'fra'],
  );
  const six = await reserve({ family: 6 });
  assert.deepEqual([six.family, six.name], [6, six.address]);
  const listed = (await send('GET', '/addresses')).body;
  assert.deepEqual([listed.addresses, listed.limits], [[made, six], { max: 3, used: 2 }]);
  await reserve();
  const more = await send('POST', '/addresses', {});
  assert.deepEqual(
    [more.status, more.body.error.reason, more.body.error.details],
    [422, 'limit_exceeded', { limit: 'addresses', max: 3, used: 3 }],
  );
  const etag = (await send('GET', `/addresses/${made.id}`)).headers.get('etag')!;
  const named = await send('PATCH', `/addresses/${made.id}`, { name: 'back' }, { 'if-match': etag });
  assert.equal(named.body.name, 'back', named.text);
  const late = await send('DELETE', `/addresses/${made.id}`, undefined, { 'if-match': etag });
  assert.equal(late.body.error.reason, 'etag_mismatch');
  assert.equal((await send('DELETE', `/addresses/${made.id}`)).status, 204);
  assert.equal((await read(made.id)).error.code, 'not_found');
  assert.deepEqual(await eventsOf(made.id), ['address.reserved', 'address.released']);
});

test('a repetition under an Idempotency-Key keeps one address; a read key and wrong fields keep none', async () => {
  const { key, send, tenant, owner } = await customerOf('Repeating');
  const headers = { 'idempotency-key': 'one-address-and-no-more' };
  const twice = [
    await send('POST', '/addresses', {}, headers),
    await send('POST', '/addresses', {}, headers),
  ];
  assert.deepEqual(twice[1]!.body, twice[0]!.body);
  assert.equal(twice[1]!.headers.get('idempotent-replayed'), 'true');
  const reader = await world.createKey({ tenant, owner }, 'read');
  assert.equal(
    (await call('POST', '/api/v2/addresses', { key: reader, body: {} })).body.error.reason,
    'read_only_key',
  );
  for (const [body, path] of [
    [undefined, ''],
    [{ location: 'mars' }, 'location'],
    [{ address: '198.51.100.1' }, 'address'],
    [{ address: 'no address' }, 'address'],
    [{ address: twice[0]!.body.address, family: 4 }, 'family'],
    [{ family: 5 }, 'family'],
  ] as const) {
    const refused = await send('POST', '/addresses', body);
    assert.deepEqual([refused.status, refused.body.error.fields[0].path], [422, path], refused.text);
  }
  assert.equal((await call('GET', '/api/v2/addresses', { key })).body.addresses.length, 1);
});

test('an account that is closed gives back its addresses, and keeps none afterwards', async () => {
  const { reserve, tenant, owner, send } = await customerOf('Closing');
  const { id, address } = await reserve();
  await reserve({ family: 6 });
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  await world.accounts.setTenantStatus(systemActor, tenant.id, 'CLOSED');
  assert.deepEqual(await world.addresses.listReserved(actor, tenant.id), []);
  assert.deepEqual(await eventsOf(id), ['address.reserved', 'address.released']);
  const late = world.addresses.reserveAddress(actor, { tenantId: tenant.id });
  await assert.rejects(
    late,
    (error) => hasCode(error, 'addresses.not_found'),
    'a call that had passed its gate',
  );
  assert.equal((await send('GET', '/addresses')).body.error.reason, 'account_closed');
  const other = await customerOf('After closing');
  await world.database.pool.query(
    'update address_pools set first_address = $1, last_address = $1 where family(prefix) = 4',
    [address],
  );
  assert.equal((await other.reserve()).address, address);
  await world.database.pool.query(
    "update address_pools set first_address = '203.0.113.10', last_address = '203.0.113.250' where family(prefix) = 4",
  );
});

test('reservations and orders at the same moment never share an address', async () => {
  const customers = await Promise.all(['Crowd a', 'Crowd b', 'Crowd c'].map(customerOf));
  const made = await Promise.all(
    customers.flatMap(({ reserve, tenant }) => [
      ...[1, 2, 3].map(async () => (await reserve()).address as string),
      world.ordering
        .createServer(systemActor, { tenantId: tenant.id, plan: 'small', image: 'debian-12' })
        .then(async ({ serverId }) => (await generationsOf(serverId))[0]!.address),
    ]),
  );
  assert.equal(new Set(made).size, 12);
  await settle();
});

test('NET-2.3: an address goes from server to server, each time as a generation of its own, and the guard of each follows', async () => {
  const { reserve, deploy, attach, detach, read, send } = await customerOf('Moving');
  const [first, second] = [await deploy(), await deploy()];
  const { id, address } = await reserve();
  assert.equal((await attach(id, first)).status, 'success');
  assert.deepEqual([(await read(id)).state, (await read(id)).server_id], ['attached', first]);
  const { public_ips: ips } = (await send('GET', `/servers/${first}`)).body;
  assert.deepEqual(
    ips
      .filter((one: { address: string }) => one.address === address)
      .map((one: { primary: boolean }) => one.primary),
    [false],
  );
  assert.ok((await guestAddresses(first)).includes(address));
  const taken = await send('POST', `/addresses/${id}/attach`, { server_id: second });
  assert.deepEqual([taken.status, taken.body.error.reason], [409, 'address_attached']);
  assert.equal((await send('DELETE', `/addresses/${id}`)).body.error.reason, 'address_attached');
  assert.equal((await attach(id, first)).changed, false);
  const [before] = (await generationsOf(first)).filter((one) => one.address === address);

  assert.equal((await detach(id)).status, 'success');
  assert.ok(!(await guestAddresses(first)).includes(address));
  assert.ok((await world.addresses.findAllocation(before!.id))!.releasedAt);
  assert.equal((await send('POST', `/addresses/${id}/detach`)).body.error.reason, 'address_available');
  await attach(id, second);
  const [now] = (await generationsOf(second)).filter((one) => one.address === address);
  assert.ok(now!.id > before!.id);
  assert.ok((await guestAddresses(second)).includes(address));
  assert.deepEqual(await eventsOf(id), [
    ...['address.reserved', 'address.attached', 'address.detached', 'address.attached'],
  ]);
});

test('NET-2.3: attacks and findings of the server that had an address are not those of the next one', async () => {
  const { reserve, deploy, attach, detach, send } = await customerOf('Histories');
  const [first, second] = [await deploy(), await deploy()];
  const { id, address } = await reserve();
  await attach(id, first);
  await world.database.pool.query(
    "update allocations set assigned_at = assigned_at - interval '1 hour' where address = $1",
    [address],
  );
  const [before] = (await generationsOf(first)).filter((one) => one.address === address);
  const monitor = await createFindingMonitor(world);
  assert.deepEqual(await monitor.deliver(projectionOf(before!)), ['accepted']);
  await world.deliverIncidents(incidentOf(address));
  const told = async (serverId: number) => {
    const [incidents, findings] = await Promise.all(
      ['incidents', 'findings'].map((what) => send('GET', `/servers/${serverId}/${what}`)),
    );
    return [incidents!.body.incidents.length, findings!.body.findings.length];
  };
  assert.deepEqual(await told(first), [1, 1]);
  await detach(id);
  await attach(id, second);
  assert.deepEqual(await told(second), [0, 0]);
  // What the monitor delivers late of the former generation is shown for no server.
  assert.notDeepEqual(await monitor.deliver(projectionOf(before!)), ['accepted']);
  assert.deepEqual(await told(second), [0, 0]);
  assert.equal((await told(first))[0], 1, 'its attack stays with the server that was attacked');
});

test('an address that is kept outlives its server, is given to no other meanwhile, and can be another server’s', async () => {
  const { reserve, deploy, attach, read, send, tenant } = await customerOf('Outliving');
  const first = await deploy();
  const [primary] = await generationsOf(first);
  const kept = await reserve({ address: primary!.address, name: 'mail' });
  assert.deepEqual([kept.state, kept.server_id, kept.primary], ['attached', first, true]);
  const again = await send('POST', '/addresses', { address: primary!.address });
  assert.deepEqual([again.status, again.body.error.details], [409, { address_id: kept.id }]);
  assert.equal((await send('POST', `/addresses/${kept.id}/detach`)).body.error.reason, 'primary_address');
  const other = await reserve();
  await attach(other.id, first);

  await world.servers.destroyServer(systemActor, tenant.id, first);
  await settle();
  for (const { id } of [kept, other]) {
    const { state, server_id: serverId } = await read(id);
    assert.deepEqual([state, serverId], ['available', null]);
    assert.equal((await eventsOf(id)).at(-1), 'address.detached');
  }
  assert.ok((await world.addresses.findAllocation(primary!.id))!.releasedAt);
  // The whole rest of the range is used up: a new order finds none rather than a kept one.
  const rest = (last: string) =>
    world.database.pool.query(
      'update address_pools set first_address = $1, last_address = $1 where family(prefix) = 4',
      [last],
    );
  await rest(kept.address);
  const order = await send('POST', '/servers', { plan: 'small', image: 'debian-12', location: 'fra' });
  assert.equal(order.body.error.reason, 'capacity_unavailable');
  assert.equal((await send('POST', '/addresses', {})).body.error.reason, 'capacity_unavailable');
  await world.database.pool.query(
    "update address_pools set first_address = '203.0.113.10', last_address = '203.0.113.250' where family(prefix) = 4",
  );
  const second = await deploy();
  await attach(kept.id, second);
  assert.ok((await generationsOf(second)).some(({ address }) => address === kept.address));
});

test('released while its server has it, a server’s own address goes when the server is destroyed', async () => {
  const { reserve, deploy, send, tenant } = await customerOf('Releasing');
  const serverId = await deploy();
  const [primary] = await generationsOf(serverId);
  const kept = await reserve({ address: primary!.address });
  assert.equal((await send('DELETE', `/addresses/${kept.id}`)).status, 204);
  assert.equal((await generationsOf(serverId))[0]!.address, primary!.address);
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await settle();
  assert.equal((await send('GET', '/addresses')).body.addresses.length, 0);
});

test('what the hypervisor does not carry out is undone, and the address is not given on before the guest has lost it', async () => {
  const { reserve, deploy, attach, read } = await customerOf('Refused');
  const serverId = await deploy();
  const { id, address } = await reserve();
  const away = new CodedError('hypervisor.unreachable', 'No answer.');
  for (const [title, answers] of [
    ['for good', [new CodedError('hypervisor.refused', 'No.')]],
    ['five times', [away, away, away, away, away]],
  ] as const) {
    refusals = [...answers, away];
    const action = await attach(id, serverId);
    assert.deepEqual([action.status, action.error?.code], ['error', 'hypervisor_failed'], title);
    assert.deepEqual([refusals, (await read(id)).state], [[], 'available'], title);
    assert.ok(!(await guestAddresses(serverId)).includes(address), title);
    assert.ok(
      (await generationsOf(serverId)).every((one) => one.address !== address),
      title,
    );
  }
  refusals = [away];
  assert.equal((await attach(id, serverId)).status, 'success');
});

test('a server elsewhere, without a public address or of another workspace can’t have an address', async () => {
  const { reserve, send, tenant } = await customerOf('Elsewhere');
  const stranger = await customerOf('Elsewhere stranger');
  const { id } = await reserve();
  const network = await send('POST', '/networks', { name: 'inside', location: 'fra' });
  const { serverId } = await world.ordering.createServer(systemActor, {
    ...{
      tenantId: tenant.id,
      plan: 'small',
      image: 'debian-12',
      networkId: network.body.id,
      publicIp: false,
    },
  });
  await settle();
  const refused = await send('POST', `/addresses/${id}/attach`, { server_id: serverId });
  assert.deepEqual([refused.status, refused.body.error.fields[0].path], [422, 'server_id'], refused.text);
  const foreign = await send('POST', `/addresses/${id}/attach`, { server_id: await stranger.deploy() });
  assert.equal(foreign.status, 404);
});

test('in the portal a person keeps, attaches, detaches and releases an address', async () => {
  const { email, deploy, send } = await customerOf('Portal');
  const serverId = await deploy();
  const person = await visit(world, email, '/client/addresses/');
  const refused = await person.post('/client/addresses/', { what: '198.51.100.7' });
  assert.equal(refused.status, 422);
  assert.match(await refused.text(), /No server of this workspace has this address/);
  await person.post('/client/addresses/', { what: '4', location: 'fra', name: 'front door' });
  const [{ id, address }] = (await send('GET', '/addresses')).body.addresses;
  const fields = { address: String(id) };
  assert.match(await person.page('/client/addresses/'), /1 address kept, 1 without a server\./);
  await person.post('/client/addresses/attach', { ...fields, server: String(serverId) });
  await settle();
  const shown = await person.page('/client/addresses/');
  for (const text of [
    address,
    'front door',
    '1 address kept, all with servers.',
    `/client/servers/${serverId}`,
  ])
    assert.ok(shown.includes(text), text);
  assert.match(await (await person.post('/client/addresses/release', fields)).text(), /Detach it first/);
  await person.post('/client/addresses/detach', fields);
  await settle();
  await person.post('/client/addresses/release', fields);
  assert.deepEqual((await send('GET', '/addresses')).body.addresses, []);
});
