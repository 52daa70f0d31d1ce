import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { actorOf, createApiKeys } from '#operations/api-keys/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { mintCredential, parseCredential } from '#service-kit/credentials/index.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

test('API-2.1.a, API-2.1.b, API-2.1.c: the row holds the bare SHA-256 of the secret and nothing of the secret', async () => {
  const token = await world.createKey(await world.createCustomer('Digest'));
  assert.match(token, /^svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}$/);
  const { id, secret } = parseCredential('svc', token)!;
  const { rows } = await world.database.pool.query('select * from api_keys where key_id = $1', [id]);
  assert.deepEqual(rows[0].digest, createHash('sha256').update(secret, 'ascii').digest());
  for (const [name, value] of Object.entries(rows[0]))
    assert.ok(!String(Buffer.isBuffer(value) ? value.toString('latin1') : value).includes(secret), name);
  assert.equal(Buffer.from(secret, 'base64url').length, 32);
});

test('API-2.1.2: every verdict costs one look-up by key id, also for unknown and malformed tokens', async () => {
  const token = await world.createKey(await world.createCustomer('Lookups'));
  const seen: string[][] = [];
  const pool = () =>
    ({
      query: (text: string, values: [string[]]) => {
        seen.push(values[0]);
        return world.database.pool.query(text, values);
      },
    }) as unknown as typeof world.database.pool;
  const keys = createApiKeys({
    ...{ db: () => world.database.db, pool, reporter: world.reporter },
    gateway: 'simulated',
  });
  assert.ok(await keys.verifyKey(token));
  assert.equal(await keys.verifyKey(mintCredential('svc').token), null);
  assert.equal(await keys.verifyKey('garbage'), null);
  assert.equal(seen.length, 3);
  await Promise.all(Array.from({ length: 50 }, () => keys.verifyKey(token)));
  assert.equal(seen.length, 4, 'calls of one turn share one statement');
  assert.deepEqual(seen[3], [token.split('_')[1]]);
});

test('API-2.1.5: a key can be left fewer workspaces, from its next call on, and never gets one back by it', async () => {
  const { owner, tenant } = await world.createCustomer('Narrow');
  const { organizationId } = tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: 'Second' });
  const foreign = await world.createCustomer('Narrow foreign');
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  const issue = (tenantIds: number[] | null) =>
    world.apiKeys.issueKey(actor, {
      organizationId,
      personId: owner.id,
      name: 'narrow',
      scope: 'full',
      tenantIds,
    });
  const reached = async (token: string) =>
    (await world.apiKeys.verifyKey(token))?.tenants.map((each) => each.id) ?? null;
  const all = await issue(null);
  assert.deepEqual(await reached(all.token), [tenant.id, second.id]);
  assert.ok(await world.apiKeys.narrowKey(actor, all.keyId, [second.id, foreign.tenant.id]));
  assert.deepEqual(await reached(all.token), [second.id]);
  await world.accounts.createTenant(systemActor, { organizationId, name: 'Third' });
  assert.deepEqual(await reached(all.token), [second.id], 'none that is made later');
  assert.ok(await world.apiKeys.narrowKey(actor, all.keyId, [tenant.id, second.id]));
  assert.deepEqual(await reached(all.token), [second.id], 'nothing comes back');
  assert.ok(await world.apiKeys.narrowKey(actor, all.keyId, []));
  assert.equal(await reached(all.token), null, 'a key with none stays locked');

  const mine = await issue([tenant.id]);
  const stranger = (await world.accounts.customerActorOf(foreign.owner.id))!;
  assert.equal(await world.apiKeys.narrowKey(stranger, mine.keyId, []), false);
  const byKey = actorOf((await world.apiKeys.verifyKey(mine.token))!);
  await assert.rejects(world.apiKeys.narrowKey(byKey, mine.keyId, []), /may not change keys/);
  assert.deepEqual(await reached(mine.token), [tenant.id]);
});

test('API-2.1.3: creates at the same time never pass 25 active keys of a person', async () => {
  const customer = await world.createCustomer('Limit');
  for (let i = 0; i < 20; i += 1) await world.createKey(customer);
  const outcomes = await Promise.allSettled(Array.from({ length: 15 }, () => world.createKey(customer)));
  const refused = outcomes.filter((one) => one.status === 'rejected');
  assert.equal(refused.length, 10);
  assert.ok(refused.every((one) => hasCode(one.reason, 'api_keys.limit')));
  const { rows } = await world.database.pool.query(
    'select key_id from api_keys where person_id = $1 limit 1',
    [customer.owner.id],
  );
  assert.equal(await world.apiKeys.revokeKey(systemActor, rows[0].key_id), true);
  await world.createKey(customer);
});

test('API-2.1.e: only the owner of the organization mints keys, and a key of theirs none that reaches more than itself', async () => {
  const customer = await world.createCustomer('Owner');
  const member = await world.createCustomer('Helper');
  await world.accounts.addMember(systemActor, customer.tenant.organizationId, member.owner.id);
  const input = {
    organizationId: customer.tenant.organizationId,
    personId: member.owner.id,
    name: 'mine',
    scope: 'full' as const,
    tenantIds: null,
  };
  const asMember = (await world.accounts.customerActorOf(member.owner.id))!;
  await assert.rejects(world.apiKeys.issueKey(asMember, input), (error) =>
    hasCode(error, 'accounts.forbidden'),
  );
  const asOwner = (await world.accounts.customerActorOf(customer.owner.id))!;
  const { token } = await world.apiKeys.issueKey(asOwner, { ...input, personId: customer.owner.id });
  const asKey = actorOf((await world.apiKeys.verifyKey(token))!);
  const byKey = (change: object) =>
    world.apiKeys.issueKey(asKey, {
      ...{ ...input, personId: customer.owner.id, tenantIds: [customer.tenant.id] },
      ...change,
    });
  for (const [change, code] of [
    [{ tenantIds: null }, 'api_keys.invalid'],
    [{ personId: member.owner.id }, 'accounts.forbidden'],
    [{ organizationId: member.tenant.organizationId }, 'api_keys.owner_only'],
  ] as const)
    await assert.rejects(byKey(change), (error) => hasCode(error, code), JSON.stringify(change));
  assert.ok((await byKey({})).token);
  const foreign = { ...input, personId: customer.owner.id, tenantIds: [member.tenant.id] };
  await assert.rejects(world.apiKeys.issueKey(asOwner, foreign), (error) =>
    hasCode(error, 'api_keys.invalid'),
  );
});

test('API-2.1.5, API-2.1.g: revoking, narrowing and removing count from the next call on', async () => {
  const customer = await world.createCustomer('Instant');
  const { organizationId } = customer.tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: 'Instant second' });
  const token = await world.createKey(customer, 'full', [customer.tenant.id, second.id]);
  const reach = async () =>
    (await world.apiKeys.verifyKey(token))?.tenants.map((tenant) => tenant.id) ?? null;
  assert.deepEqual(await reach(), [customer.tenant.id, second.id]);
  const id = token.split('_')[1];
  await world.database.pool.query('delete from api_key_tenants where key_id = $1 and tenant_id = $2', [
    id,
    customer.tenant.id,
  ]);
  assert.deepEqual(await reach(), [second.id]);
  await world.apiKeys.revokeKey(systemActor, id!);
  assert.equal(await reach(), null);
  const { rows } = await world.database.pool.query('select revoked_at from api_keys where key_id = $1', [id]);
  assert.equal(rows.length, 1, 'revoked, never deleted');
});

test('API-2.1.h: the use of a key is noted at most once a minute', async () => {
  await using later = await createWorld();
  const token = await later.createKey(await later.createCustomer('Used'));
  const lastUse = async () =>
    (await later.database.pool.query('select last_used_at as at from api_keys')).rows[0].at as Date | null;
  const use = async () => later.apiKeys.noteUse((await later.apiKeys.verifyKey(token))!);
  assert.equal(await lastUse(), null);
  await use();
  const first = await lastUse();
  assert.ok(first);
  await use();
  assert.deepEqual(await lastUse(), first);
  await moveWorldClock(later.database, '61 seconds');
  await use();
  assert.ok((await lastUse())! > first);
});
