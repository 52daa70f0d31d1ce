import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { type Call, createApiClient } from '../testing/client.ts';

/** Guests of these names are asked to halt and do not. */
const stubborn = new Set<string>();
/** What drivers were asked for. */
const asked: string[] = [];

let world: World;
let call: Call;
before(async () => {
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async signalShutdown(name) {
        if (!stubborn.has(name)) await usual.signalShutdown(name);
      },
      async setPower(name, to) {
        asked.push(`${name} ${to}`);
        await usual.setPower(name, to);
      },
      async restart(name, how) {
        asked.push(`${name} ${how}`);
        await usual.restart(name, how);
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

async function running(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
  const path = `/api/v2/servers/${serverId}`;
  const act = (body: object, prefer?: string) =>
    call('POST', `${path}/actions`, { key, body, ...(prefer ? { headers: { prefer } } : {}) });
  const read = (id: number) => call('GET', `/api/v2/actions/${id}`, { key });
  return { customer, key, serverId, path, act, read };
}

/** Makes delayed jobs due, as time would. */
const due = () => world.database.pool.query('update jobs set run_at = svc_now() where finished_at is null');

test('API-4.c: a shutdown says whether the guest halted, was only asked, or did not halt in its time', async () => {
  const { serverId, act, read, path, key } = await running('Halting');
  const stopped = await act({ action: 'shutdown' });
  await world.jobs.drain();
  assert.equal((await read(stopped.body.id)).body.outcome, 'stopped');
  await act({ action: 'start' });
  await world.jobs.drain();

  stubborn.add(`vm-${serverId}`);
  const signalled = await act({ action: 'shutdown', timeout_s: 0 });
  await world.jobs.drain();
  const only = await read(signalled.body.id);
  assert.deepEqual([only.body.status, only.body.outcome], ['success', 'signal_sent']);
  assert.equal((await call('GET', path, { key })).body.status, 'running', 'the halt was not observed');

  const waits = await act({ action: 'shutdown', timeout_s: 60 });
  await world.jobs.drain();
  assert.equal((await read(waits.body.id)).body.status, 'running');
  assert.equal((await call('GET', path, { key })).body.status, 'stopping');
  await moveWorldClock(world.database, '61 seconds');
  await due();
  await world.jobs.drain();
  const late = await read(waits.body.id);
  assert.deepEqual(
    [late.body.status, late.body.outcome, late.body.error.code],
    ['error', 'timeout', 'shutdown_timeout'],
  );
  assert.equal((await call('GET', path, { key })).body.status, 'running');

  const forced = await act({ action: 'shutdown', timeout_s: 1, on_timeout: 'stop' });
  await world.jobs.drain();
  await moveWorldClock(world.database, '90 seconds');
  await due();
  await world.jobs.drain();
  const cut = await read(forced.body.id);
  assert.deepEqual([cut.body.status, cut.body.outcome], ['success', 'timeout']);
  assert.equal((await call('GET', path, { key })).body.status, 'stopped');
  await moveWorldClock(world.database, '0');
});

test('API-4.4: each command asks the hypervisor for what it is', async () => {
  const { serverId, act, read } = await running('Commanded');
  const commands = { reboot: 'acpi', reset: 'reset', stop: 'off', start: 'on' };
  for (const [action, expected] of Object.entries(commands)) {
    asked.length = 0;
    const { body } = await act({ action });
    await world.jobs.drain();
    assert.deepEqual(asked, [`vm-${serverId} ${expected}`]);
    assert.equal((await read(body.id)).body.status, 'success');
  }
});

test('API-4.c: a slow guest is checked again later, and no worker waits for it', async () => {
  const { serverId, act, read } = await running('Slow');
  stubborn.add(`vm-${serverId}`);
  const asked = await act({ action: 'shutdown' });
  await world.jobs.drain();
  assert.equal((await read(asked.body.id)).body.status, 'running');
  await world.hypervisor.setPower(`vm-${serverId}`, 'off');
  await due();
  await world.jobs.drain();
  assert.deepEqual((await read(asked.body.id)).body.outcome, 'stopped');
});

test('API-4.c: a stop, a reset and the destruction take the place of a shutdown that waits', async () => {
  for (const [harder, status] of [
    ['stop', 'stopped'],
    ['reset', 'running'],
    ['destroy', undefined],
  ] as const) {
    const { serverId, act, read, path, key } = await running(`Waits-${harder}`);
    stubborn.add(`vm-${serverId}`);
    const shutdown = await act({ action: 'shutdown', timeout_s: 3_600 });
    await world.jobs.drain();
    for (const softer of ['start', 'reboot', 'shutdown'])
      assert.equal((await act({ action: softer })).status, 409, `${softer} waits`);
    const taken = harder === 'destroy' ? await call('DELETE', path, { key }) : await act({ action: harder });
    assert.deepEqual([taken.status, taken.body.command], [202, harder]);
    await due();
    await world.jobs.drain();
    const ended = (await read(shutdown.body.id)).body;
    assert.deepEqual([ended.status, ended.outcome, ended.error.code], ['error', null, 'superseded']);
    assert.equal((await read(taken.body.id)).body.status, 'success');
    assert.equal((await call('GET', path, { key })).body.status, status);
  }
});

test('an action that has not begun is cancelled, and the server keeps its state', async () => {
  const { serverId, act, read, path, key } = await running('Cancelled');
  const stop = await act({ action: 'stop' });
  const cancel = () => call('DELETE', `/api/v2/actions/${stop.body.id}`, { key });
  for (const once of [await cancel(), await cancel()])
    assert.deepEqual([once.status, once.body.status, once.body.error.code], [200, 'error', 'cancelled']);
  await world.jobs.drain();
  assert.equal(await world.hypervisor.readPower(`vm-${serverId}`), 'on');
  assert.equal((await call('GET', path, { key })).body.status, 'running');
  assert.equal((await read(stop.body.id)).body.finished_at !== null, true);

  const done = await act({ action: 'stop' });
  await world.jobs.drain();
  const late = await call('DELETE', `/api/v2/actions/${done.body.id}`, { key });
  assert.deepEqual([late.status, late.body.error.reason], [409, 'action_not_cancellable']);
  const start = await act({ action: 'start' });
  assert.equal((await call('DELETE', `/api/v2/actions/${start.body.id}`, { key })).status, 200);
  await world.jobs.drain();
  assert.equal((await call('GET', path, { key })).body.status, 'stopped');
  const { body } = await act({ action: 'start' });
  assert.equal(
    (await call('DELETE', `/api/v1/actions/${body.id}`, { key })).status,
    405,
    'v1 stays as it is',
  );
});

test('a shutdown that waits is cancelled: the power is not cut when its time is over', async () => {
  const { serverId, act, read, path, key } = await running('Called-off');
  stubborn.add(`vm-${serverId}`);
  const { body } = await act({ action: 'shutdown', timeout_s: 60, on_timeout: 'stop' });
  await world.jobs.drain();
  assert.equal((await read(body.id)).body.status, 'running');
  assert.equal((await call('DELETE', `/api/v2/actions/${body.id}`, { key })).status, 200);
  await moveWorldClock(world.database, '61 seconds');
  await due();
  await world.jobs.drain();
  assert.equal(await world.hypervisor.readPower(`vm-${serverId}`), 'on');
  const server = (await call('GET', path, { key })).body;
  assert.deepEqual([server.status, server.locked], ['running', false]);
  await moveWorldClock(world.database, '0');
});

test('an order whose provisioning has not begun is cancelled by destroying its server', async () => {
  const { customer, key } = await running('Ordered');
  const { body } = await call('POST', '/api/v2/servers', {
    key,
    body: { plan: 'small', image: 'debian-12' },
  });
  assert.equal(body.status, 'queued');
  const order = await call('DELETE', `/api/v2/actions/${body.current_action.id}`, { key });
  assert.deepEqual([order.status, order.body.error.reason], [409, 'action_not_cancellable']);
  const destroyed = await call('DELETE', `/api/v2/servers/${body.id}`, { key });
  assert.equal(destroyed.status, 202);
  await world.jobs.drain();
  assert.equal((await call('GET', `/api/v2/servers/${body.id}`, { key })).status, 404);
  const create = await call('GET', `/api/v2/actions/${body.current_action.id}`, { key });
  assert.equal(create.body.error.code, 'superseded');
  assert.deepEqual(await world.addresses.listAllocationsOfServers([body.id]), []);
  assert.ok(!(await world.hypervisor.observeGuests()).some((guest) => guest.name === `vm-${body.id}`));
  assert.equal(customer.tenant.status, 'ACTIVE');
});

test('API-4.c: what a shutdown takes is refused of other actions, and what is out of bounds of itself', async () => {
  const { act } = await running('Bounds');
  for (const body of [
    { action: 'stop', timeout_s: 5 },
    { action: 'start', on_timeout: 'stop' },
    { action: 'shutdown', timeout_s: -1 },
    { action: 'shutdown', timeout_s: 4_000 },
    { action: 'shutdown', on_timeout: 'explode' },
    { action: 'halt' },
    { action: 'pause' },
  ])
    assert.equal((await act(body)).status, 422, JSON.stringify(body));
});

test('a waiting call is answered when the action has finished, not before and not long after', async () => {
  const { act, read, key, path } = await running('Waiting');
  const waiting = act({ action: 'reboot' }, 'wait=20');
  await until(
    async () =>
      (
        await world.database.pool.query(
          "select 1 from jobs where kind = 'servers.power' and finished_at is null",
        )
      ).rowCount === 1,
  );
  const reading = call('GET', `${path}?wait_for=status:running`, { key });
  await world.jobs.drain();
  const answer = await waiting;
  assert.deepEqual([answer.status, answer.body.status], [200, 'success']);
  assert.equal(answer.headers.get('preference-applied'), 'wait=20');
  assert.equal((await reading).body.status, 'running');
  const again = await call('GET', `/api/v2/actions/${answer.body.id}`, {
    key,
    headers: { prefer: 'respond-async, wait=900' },
  });
  assert.equal(again.headers.get('preference-applied'), 'wait=30', 'bounded');
  assert.equal((await read(answer.body.id)).headers.get('etag'), again.headers.get('etag'));
});

test('a wait that is over answers with what there is', async () => {
  const { act, key, path } = await running('Over');
  const action = await act({ action: 'reboot' }, 'wait=1');
  assert.deepEqual([action.status, action.body.status], [202, 'queued']);
  assert.equal(action.headers.get('preference-applied'), 'wait=1');
  const server = await call('GET', `${path}?wait_for=status:stopped`, { key, headers: { prefer: 'wait=1' } });
  assert.equal(server.body.status, 'rebooting');
  assert.equal(server.headers.get('preference-applied'), 'wait=1');
  for (const wanted of ['running', 'status:', 'status:gone', 'power:on'])
    assert.equal((await call('GET', `${path}?wait_for=${wanted}`, { key })).status, 422, wanted);
});

test('a caller that wants to wait for nothing is answered at once', { timeout: 25_000 }, async () => {
  const { key, path } = await running('Hasty');
  const server = await call('GET', `${path}?wait_for=status:stopped`, { key, headers: { prefer: 'wait=0' } });
  assert.deepEqual([server.status, server.body.status], [200, 'running']);
  assert.equal(server.headers.get('preference-applied'), 'wait=0');
});

test('a server that fails, or goes, ends a wait for its running', async () => {
  const { serverId, key, path, customer } = await running('Ending');
  const failing = call('GET', `${path}?wait_for=status:stopped`, { key });
  const going = call('GET', `${path}?wait_for=status:stopped,unknown`, { key });
  await call('GET', path, { key });
  await world.database.pool.query("update servers set provisioning_state = 'failed' where id = $1", [
    serverId,
  ]);
  assert.equal((await failing).body.status, 'failed');
  assert.equal((await going).body.status, 'failed');
  const other = await world.deploy(customer.tenant, 'gone');
  const gone = call('GET', `/api/v2/servers/${other.serverId}?wait_for=status:stopped`, { key });
  await call('DELETE', `/api/v2/servers/${other.serverId}`, { key });
  await world.jobs.drain();
  assert.equal((await gone).status, 404);
});

test('API-4.2, API-4.8: an action is its owner’s alone, and tells how a destroyed server went', async () => {
  const { serverId, key, path, read } = await running('Mine');
  const foreign = await running('Foreign');
  const destroyed = await call('DELETE', path, { key });
  await world.jobs.drain();
  assert.equal((await call('GET', path, { key })).status, 404);
  const told = await read(destroyed.body.id);
  assert.deepEqual(
    [told.body.status, told.body.command, told.body.server_id],
    ['success', 'destroy', serverId],
  );
  const theirs = await foreign.act({ action: 'reboot' });
  for (const id of [theirs.body.id, 987_654, 'x', '0'])
    assert.equal((await call('GET', `/api/v1/actions/${id}`, { key })).status, 404, String(id));
});

test('a guest that was switched by itself is shown as it is, and one that is acted upon is left alone', async () => {
  const { serverId, key, path, act } = await running('Observed');
  const observe = () => world.observePower();
  await world.hypervisor.setPower(`vm-${serverId}`, 'off');
  await observe();
  assert.equal((await call('GET', path, { key })).body.status, 'stopped');
  await world.hypervisor.setPower(`vm-${serverId}`, 'on');
  await act({ action: 'start' });
  await observe();
  assert.equal((await call('GET', path, { key })).body.status, 'starting');
  await world.jobs.drain();
  await world.hypervisor.ensureGone(`vm-${serverId}`);
  await observe();
  assert.equal((await call('GET', path, { key })).body.status, 'unknown');
  const nodes = await world.clusters.listNodes(systemActor, null);
  assert.ok(nodes.every((node) => node.seenAt !== null && node.lastError === null));
});

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((wake) => setImmediate(wake));
}
