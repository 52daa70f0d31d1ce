import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { endpoints, errorKinds } from '#contracts/customer-api/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

test('API-1.S5: the reference stands at /docs/api/ without an account and has every call and every error', async () => {
  const answer = await fetch(`${world.url}/docs/api/`);
  assert.equal(answer.status, 200);
  const page = await answer.text();
  for (const endpoint of endpoints) {
    assert.ok(page.includes(`${endpoint.method} /api/v2${endpoint.path}`), endpoint.id);
    assert.ok(page.includes(endpoint.summary), endpoint.summary);
  }
  for (const kind of errorKinds)
    assert.ok(page.includes(`id="error-${kind.reason ?? kind.code}"`), kind.sentence);
  assert.match(answer.headers.get('content-security-policy')!, /script-src 'self'/);
});

test('every object that the reference names stands on its page', async () => {
  const page = await (await fetch(`${world.url}/docs/api`)).text();
  const named = new Set([...page.matchAll(/href="#(object-\w+)"/g)].map((match) => match[1]!));
  assert.ok(named.size >= 8);
  for (const id of named) assert.ok(page.includes(`id="${id}"`), id);
});

test('the OpenAPI document is public, for scripts of other sites too, and the published one', async () => {
  const answer = await fetch(`${world.url}/docs/api/openapi.json`);
  assert.equal(answer.headers.get('access-control-allow-origin'), '*');
  const file = new URL('../../../contracts/customer-api/openapi.json', import.meta.url);
  assert.deepEqual(await answer.json(), JSON.parse(readFileSync(file, 'utf8')));
});

test('API-1.S7: the former address of the reference leads to it', async () => {
  const answer = await fetch(`${world.url}/developers/api/`, { redirect: 'manual' });
  assert.deepEqual([answer.status, answer.headers.get('location')], [301, '/docs/api/']);
});

test('health is told without an account and without a secret', async () => {
  for (const [path, body] of [
    ['/healthz', { status: 'ok' }],
    ['/readyz', { status: 'ready' }],
  ] as const) {
    const answer = await fetch(`${world.url}${path}`);
    assert.deepEqual([answer.status, await answer.json()], [200, body]);
  }
});
