import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { CodedError } from '#common/errors/index.ts';
import type { Capability } from '#contracts/capabilities.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { chargeServerHours } from '#operations/servers/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { createApiClient } from '../testing/client.ts';

let world: World;
let call: ReturnType<typeof createApiClient>;
/** What the hypervisor says to a change of a guest; null: it carries it out. */
let refusal: CodedError | null = null;
let hasAgent = true;
/** Guests whose node was asked to forget a password. */
const forgotten: string[] = [];
let unable: readonly Capability[] = [];
/** Copies of disks go on. */
let copying = false;
/** How far guests are that are made; null: as far as can be. */
let making: 'copying' | 'booting' | null = null;
/** Guests of these names are asked to halt and do not. */
const stubborn = new Set<string>();

before(async () => {
  world = await createWorld({
    snapshotGbQuanta: 500,
    hypervisor: (usual) => {
      const refused = () => {
        if (refusal !== null) throw refusal;
      };
      return {
        ...usual,
        get capabilities() {
          return usual.capabilities.filter((one) => !unable.includes(one));
        },
        ensureGuest: async (...given) => making ?? usual.ensureGuest(...given),
        async signalShutdown(name) {
          if (!stubborn.has(name)) await usual.signalShutdown(name);
        },
        async rebuildGuest(...given) {
          refused();
          return usual.rebuildGuest(...given);
        },
        async resizeGuest(...given) {
          refused();
          return usual.resizeGuest(...given);
        },
        async createSnapshot(...given) {
          refused();
          return copying ? { progress: 40 } : usual.createSnapshot(...given);
        },
        async setRootPassword(...given) {
          return hasAgent ? usual.setRootPassword(...given) : 'next_boot';
        },
        async forgetRootPassword({ name }) {
          forgotten.push(name);
        },
      };
    },
  });
  call = createApiClient(world.url);
  await ensureImage(world.database.db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  const plan = { vcpus: 2, memoryMb: 4_096, diskGb: 80 };
  await ensurePlan(world.database.db, {
    ...{ ...plan, slug: 'large', name: 'Large', hourlyQuanta: 200, monthlyCapQuanta: 120_000 },
  });
  await ensurePlan(world.database.db, {
    ...{ ...plan, diskGb: 20, slug: 'wide', name: 'Wide', hourlyQuanta: 150, monthlyCapQuanta: 90_000 },
  });
});
after(() => world[Symbol.asyncDispose]());

async function running(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
  const path = `/api/v2/servers/${serverId}`;
  return {
    ...{ customer, key, serverId, path },
    act: (action: string, body: object, headers: Record<string, string> = {}) =>
      call('POST', `${path}/actions/${action}`, { key, body, headers }),
    read: async () => (await call('GET', path, { key })).body,
    action: async (id: number) => (await call('GET', `/api/v2/actions/${id}`, { key })).body,
    guest: async () => {
      const text =
        'select image, vcpus, memory_mb, disk_gb, power, password_digest from simulated_guests where name = $1';
      return (await world.database.pool.query(text, [`vm-${serverId}`])).rows[0];
    },
    room: async () => {
      const text =
        'select vcpus, memory_mb, disk_gb from node_reservations where server_id = $1 and released_at is null';
      return Object.values((await world.database.pool.query(text, [serverId])).rows[0]);
    },
    eventsOf: async () => {
      const text = "select type from events where data ->> 'server_id' = $1 order by id";
      return (await world.database.pool.query(text, [String(serverId)])).rows.map(
        (row) => row.type as string,
      );
    },
  };
}

const digest = (password: string) => createHash('sha256').update(password).digest('hex');
/** Makes delayed jobs due, as time would. */
const due = () => world.database.pool.query('update jobs set run_at = svc_now() where finished_at is null');
const refusedBy = (message: string) => new CodedError('hypervisor.refused', message);

test('a rebuild gives another disk and password; id, addresses, networks, firewall and price stay', async () => {
  const { act, read, action, guest, serverId, eventsOf } = await running('Rebuilt');
  const before = await read();
  const asked = await act('rebuild', { image: 'debian-13' });
  assert.deepEqual([asked.status, asked.body.command, asked.body.status], [202, 'rebuild', 'queued']);
  assert.match(asked.body.root_password, /^[A-Za-z0-9]{20}$/);
  assert.deepEqual([(await read()).image.slug, (await read()).locked], ['debian-12', true]);
  await world.jobs.drain();
  const ended = await action(asked.body.id);
  assert.deepEqual([ended.status, ended.error, 'root_password' in ended], ['success', null, false]);
  const after = await read();
  assert.equal(after.image.slug, 'debian-13');
  for (const part of [
    'id',
    'public_ips',
    'private_networks',
    'firewall',
    'billing',
    'plan',
    'hostname',
    'status',
  ])
    assert.deepEqual(after[part], before[part], part);
  const made = await guest();
  assert.deepEqual([made.image, made.power], ['debian-13', 'on']);
  assert.equal(made.password_digest, digest(asked.body.root_password));
  assert.ok((await eventsOf()).includes('server.rebuilt'));
  const { rows } = await world.database.pool.query(
    "select after from audit_entries where operation = 'server.rebuild' and subject_id = $1",
    [String(serverId)],
  );
  assert.equal(rows[0].after.imageSlug, 'debian-13');
});

test('a repeated rebuild with its Idempotency-Key is the same action with the same password, and wipes once', async () => {
  const { act, guest } = await running('Repeated');
  const headers = { 'idempotency-key': 'Vq8Zt3LmXw5Rk2Yd' };
  const [first, second] = [await act('rebuild', {}, headers), await act('rebuild', {}, headers)];
  assert.deepEqual([second.status, second.body], [202, first.body]);
  assert.equal(second.headers.get('idempotent-replayed'), 'true');
  await world.jobs.drain();
  const third = await act('rebuild', {}, headers);
  assert.deepEqual([third.body.id, third.body.root_password], [first.body.id, first.body.root_password]);
  assert.equal((await guest()).password_digest, digest(first.body.root_password));
  assert.equal(
    (await act('rebuild', { image: 'debian-13' }, headers)).body.error.reason,
    'idempotency_key_reused',
  );
});

test('a rebuild that the hypervisor refuses leaves the image, and says so', async () => {
  const { act, read, action, guest } = await running('Refused');
  refusal = refusedBy('virsh vol-create-as: error: Storage volume not found: debian-13.qcow2');
  const asked = await act('rebuild', { image: 'debian-13' });
  await world.jobs.drain();
  refusal = null;
  const ended = await action(asked.body.id);
  assert.deepEqual([ended.status, ended.error.code], ['error', 'hypervisor_failed']);
  assert.ok(!ended.error.message.includes('vol-create'), 'the words of the hypervisor stay inside');
  const server = await read();
  assert.deepEqual([server.image.slug, server.status, server.locked], ['debian-12', 'running', false]);
  assert.equal((await guest()).image, 'debian-12');
});

test('a dry run says what a rebuild and a resize would do and cost, and changes nothing', async () => {
  const { act, read, path, key } = await running('Rehearsed');
  const before = await read();
  const rebuild = await act('rebuild', { dry_run: true });
  assert.deepEqual([rebuild.status, rebuild.body.erases_disk, rebuild.body.due_now], [200, true, '0.00']);
  const resize = await act('resize', { plan: 'large', dry_run: true });
  assert.deepEqual(
    [resize.status, resize.body.restarts, resize.body.price_hourly, resize.body.due_now],
    [200, true, '0.02', '0.014'],
  );
  const same = await act('resize', { plan: 'small', dry_run: true });
  assert.deepEqual([same.body.changes, same.body.due_now], [false, '0.00']);
  assert.equal((await act('resize', { plan: 'none', dry_run: true })).status, 422);
  assert.deepEqual(await read(), before);
  assert.equal((await call('GET', `${path}/actions`, { key })).body.pagination.total, 1);
});

test('a resize changes plan, sizes, capacity and price; the hour that has begun costs the higher price once', async () => {
  const other = await running('Beside');
  const { act, read, guest, room, customer, serverId, eventsOf } = await running('Resized');
  const balance = () => world.billing.balanceOf(systemActor, customer.tenant.id);
  await moveWorldClock(world.database, '5 minutes');
  await chargeServerHours(world.database.db);
  const start = await balance();
  const up = await act('resize', { plan: 'large' });
  assert.deepEqual([up.status, up.body.command, 'root_password' in up.body], [202, 'resize', false]);
  assert.deepEqual(await room(), [2, 4_096, 80], 'held from the moment of the call');
  assert.deepEqual(await other.room(), [1, 2_048, 20], 'what another server holds stays');
  await world.jobs.drain();
  const server = await read();
  assert.deepEqual(
    [server.plan.slug, server.plan.disk_gb, server.status, server.billing.price_hourly],
    ['large', 80, 'running', '0.02'],
  );
  const made = await guest();
  assert.deepEqual([made.vcpus, made.memory_mb, made.disk_gb, made.power], [2, 4_096, 80, 'on']);
  assert.equal(start - (await balance()), 140, 'the difference for the hour that has begun');
  await chargeServerHours(world.database.db);
  assert.equal(start - (await balance()), 140, 'and nothing more within it');
  await moveWorldClock(world.database, '65 minutes');
  await chargeServerHours(world.database.db);
  assert.equal(start - (await balance()), 340);
  assert.ok((await eventsOf()).includes('server.resized'));

  const down = await act('resize', { plan: 'small' });
  assert.deepEqual([down.status, down.body.error.fields[0].code], [422, 'disk_too_small']);
  assert.equal((await world.servers.findServer(systemActor, null, serverId))?.currentAction, null);
  await moveWorldClock(world.database, '0');
});

test('an hour costs its highest price once, however often its server goes up and down in it', async () => {
  const { act, customer } = await running('Swinging');
  const balance = () => world.billing.balanceOf(systemActor, customer.tenant.id);
  await moveWorldClock(world.database, '5 minutes');
  await chargeServerHours(world.database.db);
  const start = await balance();
  const resize = async (plan: string) => {
    assert.equal((await act('resize', { plan, keep_disk: true })).status, 202);
    await world.jobs.drain();
  };
  for (const plan of ['large', 'small']) await resize(plan);
  assert.equal(start - (await balance()), 140);
  const again = await act('resize', { plan: 'large', keep_disk: true, dry_run: true });
  assert.deepEqual([again.body.price_hourly, again.body.due_now], ['0.02', '0.00']);
  for (const plan of ['large', 'small', 'large']) await resize(plan);
  assert.equal(start - (await balance()), 140);
  await moveWorldClock(world.database, '65 minutes');
  await chargeServerHours(world.database.db);
  assert.equal(start - (await balance()), 340, 'the next hour costs the price that it begins with');
  await moveWorldClock(world.database, '0');
});

test('hours that have begun before a resize cost the old price, also when they are charged late', async () => {
  const { act, customer } = await running('Late');
  const balance = () => world.billing.balanceOf(systemActor, customer.tenant.id);
  const start = await balance();
  await moveWorldClock(world.database, '65 minutes');
  await act('resize', { plan: 'large' });
  await world.jobs.drain();
  assert.equal(start - (await balance()), 60 + 60 + 140);
  await chargeServerHours(world.database.db);
  assert.equal(start - (await balance()), 60 + 60 + 140);
  await moveWorldClock(world.database, '0');
});

test('with keep_disk a server goes up and down again, and nothing is given back for the hour', async () => {
  const { act, read, room, customer, guest } = await running('Kept');
  await chargeServerHours(world.database.db);
  assert.equal((await act('resize', { plan: 'large', keep_disk: true })).status, 202);
  await world.jobs.drain();
  assert.deepEqual([(await read()).plan.slug, (await read()).plan.disk_gb], ['large', 20]);
  assert.deepEqual(await room(), [2, 4_096, 20]);
  const before = await world.billing.balanceOf(systemActor, customer.tenant.id);
  assert.equal((await act('resize', { plan: 'small' })).status, 202);
  await world.jobs.drain();
  const server = await read();
  assert.deepEqual([server.plan.slug, server.billing.price_hourly], ['small', '0.006']);
  assert.deepEqual([await room(), (await guest()).memory_mb], [[1, 2_048, 20], 2_048]);
  assert.equal(await world.billing.balanceOf(systemActor, customer.tenant.id), before);
  const again = await act('resize', { plan: 'small' });
  assert.deepEqual([again.status, again.body.changed, again.body.status], [202, false, 'success']);
});

test('a server that does not shut down in time is not resized, unless its power may be cut', async () => {
  const { act, read, action, room, serverId } = await running('Stubborn');
  stubborn.add(`vm-${serverId}`);
  const asked = await act('resize', { plan: 'wide', timeout_s: 30 });
  await world.jobs.drain();
  assert.deepEqual([(await read()).status, (await action(asked.body.id)).status], ['stopping', 'running']);
  await moveWorldClock(world.database, '31 seconds');
  await due();
  await world.jobs.drain();
  assert.equal((await action(asked.body.id)).error.code, 'shutdown_timeout');
  const kept = await read();
  assert.deepEqual([kept.plan.slug, kept.status, await room()], ['small', 'running', [1, 2_048, 20]]);

  await act('resize', { plan: 'wide', timeout_s: 1, on_timeout: 'stop' });
  await world.jobs.drain();
  await moveWorldClock(world.database, '60 seconds');
  await due();
  await world.jobs.drain();
  assert.deepEqual([(await read()).plan.slug, (await read()).status], ['wide', 'running']);
  await moveWorldClock(world.database, '0');
});

test('a resize that fails starts the server again with its plan, price and capacity', async () => {
  const { act, read, action, room, customer } = await running('Failed');
  await chargeServerHours(world.database.db);
  const balance = await world.billing.balanceOf(systemActor, customer.tenant.id);
  for (const fault of [
    refusedBy('pool guests is full'),
    new CodedError('hypervisor.failed', 'virsh hangs'),
  ]) {
    refusal = fault;
    const asked = await act('resize', { plan: 'large' });
    for (let attempt = 0; attempt < 6; attempt += 1) {
      await world.jobs.drain();
      await due();
    }
    refusal = null;
    assert.equal((await action(asked.body.id)).error.code, 'hypervisor_failed');
    const server = await read();
    assert.deepEqual(
      [server.plan.slug, server.status, server.billing.price_hourly, await room()],
      ['small', 'running', '0.006', [1, 2_048, 20]],
    );
  }
  assert.equal(await world.billing.balanceOf(systemActor, customer.tenant.id), balance);
});

test('a stopped server stays stopped over a resize, and a cancelled one has its capacity back', async () => {
  const { act, read, path, key, room } = await running('Stopped');
  await call('POST', `${path}/actions`, { key, body: { action: 'stop' } });
  await world.jobs.drain();
  const queued = await act('resize', { plan: 'large' });
  assert.equal((await call('DELETE', `/api/v2/actions/${queued.body.id}`, { key })).status, 200);
  await world.jobs.drain();
  assert.deepEqual([(await read()).plan.slug, (await read()).status], ['small', 'stopped']);
  assert.deepEqual(await room(), [1, 2_048, 20]);
  assert.equal((await act('resize', { plan: 'large', dry_run: true })).body.restarts, false);
  await act('resize', { plan: 'large' });
  await world.jobs.drain();
  assert.deepEqual([(await read()).plan.slug, (await read()).status], ['large', 'stopped']);
});

test('a higher price needs credit, and a plan that the node has no room for is refused', async () => {
  const { act, customer, room } = await running('Poor');
  await world.setBalance(customer.tenant, 0);
  assert.equal((await act('resize', { plan: 'large' })).body.error.reason, 'credit_required');
  await world.setBalance(customer.tenant, 10_000);
  await ensurePlan(world.database.db, {
    ...{ slug: 'huge', name: 'Huge', vcpus: 1, memoryMb: 16_777_216, diskGb: 20 },
    ...{ hourlyQuanta: 900, monthlyCapQuanta: 500_000 },
  });
  const full = await act('resize', { plan: 'huge' });
  assert.deepEqual([full.status, full.body.error.reason], [503, 'capacity_unavailable']);
  assert.deepEqual(await room(), [1, 2_048, 20]);
});

test('a new root password is in the answer alone and works in the running guest, without an agent from the next boot', async () => {
  const { act, action, guest, path, key, serverId } = await running('Locked');
  const asked = await act('reset-password', {});
  assert.equal(asked.status, 202);
  await world.jobs.drain();
  assert.equal((await action(asked.body.id)).status, 'success');
  assert.equal((await guest()).password_digest, digest(asked.body.root_password));

  assert.equal((await action(asked.body.id)).outcome, null);

  hasAgent = false;
  const first = await act('reset-password', {});
  await world.jobs.drain();
  const second = await act('reset-password', {});
  await world.jobs.drain();
  hasAgent = true;
  for (const { body } of [first, second]) {
    const { status, outcome } = await action(body.id);
    assert.deepEqual([status, outcome], ['success', 'next_boot']);
  }
  assert.equal(
    (await guest()).password_digest,
    digest(asked.body.root_password),
    'until then the old one holds',
  );
  const { rows } = await world.database.pool.query(
    `select run_at > svc_now() + interval '23 hours 50 minutes' as "isKept" from jobs
      where kind = 'servers.forget_password' and finished_at is null`,
  );
  assert.deepEqual(rows, [{ isKept: true }, { isKept: true }]);
  await due();
  await world.jobs.drain();
  assert.deepEqual(forgotten, [`vm-${serverId}`], 'once: the first one gave way to the second');

  await call('POST', `${path}/actions`, { key, body: { action: 'stop' } });
  await world.jobs.drain();
  assert.equal((await act('reset-password', {})).body.error.reason, 'server_not_ready');
});

test('a day later no password stands on an action', async () => {
  const { act } = await running('Later');
  const asked = await act('rebuild', {});
  await world.jobs.drain();
  const kept = async () =>
    (
      await world.database.pool.query('select root_password from server_actions where id = $1', [
        asked.body.id,
      ])
    ).rows[0].root_password;
  const clearing = loopOf(world.ordering, 'operations.root_passwords');
  await clearing.runOnce();
  assert.equal(await kept(), asked.body.root_password);
  await moveWorldClock(world.database, '25 hours');
  await clearing.runOnce();
  assert.equal(await kept(), null);
  await moveWorldClock(world.database, '0');
});

test('what the hypervisors of a location can not do is refused with the reason, and the portal does not offer it', async () => {
  const { act, path, key, customer, serverId } = await running('Unable');
  const cookie = await world.signIn(customer.email);
  const settings = async () =>
    (
      await fetch(`${world.url}/client/servers/${serverId}/settings`, {
        headers: { cookie, accept: 'text/html' },
      })
    ).text();
  assert.match(await settings(), /id="resize"[\s\S]*id="password"[\s\S]*id="rebuild"/);
  assert.match(
    await settings(),
    /each costs \$0\.05 a month for each GB that it takes, at most \$1\.0738 for/,
  );
  unable = ['rebuild', 'resize', 'reset_password', 'addresses', 'console', 'snapshots'];
  for (const [action, body] of [
    ['rebuild', {}],
    ['resize', { plan: 'large' }],
    ['reset-password', {}],
  ] as const) {
    const { status, body: answer } = await act(action, body);
    assert.deepEqual([status, answer.error.reason], [422, 'unsupported_action']);
    assert.match(answer.error.message, /^The hypervisors of Frankfurt can’t /);
  }
  const address = (await call('POST', '/api/v2/addresses', { key, body: {} })).body;
  const body = { server_id: serverId };
  const refused = await call('POST', `/api/v2/addresses/${address.id}/attach`, { key, body });
  assert.deepEqual([refused.status, refused.body.error.reason], [422, 'unsupported_action']);
  assert.doesNotMatch(await settings(), /id="(resize|password|rebuild)"/);
  const capabilities = async () => (await call('GET', '/api/v2/locations/fra', { key })).body.capabilities;
  assert.deepEqual(await capabilities(), ['firewall'], 'told before a caller asks for it');
  unable = [];
  assert.deepEqual(await capabilities(), [
    'firewall',
    'rebuild',
    'resize',
    'reset_password',
    'addresses',
    'console',
    'snapshots',
  ]);
  assert.equal((await call('GET', `${path}/actions`, { key })).body.pagination.total, 1);
});

test('while a rebuild runs other changes wait, and If-Match of before does not fit after', async () => {
  const { act, read, path, key } = await running('Busy');
  const etag = (await call('GET', path, { key })).headers.get('etag')!;
  const asked = await act('rebuild', { image: 'debian-13' }, { 'if-match': etag });
  assert.equal(asked.status, 202);
  for (const [action, body] of [
    ['rebuild', {}],
    ['resize', { plan: 'large' }],
    ['reset-password', {}],
  ] as const)
    assert.equal((await act(action, body)).body.error.reason, 'server_busy', action);
  assert.equal((await call('DELETE', path, { key })).body.error.reason, 'server_busy');
  await world.jobs.drain();
  const late = await act('rebuild', {}, { 'if-match': etag });
  assert.deepEqual([late.status, (await read()).image.slug], [412, 'debian-13']);
});

test('a snapshot is taken of a running server, listed, restored and deleted, each with its event', async () => {
  const { key, path, serverId, act, read, guest, eventsOf, action } = await running('Snapshot');
  const send = (method: string, to: string, body?: object, headers: Record<string, string> = {}) =>
    call(method, to, { key, headers, ...(body && { body }) });
  copying = true;
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
  copying = false;
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
  await moveWorldClock(world.database, '9 hours 30 minutes');
  await tick();
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
  refusal = refusedBy('no space left on device');
  const failed = await take();
  await world.jobs.drain();
  refusal = null;
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
  unable = ['snapshots'];
  assert.equal((await take()).body.error.reason, 'unsupported_action');
  unable = [];
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
  unable = ['snapshots'];
  assert.equal((await send('POST', '/api/v2/servers', order)).body.error.reason, 'unsupported_action');
  unable = [];
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
  const at = async (time: string, stage: typeof making) => {
    making = stage;
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
  making = null;
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
