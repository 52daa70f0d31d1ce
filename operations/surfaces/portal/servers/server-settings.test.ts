import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';

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
