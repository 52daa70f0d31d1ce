import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const keysPath = '/api/v2/keys';
const idOf = (token: string) => token.split('_')[1]!;

/** An owner with two workspaces, and a full key that reaches the first of them. */
async function ownerOf(name: string) {
  const customer = await world.createCustomer(name);
  const { organizationId } = customer.tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: `${name} second` });
  const key = await world.createKey(customer, 'full', [customer.tenant.id]);
  const mint = (body: object, by = key) => call('POST', keysPath, { key: by, body });
  const list = async (by = key) =>
    (await call('GET', keysPath, { key: by })).body.keys.map(({ key_id: id }: { key_id: string }) => id);
  return { ...customer, second, key, mint, list };
}

test('API-2.1.e, API-2.1.6: an owner’s key makes a key that works, and its token is in that answer alone', async () => {
  const { tenant, owner, key, mint, list } = await ownerOf('Minting');
  const made = await mint({ name: 'ci', scope: 'read' });
  assert.equal(made.status, 201, made.text);
  const { token, ...shown } = made.body;
  assert.deepEqual(
    [shown.name, shown.scope, shown.tenant_ids, shown.person_id, shown.active],
    ['ci', 'read', [tenant.id], owner.id, true],
  );
  assert.equal((await call('GET', '/api/v2/key', { key: token })).body.key_id, shown.key_id);
  const read = await call('GET', `${keysPath}/${shown.key_id}`, { key });
  assert.deepEqual({ ...read.body, last_used_at: null }, shown);
  assert.ok(!(await call('GET', keysPath, { key })).text.includes(token.split('_').slice(2).join('_')));
  assert.deepEqual(new Set(await list()), new Set([shown.key_id, idOf(key)]));
  const revoked = await call('DELETE', `${keysPath}/${shown.key_id}`, { key });
  assert.equal(revoked.body.active, false, revoked.text);
  assert.equal((await call('GET', '/api/v2/key', { key: token })).status, 401);
});

test('API-2.1.4: a key makes none with more scope, workspaces or time than its own', async () => {
  const customer = await ownerOf('More');
  const { tenant, second, mint } = customer;
  const stranger = await world.createCustomer('More stranger');
  const expiresAt = new Date(world.testClock.nowMs() + 86_400_000);
  const { token: brief } = await world.apiKeys.issueKey(systemActor, {
    organizationId: tenant.organizationId,
    personId: customer.owner.id,
    name: 'brief',
    scope: 'full',
    tenantIds: [tenant.id],
    expiresAt,
  });
  const base = { name: 'more', scope: 'full' };
  const refused = [
    [await mint({ ...base, tenant_ids: [second.id] }), 'tenant_ids'],
    [await mint({ ...base, tenant_ids: [tenant.id, stranger.tenant.id] }), 'tenant_ids'],
    [
      await mint({ ...base, expires_at: new Date(expiresAt.getTime() + 1_000).toISOString() }, brief),
      'expires_at',
    ],
  ] as const;
  for (const [answer, path] of refused)
    assert.deepEqual([answer.status, answer.body.error.fields?.[0].path], [422, path], answer.text);
  assert.equal((await mint(base, brief)).body.expires_at, expiresAt.toISOString(), 'no longer life');
  const reader = await world.createKey(customer, 'read', [tenant.id]);
  assert.equal((await mint({ ...base, scope: 'read' }, reader)).body.error.reason, 'read_only_key');
  const full = await world.createKey(customer, 'full', [tenant.id, second.id]);
  assert.deepEqual((await mint({ ...base, tenant_ids: [second.id] }, full)).body.tenant_ids, [second.id]);
});

test('a key is not made with an expiry that is no day or has passed, by the API and beneath the portal', async () => {
  const { tenant, owner, mint, list } = await ownerOf('Late');
  const before = await list();
  const nowMs = world.testClock.nowMs();
  for (const expiresAt of [new Date(nowMs), new Date(nowMs - 86_400_000), null]) {
    const text = expiresAt?.toISOString() ?? '2031-02-30T00:00:00Z';
    const refused = await mint({ name: 'late', scope: 'read', expires_at: text });
    assert.deepEqual(
      [refused.status, refused.body.error.fields?.[0].path],
      [422, 'expires_at'],
      refused.text,
    );
    if (expiresAt === null) continue;
    const { organizationId } = tenant;
    const key = {
      organizationId,
      personId: owner.id,
      name: 'late',
      scope: 'read',
      tenantIds: null,
      expiresAt,
    } as const;
    await assert.rejects(world.apiKeys.issueKey(systemActor, key), /must be in the future/);
  }
  assert.deepEqual(await list(), before);
});

test('API-2.1.4: a key sees and revokes no key that reaches further, or of another person, unless its person owns the organization', async () => {
  const customer = await ownerOf('Seeing');
  const { tenant, second, key, list } = customer;
  const wide = await world.createKey(customer, 'full', [tenant.id, second.id]);
  const all = await world.createKey(customer);
  const member = await world.createCustomer('Seeing member');
  await world.accounts.addMember(systemActor, tenant.organizationId, member.owner.id);
  const ofMember = await world.createKey({ owner: member.owner, tenant }, 'full', [tenant.id]);
  assert.deepEqual(new Set(await list()), new Set([idOf(key), idOf(ofMember)]), 'an owner’s');
  assert.deepEqual(await list(ofMember), [idOf(ofMember)], 'a member’s');
  assert.deepEqual(new Set(await list(all)), new Set([key, ofMember, wide, all].map(idOf)));
  for (const [by, of] of [
    [key, wide],
    [key, all],
    [ofMember, key],
  ] as const) {
    const answer = await call('DELETE', `${keysPath}/${idOf(of)}`, { key: by });
    const nothing = await call('DELETE', `${keysPath}/nothing`, { key: by });
    assert.deepEqual(
      [answer.status, { ...answer.body.error, request_id: '' }],
      [404, { ...nothing.body.error, request_id: '' }],
    );
    assert.equal((await call('GET', '/api/v2/key', { key: of })).status, 200);
  }
  const minted = await call('POST', keysPath, { key: ofMember, body: { name: 'x', scope: 'read' } });
  assert.deepEqual([minted.status, minted.body.error.reason], [403, 'owner_only']);
  assert.equal((await call('DELETE', `${keysPath}/${idOf(ofMember)}`, { key: ofMember })).status, 200);
  assert.equal((await call('GET', keysPath, { key: ofMember })).status, 401, 'a key revokes itself');
});

test('API-2.1.3: through the API, too, a person has at most 25 active keys', async () => {
  const { mint } = await ownerOf('Many keys');
  const made = await Promise.all(
    Array.from({ length: 26 }, (_, i) => mint({ name: `k${i}`, scope: 'read' })),
  );
  assert.equal(made.filter(({ status }) => status === 201).length, 24);
  const refusals = made.filter(({ status }) => status !== 201);
  for (const { status, body } of refusals)
    assert.deepEqual(
      [status, body.error.reason, body.error.details],
      [422, 'limit_exceeded', { limit: 'keys', max: 25, used: 25 }],
    );
});
