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

const body = { url: 'https://hooks.example.com/svc', events: ['server.provisioned', 'key.created'] };

async function ownerOf(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer, 'full', [customer.tenant.id]);
  const send = (method: string, path = '', given?: object, headers = {}, by = key) =>
    call(method, `/api/v2/webhooks${path}`, { key: by, headers, ...(given && { body: given }) });
  return { ...customer, key, send };
}

test('an owner’s key makes an endpoint for its workspace; the secret is in that answer alone', async () => {
  const { tenant, send } = await ownerOf('Hooked');
  const once = { 'idempotency-key': 'one-webhook-and-no-more' };
  const made = await send('POST', '', body, once);
  assert.equal(made.status, 201, made.text);
  const { secret, ...shown } = made.body;
  assert.match(secret, /^whsec_/);
  assert.deepEqual(
    [shown.tenant_id, shown.url, shown.events, shown.enabled],
    [tenant.id, body.url, body.events, true],
  );
  const again = await send('POST', '', body, once);
  assert.deepEqual([again.status, again.body], [201, { ...shown, secret: null }]);
  const listed = await send('GET');
  assert.deepEqual(listed.body.webhooks, [shown]);
  assert.ok(!listed.text.includes(secret));
  assert.deepEqual((await send('GET', `/${shown.id}`)).body, shown);
});

test('an endpoint is changed under its ETag, disabled, tested, and deleted', async () => {
  const { send } = await ownerOf('Managed');
  const path = `/${(await send('POST', '', body)).body.id}`;
  const tag = { 'if-match': (await send('GET', path)).headers.get('etag')! };
  const changed = await send('PATCH', path, { description: 'of the shop' }, tag);
  assert.deepEqual(
    [changed.status, changed.body.description, changed.body.url],
    [200, 'of the shop', body.url],
  );
  for (const [method, given] of [
    ['PATCH', { enabled: false }],
    ['DELETE', undefined],
  ] as const)
    assert.equal((await send(method, path, given, tag)).body.error.reason, 'etag_mismatch', method);
  const queued = await send('POST', `${path}/test`);
  const [delivery] = (await send('GET', `${path}/deliveries`)).body.deliveries;
  assert.deepEqual([queued.status, queued.body], [202, delivery]);
  assert.deepEqual([delivery.type, delivery.status, delivery.attempts], ['webhook.test', 'pending', 0]);
  assert.equal((await send('PATCH', path, { enabled: false })).body.enabled, false);
  assert.equal((await send('GET', `${path}/deliveries`)).body.deliveries[0].status, 'cancelled');
  assert.equal((await send('POST', `${path}/test`)).body.error.reason, 'webhook_disabled');
  await send('PATCH', path, { enabled: true });
  const replay = `${path}/deliveries/${delivery.id}/replay`;
  assert.equal((await send('POST', replay)).status, 202);
  assert.equal((await send('GET', `${path}/deliveries`)).body.deliveries[0].status, 'pending');
  assert.equal((await send('POST', replay.replace(String(delivery.id), '987654321'))).status, 404);
  for (let i = 0; i < 4; i += 1) await send('POST', `${path}/test`);
  const tooMany = await send('POST', `${path}/test`);
  assert.deepEqual([tooMany.status, tooMany.body.error.reason], [429, 'test_rate']);
  assert.equal((await send('DELETE', path)).status, 204);
  assert.equal((await send('GET', path)).status, 404);
});

test('what can’t be an endpoint is a 422 that names the field', async () => {
  const { send } = await ownerOf('Wrong hooks');
  for (const [given, path] of [
    [{ ...body, url: 'ftp://example.com' }, 'url'],
    [{ ...body, url: 'https://user:secret@example.com/' }, 'url'],
    [{ ...body, events: ['server.exploded'] }, 'events.0'],
    [{ ...body, events: [] }, 'events'],
  ] as const) {
    const answer = await send('POST', '', given);
    assert.deepEqual([answer.status, answer.body.error.fields?.[0].path], [422, path], answer.text);
  }
});

test('API-2.1.4: a key sees no endpoint of another workspace or of the whole organization, and a member’s key none at all', async () => {
  const customer = await ownerOf('Reach of hooks');
  const { tenant, owner, send } = customer;
  const { organizationId } = tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: 'Second hooks' });
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  const make = async (tenantId: number | null) =>
    (
      await world.webhooks.createEndpoint(actor, {
        ...{ organizationId, tenantId, url: body.url, description: '', eventTypes: body.events },
      })
    ).endpointId;
  const [own, foreign, whole] = [await make(tenant.id), await make(second.id), await make(null)];
  const idsOf = async (by?: string) =>
    (await send('GET', '', undefined, {}, by)).body.webhooks.map(({ id }: { id: number }) => id);
  assert.deepEqual(await idsOf(), [own]);
  assert.deepEqual(await idsOf(await world.createKey(customer)), [own, whole]);
  for (const id of [foreign, whole]) assert.equal((await send('DELETE', `/${id}`)).status, 404);
  const member = await world.createCustomer('Hooks member');
  await world.accounts.addMember(systemActor, organizationId, member.owner.id);
  const ofMember = await world.createKey({ owner: member.owner, tenant }, 'full', [tenant.id]);
  assert.deepEqual(await idsOf(ofMember), []);
  const refused = await send('POST', '', body, {}, ofMember);
  assert.deepEqual([refused.status, refused.body.error.reason], [403, 'owner_only']);
});
