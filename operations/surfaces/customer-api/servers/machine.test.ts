import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { CodedError } from '#common/errors/index.ts';
import { capabilities } from '#contracts/capabilities.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { chargeServerHours } from '#operations/servers/index.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
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

const digest = (password: string) => createHash('sha256').update(password).digest('hex');

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
  node.refusal = refusedBy('virsh vol-create-as: error: Storage volume not found: debian-13.qcow2');
  const asked = await act('rebuild', { image: 'debian-13' });
  await world.jobs.drain();
  node.refusal = null;
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
  node.stubborn.add(`vm-${serverId}`);
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
    node.refusal = fault;
    const asked = await act('resize', { plan: 'large' });
    for (let attempt = 0; attempt < 6; attempt += 1) {
      await world.jobs.drain();
      await due();
    }
    node.refusal = null;
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

  node.hasAgent = false;
  const first = await act('reset-password', {});
  await world.jobs.drain();
  const second = await act('reset-password', {});
  await world.jobs.drain();
  node.hasAgent = true;
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
  assert.deepEqual(node.forgotten, [`vm-${serverId}`], 'once: the first one gave way to the second');

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

test('a rescue starts another system beside the disk until its end, each once; meanwhile nothing else is done with the disk', async () => {
  const { act, read, action, guest, path, key, customer, eventsOf } = await running('Rescued');
  const [before, disk] = [await read(), await guest()];
  const able = async () => (await call('GET', '/api/v2/locations/fra', { key })).body.capabilities;
  const without = await act('rescue', {});
  assert.deepEqual([without.status, without.body.error.reason], [422, 'unsupported_action']);
  assert.ok(!(await able()).includes('rescue'));
  await ensureImage(world.database.db, {
    ...{ slug: 'rescue-13', name: 'Rescue 13', family: 'debian', kind: 'rescue' },
  });
  assert.ok((await able()).includes('rescue'));
  const images = async (query: string) =>
    (await call('GET', `/api/v2/images${query}`, { key })).body.images.map(
      (image: { slug: string; kind: string }) => [image.slug, image.kind],
    );
  assert.deepEqual(await images('?kind=rescue'), [['rescue-13', 'rescue']]);
  assert.ok(!(await images('')).flat().includes('rescue'));
  for (const [to, body] of [
    ['rescue', { rescue_image: 'debian-13' }],
    ['rebuild', { image: 'rescue-13' }],
  ] as const)
    assert.equal((await act(to, body)).body.error.reason, 'invalid_fields', to);
  const idle = await act('unrescue', {});
  assert.deepEqual([idle.status, idle.body.changed, idle.body.status], [202, false, 'success']);

  const headers = { 'idempotency-key': 'Kq4Zt7LmXw9Rb2Yd' };
  const asked = await act('rescue', {}, headers);
  assert.deepEqual([asked.status, asked.body.command], [202, 'rescue']);
  await world.jobs.drain();
  assert.deepEqual((await act('rescue', {}, headers)).body.root_password, asked.body.root_password);
  assert.deepEqual(
    [(await action(asked.body.id)).status, 'root_password' in (await action(asked.body.id))],
    ['success', false],
  );
  const rescued = await guest();
  assert.deepEqual(
    [rescued.rescue_image, rescued.power, rescued.rescue_password_digest],
    ['rescue-13', 'on', digest(asked.body.root_password)],
  );
  assert.deepEqual([rescued.image, rescued.password_digest], [disk.image, disk.password_digest]);
  const shown = await read();
  assert.deepEqual([shown.rescue, shown.status], [true, 'running']);
  for (const part of ['public_ips', 'private_networks', 'firewall', 'billing', 'plan', 'image'])
    assert.deepEqual(shown[part], before[part], part);
  const again = await act('rescue', {});
  assert.deepEqual([again.status, again.body.changed, again.body.root_password], [202, false, null]);
  for (const [to, body] of [
    ['rebuild', {}],
    ['resize', { plan: 'large' }],
    ['reset-password', {}],
  ] as const)
    assert.equal((await act(to, body)).body.error.reason, 'server_not_ready', to);
  const snapshot = await call('POST', `${path}/snapshots`, { key, body: {} });
  assert.equal(snapshot.body.error.reason, 'server_not_ready');

  const ended = await act('unrescue', {});
  assert.deepEqual([ended.status, 'root_password' in ended.body], [202, false]);
  await world.jobs.drain();
  assert.deepEqual([(await read()).rescue, (await read()).status], [false, 'running']);
  assert.deepEqual([(await guest()).rescue_image, (await guest()).power], [null, 'on']);
  const told = (await eventsOf()).filter((type) => type.includes('rescue'));
  assert.deepEqual(told, ['server.rescued', 'server.unrescued']);
  const { rows } = await world.database.pool.query(
    "select operation from audit_entries where operation like '%rescue' and tenant_id = $1 and after ->> 'imageSlug' is not null",
    [customer.tenant.id],
  );
  assert.deepEqual(rows, [{ operation: 'server.rescue' }]);

  node.refusal = refusedBy('The storage pool guests has no image rescue-13.qcow2.');
  const refused = await act('rescue', {});
  await world.jobs.drain();
  node.refusal = null;
  assert.equal((await action(refused.body.id)).error.code, 'hypervisor_failed');
  assert.deepEqual([(await read()).rescue, (await read()).status], [false, 'running']);
});

test('an ISO goes into the CD drive and comes out, each once; a rescue and a rebuild wait for its end', async () => {
  const { act, read, action, guest, key, eventsOf } = await running('Installed');
  const able = async () => (await call('GET', '/api/v2/locations/fra', { key })).body.capabilities;
  assert.ok(!(await able()).includes('iso'));
  for (const slug of ['tools', 'installer'])
    await ensureImage(world.database.db, { slug, name: slug, family: 'debian', kind: 'iso' });
  assert.ok((await able()).includes('iso'));
  const { images } = (await call('GET', '/api/v2/images?kind=iso', { key })).body;
  assert.deepEqual(
    images.map((image: { slug: string }) => image.slug),
    ['installer', 'tools'],
  );
  const unknown = await act('attach-iso', { iso: 'debian-12' });
  assert.deepEqual(unknown.body.error.fields[0].allowed, ['installer', 'tools']);
  const attach = async (iso: string) => {
    const asked = await act('attach-iso', { iso });
    await world.jobs.drain();
    return [asked.status, asked.body.changed, (await action(asked.body.id)).outcome];
  };
  assert.deepEqual(await attach('tools'), [202, true, null]);
  assert.deepEqual(await attach('tools'), [202, false, null]);
  assert.deepEqual(
    [(await read()).iso.slug, (await read()).status, (await guest()).iso],
    ['tools', 'running', 'tools'],
  );
  for (const to of ['rebuild', 'rescue'])
    assert.equal((await act(to, {})).body.error.reason, 'server_not_ready', to);
  assert.deepEqual(await attach('installer'), [202, true, null], 'it takes the place of the other');
  assert.equal((await guest()).iso, 'installer');

  node.refusal = refusedBy('The storage pool guests has no volume tools.iso.');
  const refused = await act('attach-iso', { iso: 'tools' });
  await world.jobs.drain();
  node.refusal = null;
  assert.equal((await action(refused.body.id)).error.code, 'hypervisor_failed');
  assert.equal((await read()).iso.slug, 'installer');

  const asked = await act('detach-iso', {});
  await world.jobs.drain();
  assert.deepEqual([(await read()).iso, (await guest()).iso], [null, null]);
  assert.equal((await act('detach-iso', {})).body.changed, false);
  assert.equal((await action(asked.body.id)).status, 'success');
  const told = (await eventsOf()).filter((type) => type.includes('iso'));
  assert.deepEqual(told, ['server.iso_attached', 'server.iso_attached', 'server.iso_detached']);
  node.hasDrive = false;
  assert.deepEqual(await attach('tools'), [202, true, 'next_boot']);
  node.hasDrive = true;
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
  node.unable = capabilities.filter((one) => one !== 'firewall');
  for (const [action, body] of [
    ['rebuild', {}],
    ['resize', { plan: 'large' }],
    ['reset-password', {}],
    ['rescue', {}],
    ['attach-iso', { iso: 'tools' }],
  ] as const) {
    const { status, body: answer } = await act(action, body);
    assert.deepEqual([status, answer.error.reason], [422, 'unsupported_action']);
    assert.match(answer.error.message, /^The hypervisors of Frankfurt can’t /);
  }
  const address = (await call('POST', '/api/v2/addresses', { key, body: {} })).body;
  const body = { server_id: serverId };
  const refused = await call('POST', `/api/v2/addresses/${address.id}/attach`, { key, body });
  assert.deepEqual([refused.status, refused.body.error.reason], [422, 'unsupported_action']);
  assert.doesNotMatch(await settings(), /id="(resize|password|rebuild|rescue|iso)"/);
  const able = async () => (await call('GET', '/api/v2/locations/fra', { key })).body.capabilities;
  assert.deepEqual(await able(), ['firewall'], 'told before a caller asks for it');
  node.unable = [];
  assert.deepEqual(await able(), capabilities);
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
