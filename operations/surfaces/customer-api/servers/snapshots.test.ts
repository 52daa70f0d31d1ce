import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { ensurePlan } from '#operations/catalog/index.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { createMachineWorld, type MachineWorld, refusedBy } from '../testing/machine-world.ts';

let machine: MachineWorld;
let world: MachineWorld['world'];
let call: MachineWorld['call'];
let node: MachineWorld['node'];
let running: MachineWorld['running'];
let due: MachineWorld['due'];
before(async () => {
  machine = await createMachineWorld();
  ({ world, call, node, running, due } = machine);
});
after(() => machine[Symbol.asyncDispose]());

test('a snapshot is taken of a running server, listed, restored and deleted, each with its event', async () => {
  const { key, path, serverId, act, read, guest, eventsOf, action } = await running('Snapshot');
  const send = (method: string, to: string, body?: object, headers: Record<string, string> = {}) =>
    call(method, to, { key, headers, ...(body && { body }) });
  node.copying = true;
  const repeated = { 'idempotency-key': 'snapshot-of-monday' };
  const asked = await send('POST', `${path}/snapshots`, { name: 'before the update' }, repeated);
  const { id, action_id: actionId } = asked.body;
  assert.deepEqual([asked.status, asked.body.state, asked.body.size_bytes], [202, 'creating', null]);
  assert.equal(asked.headers.get('location'), `/api/v2/snapshots/${id}`);
  assert.equal(
    (await send('POST', `${path}/snapshots`, { name: 'before the update' }, repeated)).body.id,
    id,
  );
  await world.jobs.drain();
  assert.deepEqual(
    [(await action(actionId)).status, (await action(actionId)).progress, (await read()).status],
    ['running', 40, 'running'],
  );
  for (const [method, to] of [
    ['POST', `${path}/snapshots`],
    ['POST', `/api/v2/snapshots/${id}/restore`],
    ['DELETE', `/api/v2/snapshots/${id}`],
  ] as const)
    assert.equal((await send(method, to)).body.error.reason, 'server_busy', to);
  node.copying = false;
  await due();
  await world.jobs.drain();
  const kept = (await send('GET', `/api/v2/snapshots/${id}`)).body;
  const { server_id, name, state, image, disk_gb, size_bytes } = kept;
  assert.deepEqual(
    { server_id, name, state, image: image.slug, disk_gb, size_bytes },
    {
      ...{ server_id: serverId, name: 'before the update', state: 'ready', image: 'debian-12' },
      ...{ disk_gb: 20, size_bytes: 20 * 1024 ** 3 },
    },
  );
  for (const list of ['/api/v2/snapshots', `${path}/snapshots`]) {
    const answer = (await send('GET', list)).body;
    assert.deepEqual([answer.snapshots, answer.limits], [[kept], { max: 5 }], list);
  }

  const { password_digest: password } = await guest();
  await act('rebuild', { image: 'debian-13' });
  await world.jobs.drain();
  const forecast = await send('POST', `/api/v2/snapshots/${id}/restore`, { dry_run: true });
  assert.equal(forecast.status, 200);
  const { command, restarts, erases_disk } = forecast.body;
  assert.deepEqual([command, restarts, erases_disk], ['restore_snapshot', true, true]);
  const stale = { 'if-match': '"stale"' };
  for (const to of [`/api/v2/snapshots/${id}/restore`, `${path}/snapshots`])
    assert.equal((await send('POST', to, {}, stale)).body.error.reason, 'etag_mismatch', to);
  const tag = { 'if-match': (await send('GET', path)).headers.get('etag')! };
  const restore = await send('POST', `/api/v2/snapshots/${id}/restore`, {}, tag);
  assert.deepEqual([restore.status, restore.body.command], [202, 'restore_snapshot']);
  await world.jobs.drain();
  const { image: guestImage, power, password_digest } = await guest();
  assert.deepEqual([guestImage, power, password_digest], ['debian-12', 'on', password]);
  assert.deepEqual([(await read()).image.slug, (await read()).status], ['debian-12', 'running']);

  assert.equal((await send('DELETE', `/api/v2/snapshots/${id}`)).status, 204);
  assert.equal((await send('GET', `/api/v2/snapshots/${id}`)).status, 404);
  assert.equal((await send('POST', `/api/v2/snapshots/${id}/restore`)).status, 404);
  const told = (await eventsOf()).filter((type) => type.startsWith('snapshot.'));
  assert.deepEqual(told, ['snapshot.created', 'snapshot.restored', 'snapshot.deleted']);
});

test('a snapshot costs what it takes by the hour, from when it is ready until it is deleted, each hour once', async () => {
  const { key, path, customer } = await running('Stored');
  const send = (method: string, to: string, body?: object) =>
    call(method, to, { key, ...(body && { body }) });
  assert.deepEqual((await send('GET', '/api/v2/prices')).body.snapshots, { per_gb_month: '0.05' });
  const forecast = await send('POST', `${path}/snapshots`, { dry_run: true });
  const { server_id: _, ...price } = forecast.body;
  assert.deepEqual(
    [forecast.status, price],
    [200, { disk_gb: 20, price_per_gb_month: '0.05', price_monthly_max: '1.0738', currency: 'USD' }],
  );
  assert.deepEqual((await send('GET', `${path}/snapshots`)).body.snapshots, [], 'nothing was taken');
  const spent = async () => {
    const entries = await world.billing.listEntries(systemActor, customer.tenant.id, 100);
    return entries
      .filter(({ metadata }) => metadata.source === 'snapshots')
      .map(({ amountQuanta }) => -amountQuanta)
      .reverse();
  };
  await world.setBalance(customer.tenant, 0);
  const refused = await send('POST', `${path}/snapshots`);
  assert.deepEqual([refused.status, refused.body.error.reason], [402, 'credit_required']);
  await world.setBalance(customer.tenant, 50_000);
  const tick = () => Promise.all([1, 2, 3].map(() => world.servers.chargeSnapshots()));
  const { id } = (await send('POST', `${path}/snapshots`)).body;
  await tick();
  assert.deepEqual(await spent(), [], 'while it is copied');
  await world.jobs.drain();
  // 20 GiB at $0.05 for a GB in 730 hours: 14.7 quanta an hour.
  await tick();
  await tick();
  assert.deepEqual(await spent(), [14]);
  await moveWorldClock(world.database, '61 minutes');
  await tick();
  assert.deepEqual(await spent(), [14, 15]);
  /** What it costs in this month if it stays: what is charged, and what is estimated to follow. */
  const month = async () => {
    const ahead = await world.servers.remainingSnapshotCostOfMonth(systemActor, customer.tenant.id);
    return (await spent()).reduce((sum, quanta) => sum + quanta, ahead);
  };
  const { rows } = await world.database.pool.query(
    `select ceil(extract(epoch from
      (date_trunc('month', ready_at at time zone 'utc') + interval '1 month') at time zone 'utc' - ready_at) / 3600)::int as hours
    from server_snapshots where id = $1`,
    [id],
  );
  const whole = Math.floor((20 * 1024 ** 3 * rows[0].hours * 500) / 730e9);
  assert.equal(await month(), whole);
  await moveWorldClock(world.database, '9 hours 30 minutes');
  assert.equal(await month(), whole, 'hours that are not charged yet are part of what follows');
  await tick();
  assert.equal(await month(), whole);
  assert.deepEqual(await spent(), [14, 15, 118], 'the hours without a tick are made up for');
  await moveWorldClock(world.database, '10 hours 30 minutes');
  assert.equal((await send('DELETE', `/api/v2/snapshots/${id}`)).status, 204);
  await world.jobs.drain();
  await tick();
  assert.deepEqual(await spent(), [14, 15, 118, 14]);
  await moveWorldClock(world.database, '0');
});

test('a snapshot that the hypervisor refuses is none, one beyond the limit is refused, and all go with their server', async () => {
  const { key, path, action, eventsOf } = await running('Limited');
  const take = () => call('POST', `${path}/snapshots`, { key });
  const list = async () => (await call('GET', `${path}/snapshots`, { key })).body.snapshots;
  node.refusal = refusedBy('no space left on device');
  const failed = await take();
  await world.jobs.drain();
  node.refusal = null;
  const { status, error } = await action(failed.body.action_id);
  assert.deepEqual([status, error.code, await list()], ['error', 'hypervisor_failed', []]);
  for (let taken = 0; taken < 5; taken += 1) {
    assert.equal((await take()).status, 202);
    await world.jobs.drain();
  }
  const beyond = await take();
  assert.deepEqual(
    [beyond.status, beyond.body.error.reason, beyond.body.error.details],
    [422, 'limit_exceeded', { limit: 'snapshots', max: 5, used: 5 }],
  );
  node.unable = ['snapshots'];
  assert.equal((await take()).body.error.reason, 'unsupported_action');
  node.unable = [];
  await call('DELETE', path, { key });
  await world.jobs.drain();
  assert.deepEqual((await call('GET', '/api/v2/snapshots', { key })).body.snapshots, []);
  assert.equal((await eventsOf()).filter((type) => type === 'snapshot.deleted').length, 5);
  const { entries } = (await call('GET', '/api/v2/ledger?source=snapshots', { key })).body;
  assert.deepEqual(
    entries.map((entry: { amount: string }) => entry.amount),
    Array(5).fill('-0.0014'),
    'the hour of each that had begun',
  );
  const { rows } = await world.database.pool.query(
    'select id from server_snapshots where server_id = $1 union all select snapshot from simulated_snapshots where guest = $2',
    [path.split('/').at(-1), `vm-${path.split('/').at(-1)}`],
  );
  assert.deepEqual(rows, []);
});

test('a server is made from a snapshot in place of an image, in its location, with a plan that holds its disk', async () => {
  const { key, path, serverId, customer, act } = await running('Copied');
  const send = (method: string, to: string, body?: object, headers: Record<string, string> = {}) =>
    call(method, to, { key, headers, ...(body && { body }) });
  await act('rebuild', { image: 'debian-13' });
  await world.jobs.drain();
  const { id: snapshot } = (await send('POST', `${path}/snapshots`, { name: 'golden' })).body;
  const faultsOf = async (body: object, version = 'v2') => {
    const { status, body: answer } = await send('POST', `/api/${version}/servers`, body);
    return [
      status,
      ...answer.error.fields.map((fault: Record<string, string>) => `${fault.path}:${fault.code}`),
    ];
  };
  const order = { plan: 'small', snapshot };
  assert.deepEqual(await faultsOf(order), [422, 'snapshot:unknown_value'], 'while it is taken');
  await world.jobs.drain();
  assert.deepEqual(await faultsOf({ plan: 'small' }), [422, 'image:required']);
  assert.deepEqual(await faultsOf({ ...order, image: 'debian-12' }), [422, 'snapshot:conflict']);
  assert.deepEqual(await faultsOf({ ...order, snapshot: 999_999 }), [422, 'snapshot:unknown_value']);
  assert.deepEqual(await faultsOf(order, 'v1'), [422, 'image:required', 'snapshot:unknown_field']);
  await ensurePlan(world.database.db, {
    ...{
      slug: 'tiny',
      name: 'Tiny',
      vcpus: 1,
      memoryMb: 512,
      diskGb: 10,
      hourlyQuanta: 30,
      monthlyCapQuanta: 20_000,
    },
  });
  assert.deepEqual(await faultsOf({ ...order, plan: 'tiny' }), [422, 'plan:disk_too_small']);
  const strangerKey = await world.createKey(await world.createCustomer('Stranger'));
  const foreign = await call('POST', '/api/v2/servers', { key: strangerKey, body: order });
  const absent = await call('POST', '/api/v2/servers', {
    key: strangerKey,
    body: { ...order, snapshot: 999_999 },
  });
  assert.deepEqual([foreign.status, foreign.body.error.fields], [422, absent.body.error.fields]);
  node.unable = ['snapshots'];
  assert.equal((await send('POST', '/api/v2/servers', order)).body.error.reason, 'unsupported_action');
  node.unable = [];
  const forecast = await send('POST', '/api/v2/servers', { ...order, dry_run: true });
  assert.deepEqual([forecast.status, forecast.body.would_create], [200, true]);
  assert.equal((await send('DELETE', `/api/v2/snapshots/${snapshot}`, { dry_run: true })).status, 422);

  const once = { 'idempotency-key': 'copy-of-golden' };
  const made = await send('POST', '/api/v2/servers', { ...order, name: 'copy' }, once);
  assert.deepEqual([made.status, made.body.image.slug, made.body.status], [201, 'debian-13', 'queued']);
  assert.equal(
    (await send('POST', '/api/v2/servers', { ...order, name: 'copy' }, once)).body.id,
    made.body.id,
  );
  for (const to of [`/api/v2/snapshots/${snapshot}`, path]) {
    const { status, body } = await send('DELETE', to);
    assert.deepEqual([status, body.error?.reason], [409, 'server_busy'], `${to} stays until the copy runs`);
  }
  await world.jobs.drain();
  const copy = (await send('GET', `/api/v2/servers/${made.body.id}`)).body;
  assert.deepEqual([copy.status, copy.location.slug, copy.plan.slug], ['running', 'fra', 'small']);
  const { rows } = await world.database.pool.query(
    `select (select node_id from node_reservations where server_id = $1) = (select node_id from node_reservations where server_id = $2) as "isSameNode",
      (select after ->> 'snapshotId' from audit_entries where operation = 'server.create' and subject_id = $2::text) as audited`,
    [serverId, copy.id],
  );
  assert.deepEqual(rows, [{ isSameNode: true, audited: String(snapshot) }]);

  const cookie = await world.signIn(customer.email);
  const page = async (to: string) =>
    (await fetch(`${world.url}${to}`, { headers: { cookie, accept: 'text/html' } })).text();
  const href = /href="(\/client\/servers\/new\?snapshot=[^"]+)"/.exec(
    await page(`/client/servers/${serverId}/settings`),
  )?.[1];
  assert.match(
    await page(href!.replaceAll('&amp;', '&')),
    new RegExp(`<option value="${snapshot}" selected[^>]*>golden of copied, 20 GB`),
  );

  assert.equal((await send('DELETE', `/api/v2/snapshots/${snapshot}`)).status, 204);
  assert.equal((await send('DELETE', path)).status, 202);
  await world.jobs.drain();
  assert.equal((await send('GET', `/api/v2/servers/${copy.id}`)).body.status, 'running');
});

test('a server whose copy of a snapshot takes long has its time to boot from when that is complete', async () => {
  const { key, path, customer } = await running('Slow');
  const send = (method: string, to: string, body?: object) =>
    call(method, to, { key, ...(body && { body }) });
  const { id: snapshot } = (await send('POST', `${path}/snapshots`)).body;
  await world.jobs.drain();
  const { id } = (await send('POST', '/api/v2/servers', { plan: 'small', snapshot })).body;
  const statusOf = async () => (await send('GET', `/api/v2/servers/${id}`)).body.status;
  const at = async (time: string, stage: typeof node.making) => {
    node.making = stage;
    await moveWorldClock(world.database, time);
    await due();
    await world.jobs.drain();
    return statusOf();
  };
  assert.equal(await at('0', 'copying'), 'provisioning');
  assert.equal(await at('5 hours', 'copying'), 'provisioning');
  assert.equal(await at('5 hours 2 minutes', 'booting'), 'provisioning');
  assert.equal((await send('DELETE', `/api/v2/snapshots/${snapshot}`)).body.error.reason, 'server_busy');
  assert.equal(await at('5 hours 4 minutes', 'booting'), 'failed');
  assert.equal(
    (await send('DELETE', `/api/v2/snapshots/${snapshot}`)).status,
    204,
    'a failed one needs it no more',
  );
  const again = (await send('POST', `${path}/snapshots`)).body.id;
  await world.jobs.drain();
  await world.setBalance(customer.tenant, 0);
  await world.saveCard(customer.tenant, '4000000000000002');
  const unpaid = await send('POST', '/api/v2/servers', { plan: 'small', snapshot: again });
  assert.equal(unpaid.body.error.reason, 'charge_declined');
  assert.equal(
    (await send('DELETE', `/api/v2/snapshots/${again}`)).status,
    204,
    'nor does an order without a payment',
  );
  node.making = null;
  await moveWorldClock(world.database, '0');
});

test('a snapshot that is deleted while a server is ordered from it is gone for the order, or stays for it', async () => {
  const { key, path } = await running('Raced');
  const send = (method: string, to: string, body?: object) =>
    call(method, to, { key, ...(body && { body }) });
  const seen = new Set<string>();
  for (let race = 0; race < 6; race += 1) {
    const { id: snapshot } = (await send('POST', `${path}/snapshots`)).body;
    await world.jobs.drain();
    const order = () => send('POST', '/api/v2/servers', { plan: 'small', snapshot });
    const remove = () => send('DELETE', `/api/v2/snapshots/${snapshot}`);
    // The deletion charges the hours that have begun to the balance that the order has locked.
    const early = race % 2 === 0 ? null : remove();
    const [ordered, removed] = await Promise.all([order(), early ?? remove()]);
    seen.add(`${ordered.status} ${removed.status}`);
    await world.jobs.drain();
    if (ordered.status === 201)
      assert.equal((await send('GET', `/api/v2/servers/${ordered.body.id}`)).body.status, 'running');
    if (removed.status !== 204) assert.equal((await remove()).status, 204);
  }
  for (const outcome of seen) assert.match(outcome, /^(201 409|422 204)$/);
});
