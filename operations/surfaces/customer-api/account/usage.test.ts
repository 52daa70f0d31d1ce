import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { until } from '#service-kit/testing/until.ts';
import { readOperationsSettings } from '../../../config.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld({ includedPerMonth: 5, requestsPerMinute: 120 });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

test('a key reads what it may do, and nothing about other keys', async () => {
  const customer = await world.createCustomer('Whoami');
  const { organizationId } = customer.tenant;
  const second = await world.accounts.createTenant(systemActor, { organizationId, name: 'Whoami second' });
  await world.createKey(customer, 'full');
  const key = await world.createKey(customer, 'read', [customer.tenant.id]);
  const keyId = key.split('_')[1]!;
  await call('GET', '/api/v2/servers', { key });
  // A use is noted behind its answer.
  await until('the use is noted', 120_000, async () => {
    const { rows } = await world.database.pool.query('select from api_keys where last_used_at is not null');
    return rows.length === 1;
  });
  const { status, body } = await call('GET', '/api/v2/key', { key });
  const { created_at, last_used_at, ...rest } = body;
  assert.equal(status, 200);
  assert.ok(Date.parse(last_used_at) >= Date.parse(created_at));
  assert.deepEqual(rest, {
    key_id: keyId,
    name: 'read key',
    prefix: `svc_${keyId.slice(0, 4)}`,
    scope: 'read',
    tenant_access: 'selected',
    tenants: [customer.tenant.id],
    default_tenant_id: customer.tenant.id,
    organization_id: organizationId,
    expires_at: null,
    rate_limit: { limit: 120, window_s: 60, remaining: 118 },
  });
  assert.doesNotMatch(JSON.stringify(body), new RegExp(`${second.id}\\b.*second`));
  assert.equal((await call('GET', '/api/v1/key', { key })).status, 404, 'version 2 only');
});

/** The days of a month begin with the account. */
const makeOlder = (of: World, tenantId: number) =>
  of.database.pool.query("update tenants set created_at = created_at - interval '2 months' where id = $1", [
    tenantId,
  ]);

test('API-8.1: the usage of a month adds up by key and by day, this very call included', async () => {
  const customer = await world.createCustomer('Usage');
  await makeOlder(world, customer.tenant.id);
  const [first, second] = [await world.createKey(customer), await world.createKey(customer, 'read')];
  for (let i = 0; i < 14; i += 1) await call('GET', '/api/v2/servers', { key: first });
  await world.apiKeys.revokeKey(systemActor, first.split('_')[1]!);
  const answer = await call('GET', '/api/v2/usage', { key: second });
  const usage = answer.body;
  assert.equal(answer.headers.get('x-api-quota-used'), '15');
  assert.deepEqual(
    [usage.count, usage.included_count, usage.overage_count, usage.overage_charged_count],
    [15, 5, 10, 0],
  );
  assert.deepEqual(
    [usage.overage_amount, usage.price, usage.state],
    ['0.0001', { per_requests: 100_000, amount: '1.00' }, 'open'],
  );
  assert.deepEqual(usage.keys, [
    { key_id: null, name: 'revoked keys', count: 14 },
    { key_id: second.split('_')[1], name: 'read key', count: 1 },
  ]);
  assert.equal(
    usage.days.reduce((sum: number, day: { count: number }) => sum + day.count, 0),
    15,
  );
  assert.equal(usage.days.at(-1).date, usage.as_of.slice(0, 10));
  assert.equal(usage.days[0].date, `${usage.period}-01`);
  assert.ok(usage.projected_count >= 15);
  assert.ok(Date.parse(usage.resets_at) > Date.parse(usage.as_of));
});

test('a month by key or by day, as one shape in JSON and as lines in CSV, which no spreadsheet takes for formulas', async () => {
  const customer = await world.createCustomer('Grouped');
  const issued = await world.apiKeys.issueKey(systemActor, {
    organizationId: customer.tenant.organizationId,
    personId: customer.owner.id,
    name: '=1+1,"x"',
    scope: 'read',
    tenantIds: null,
  });
  const key = issued.token;
  const read = (query: string, accept: string) =>
    call('GET', `/api/v2/usage${query}`, { key, headers: { accept } });
  const plain = (await read('', '*/*')).body;
  assert.deepEqual([plain.group_by, plain.groups], [null, null]);
  const byKey = (await read('?group_by=key', 'application/json')).body;
  assert.deepEqual(byKey.groups, [{ group: key.split('_')[1], name: '=1+1,"x"', count: 2 }]);
  const byDay = (await read('?group_by=day', 'application/json, text/csv;q=0.5')).body;
  assert.deepEqual(
    byDay.groups.map((one: { group: string; count: number }) => ({ date: one.group, count: one.count })),
    byDay.days,
  );
  const days = await read('', 'text/csv');
  assert.equal(days.headers.get('content-type'), 'text/csv; charset=utf-8');
  assert.equal(days.headers.get('x-api-quota-used'), '4');
  const lines = days.text.split('\r\n');
  assert.deepEqual(
    [lines[0], lines.at(-2), lines.length],
    ['date,count', `${byDay.days.at(-1).date},4`, byDay.days.length + 2],
  );
  const keys = await read('?group_by=key', 'text/csv, application/json;q=0.1');
  assert.equal(keys.text, `key_id,name,count\r\n${key.split('_')[1]},"'=1+1,""x""",5\r\n`);
  assert.equal((await read('?group_by=route', 'text/csv')).status, 422);
});

test('a month that is over keeps its figures, and one to come is refused', async () => {
  await using later = await createWorld();
  const ask = createApiClient(later.url);
  const customer = await later.createCustomer('Past');
  await makeOlder(later, customer.tenant.id);
  const key = await later.createKey(customer);
  const { body: before } = await ask('GET', '/api/v2/usage', { key });
  await moveWorldClock(later.database, '32 days');
  const { body: past } = await ask('GET', `/api/v2/usage?period=${before.period}`, { key });
  assert.deepEqual([past.state, past.count, past.projected_count], ['closed', 1, 1]);
  assert.equal(past.days.length, new Date(Date.parse(past.resets_at) - 1).getUTCDate());
  const { body: now } = await ask('GET', '/api/v2/usage', { key });
  assert.deepEqual([now.state, now.count], ['open', 2]);
  const none = await ask('GET', '/api/v2/usage?period=2020-01', { key });
  assert.deepEqual([none.status, none.body.count, none.body.keys], [200, 0, []]);
  for (const period of ['2099-01', '2025-13', 'now', '2025-1']) {
    const refused = await ask('GET', `/api/v2/usage?period=${period}`, { key });
    assert.deepEqual([refused.status, refused.body.error.fields[0].path], [422, 'period'], period);
  }
});

test('API-4.0: usage is that of the selected workspace', async () => {
  const customer = await world.createCustomer('Selected usage');
  const other = await world.createCustomer('Foreign usage');
  const key = await world.createKey(customer);
  const foreign = await call('GET', `/api/v2/usage?tenant=${other.tenant.id}`, { key });
  assert.equal(foreign.status, 404);
  const { body } = await call('GET', `/api/v2/usage?tenant=${customer.tenant.slug}`, { key });
  assert.deepEqual([body.tenant_id, body.count], [customer.tenant.id, 2]);
});

test('API-8.9: free requests and the price of the others are settings, and the quota says so', async () => {
  const settings = readOperationsSettings({
    API_INCLUDED_REQUESTS_PER_MONTH: '7',
    API_OVERAGE_UNIT_REQUESTS: '1000',
    API_OVERAGE_RATE_PER_UNIT: '2.50',
  });
  assert.deepEqual(
    [settings.includedPerMonth, settings.overageUnitRequests, settings.overageRateQuanta],
    [7, 1_000, 25_000],
  );
  const usual = readOperationsSettings({});
  assert.deepEqual(
    [usual.includedPerMonth, usual.overageUnitRequests, usual.overageRateQuanta],
    [5_000, 100_000, 10_000],
  );
  await using small = await createWorld({ includedPerMonth: settings.includedPerMonth });
  const key = await small.createKey(await small.createCustomer('Set'));
  const answer = await createApiClient(small.url)('GET', '/api/v2/usage', { key });
  assert.equal(answer.headers.get('x-api-quota-limit'), '7');
  assert.equal(answer.body.included_count, 7);
});
