import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { CONFIRM_FIELD } from '#service-kit/pages/index.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

test('names and labels that can not be are said at their fields, which keep what was entered', async () => {
  const { email, tenant } = await world.createCustomer('Settings');
  const { serverId } = await world.deploy(tenant, 'web-1');
  const headers = { accept: 'text/html', cookie: await world.signIn(email) };
  const path = `${world.url}/client/servers/${serverId}`;
  const page = await (await fetch(`${path}/settings`, { headers })).text();
  const token = /name="csrf_token" value="([^"]+)"/.exec(page)![1]!;
  const send = (fields: Record<string, string>) =>
    fetch(`${path}/words`, {
      ...{ method: 'POST', headers, redirect: 'manual' },
      body: new URLSearchParams({
        csrf_token: token,
        name: 'web-1',
        hostname: 'web-1',
        labels: '',
        ...fields,
      }),
    });

  const label = `${'<long>'.repeat(20)}=1`;
  const refused = await send({ name: 'n'.repeat(65), hostname: 'UPPER', labels: label });
  assert.equal(refused.status, 422);
  const text = await refused.text();
  const errorAt = (name: string) => new RegExp(`id="field-${name}-error">■ ([^<]+)<`).exec(text)?.[1];
  assert.match(errorAt('name') ?? '', /^Must be 1 to 64 characters/);
  assert.match(errorAt('hostname') ?? '', /^Must be a host name/);
  // Of a name that long its beginning is enough.
  assert.match(errorAt('labels') ?? '', /^(&lt;long&gt;){6}&lt;lon…: a label is named by letters/);
  for (const kept of ['n'.repeat(65), 'UPPER', '&lt;long&gt;'.repeat(20)]) assert.ok(text.includes(kept));

  assert.equal((await send({ name: 'web-2', labels: 'env=prod' })).status, 303);
  assert.match(await (await fetch(`${path}/settings`, { headers })).text(), /value="web-2"[\s\S]*env=prod/);
});

test('a server is resized, rebuilt, given a root password and taken snapshots of from its settings; the password is shown once', async () => {
  const { email, tenant } = await world.createCustomer('Machines');
  await ensurePlan(world.database.db, {
    ...{ slug: 'large', name: 'Large', vcpus: 2, memoryMb: 4_096, diskGb: 80 },
    ...{ hourlyQuanta: 200, monthlyCapQuanta: 120_000 },
  });
  await ensureImage(world.database.db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  const { serverId } = await world.deploy(tenant, 'web-3');
  const headers = { accept: 'text/html', cookie: await world.signIn(email) };
  const path = `${world.url}/client/servers/${serverId}`;
  const page = await (await fetch(`${path}/settings`, { headers })).text();
  const token = /name="csrf_token" value="([^"]+)"/.exec(page)![1]!;
  const send = (to: string, fields: Record<string, string>) =>
    fetch(`${path}/${to}`, {
      ...{ method: 'POST', headers, redirect: 'manual' },
      body: new URLSearchParams({ csrf_token: token, ...fields }),
    });
  const find = () => world.servers.findServer(systemActor, null, serverId);

  const checked = await send('resize/check', { plan: 'large', on_timeout: 'fail' });
  assert.equal(checked.status, 200);
  assert.match(await checked.text(), /Nothing was changed yet[\s\S]*is charged for the hour that has begun/);
  assert.equal((await find())?.currentAction, null);
  assert.equal((await send('resize', { plan: 'large', keep_disk: 'on', on_timeout: 'fail' })).status, 303);
  const busy = await send('reset-password', {});
  assert.deepEqual([busy.status, /Another action of this server/.test(await busy.text())], [409, true]);
  await world.jobs.drain();
  assert.deepEqual([(await find())?.planSlug, (await find())?.diskGb], ['large', 20]);

  const mistyped = await send('rebuild', { image: 'debian-13', [CONFIRM_FIELD]: 'web-1' });
  assert.equal(mistyped.status, 422);
  assert.match(await mistyped.text(), /value="debian-13" selected[\s\S]*Nothing was rebuilt/);
  for (const [to, fields] of [
    ['rebuild', { image: 'debian-13', [CONFIRM_FIELD]: 'web-3' }],
    ['reset-password', {}],
  ] as const) {
    const answer = await (await send(to, fields)).text();
    const password = /<code>([A-Za-z0-9]{20})<\/code>/.exec(answer)?.[1];
    assert.ok(password !== undefined, to);
    await world.jobs.drain();
    assert.ok(!(await (await fetch(path, { headers })).text()).includes(password), 'no other page has it');
  }
  assert.equal((await find())?.imageSlug, 'debian-13');

  assert.doesNotMatch(await (await fetch(`${path}/settings`, { headers })).text(), /id="rescue"/);
  await ensureImage(world.database.db, {
    ...{ slug: 'rescue-13', name: 'Rescue 13', family: 'debian', kind: 'rescue' },
  });
  assert.match(await (await fetch(`${path}/settings`, { headers })).text(), /Start Rescue 13/);
  const rescued = await (await send('rescue', { image: 'rescue-13' })).text();
  assert.match(rescued, /<code>[A-Za-z0-9]{20}<\/code>/);
  await world.jobs.drain();
  assert.match(
    await (await fetch(path, { headers })).text(),
    /The server is in rescue\.[\s\S]*Starts from[\s\S]*a rescue system/,
  );
  const inRescue = await (await fetch(`${path}/settings`, { headers })).text();
  assert.match(inRescue, /id="rescue"[\s\S]*Start from its own disk/);
  assert.doesNotMatch(inRescue, /id="(resize|password|rebuild|snapshots)"/);
  await ensureImage(world.database.db, { slug: 'tools', name: 'Tools 7', family: 'windows', kind: 'iso' });
  const inDrive = await send('attach-iso', { iso: 'tools' });
  assert.deepEqual(
    [inDrive.status, /The server is in rescue\. Let it/.test(await inDrive.text())],
    [409, true],
  );
  assert.equal((await send('unrescue', {})).status, 303);
  await world.jobs.drain();
  assert.deepEqual([(await find())?.isRescued, (await find())?.powerState], [false, 'running']);

  assert.match(await (await fetch(`${path}/settings`, { headers })).text(), /<option value="tools"/);
  assert.equal((await send('attach-iso', { iso: 'tools' })).status, 303);
  await world.jobs.drain();
  assert.match(await (await fetch(`${path}/settings`, { headers })).text(), /Tools 7<\/p>[\s\S]*Detach/);
  assert.match(await (await fetch(path, { headers })).text(), /CD drive[\s\S]*Tools 7/);
  assert.equal((await send('detach-iso', {})).status, 303);
  await world.jobs.drain();
  assert.equal((await find())?.iso, null);

  assert.equal((await send('snapshots', { name: 'friday' })).status, 303);
  await world.jobs.drain();
  const [taken] = await world.servers.listSnapshots(systemActor, null, serverId);
  const settings = await (await fetch(`${path}/settings`, { headers })).text();
  assert.match(settings, /friday[\s\S]*Restore snapshot/);
  const snapshot = String(taken!.id);
  const unmeant = await send('snapshots/restore', { snapshot, [CONFIRM_FIELD]: 'web-1' });
  assert.deepEqual([unmeant.status, /Nothing was restored/.test(await unmeant.text())], [422, true]);
  const { serverId: otherId } = await world.deploy(tenant, 'web-4');
  const other = await fetch(`${world.url}/client/servers/${otherId}/snapshots/restore`, {
    ...{ method: 'POST', headers, redirect: 'manual' },
    body: new URLSearchParams({ csrf_token: token, snapshot, [CONFIRM_FIELD]: 'web-4' }),
  });
  assert.equal(other.status, 404, 'it is of another server');
  assert.equal((await send('snapshots/restore', { snapshot, [CONFIRM_FIELD]: 'web-3' })).status, 303);
  await world.jobs.drain();
  assert.equal((await send('snapshots/delete', { snapshot })).status, 303);
  assert.deepEqual(await world.servers.listSnapshots(systemActor, null, serverId), []);
});
