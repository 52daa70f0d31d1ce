import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { listOperations } from './testing/operations.ts';
import { createRawClient, type RawAnswer, type RawClient } from './testing/raw-client.ts';

let world: World;
let client: RawClient;
before(async () => {
  world = await createWorld({ authFailuresMax: 1_000_000, deploysPerHour: 0 });
  client = createRawClient(world.url);
});
after(async () => {
  client[Symbol.dispose]();
  await world[Symbol.asyncDispose]();
});

interface Outcome {
  name: string;
  status: number;
  isCounted: boolean;
  key: string | null;
  method?: string;
  tenant?: string;
  body?: string;
  plant?: (text: string) => string;
}

const quotaOf = (answer: RawAnswer) =>
  answer.headers.filter(([name]) => /^x-api-quota-/i.test(name)).map(([, value]) => Number(value));

/** Nothing but authentication, gate and count works. */
function breakEndpoint(text: string): string {
  const isGate = /from api_keys k|as "hasLiveServer"|insert into usage_months|update api_keys/.test(text);
  return isGate ? text : text.replaceAll(/\b(from|into|update|join) (?=\w)/g, '$1 no_such_');
}

test('API-8.3, API-8.4, API-8.8: what is counted, and nothing else, on every operation', async () => {
  const customer = await world.createCustomer('Counting');
  const full = await world.createKey(customer);
  const read = await world.createKey(customer, 'read');
  const suspended = await world.createCustomer('Suspended');
  const ofSuspended = await world.createKey(suspended);
  await world.accounts.setTenantStatus(systemActor, suspended.tenant.id, 'SUSPENDED');
  const poor = await world.createCustomer('Poor');
  const ofPoor = await world.createKey(poor);
  for (const table of ['ledger_entries', 'credit_balances'])
    await world.database.pool.query(`delete from ${table} where tenant_id = $1`, [poor.tenant.id]);
  const tenants = [customer.tenant, suspended.tenant, poor.tenant];
  const counts = async () => {
    const all = await Promise.all(tenants.map((tenant) => world.metering.countOfMonth(tenant.id)));
    return all.reduce((sum, count) => sum + count, 0);
  };
  let cells = 0;
  for (const operation of listOperations()) {
    const path = operation.path.replaceAll(/\{\w+\}/g, '987654321');
    const outcomes: Outcome[] = [
      { name: 'no key', status: 401, isCounted: false, key: null },
      { name: 'OPTIONS', status: 204, isCounted: false, key: full, method: 'OPTIONS' },
      { name: 'suspended', status: 403, isCounted: false, key: ofSuspended },
      { name: 'not eligible', status: 402, isCounted: false, key: ofPoor },
      { name: 'the endpoint fails', status: 500, isCounted: true, key: full, plant: breakEndpoint },
    ];
    if (!operation.isSafe) {
      outcomes.push({ name: 'read key writes', status: 403, isCounted: false, key: read });
      outcomes.push({ name: 'bad JSON', status: 400, isCounted: true, key: full, body: '{"a":1,"a":2}' });
      outcomes.push({
        name: 'too large',
        status: 413,
        isCounted: true,
        key: full,
        body: `"${'x'.repeat(270_000)}"`,
      });
    }
    if (operation.version === 'v2' && operation.selectsTenant)
      outcomes.push({ name: 'no such workspace', status: 404, isCounted: true, key: full, tenant: '424242' });
    if (operation.things.some((thing) => thing.in === 'path'))
      outcomes.push({ name: 'no such thing', status: 404, isCounted: true, key: full });
    for (const outcome of outcomes) {
      const before = await counts();
      const planted = outcome.plant ? plantSql(outcome.plant) : null;
      const body =
        outcome.body ?? (operation.sampleBody === null ? undefined : JSON.stringify(operation.sampleBody));
      const answer = await client.send({
        method: outcome.method ?? operation.method,
        path,
        headers: [
          ...(outcome.key === null ? [] : [['authorization', `Bearer ${outcome.key}`] as const]),
          ...(outcome.tenant === undefined ? [] : [['x-tenant-id', outcome.tenant] as const]),
          ...(body === undefined ? [] : [['content-type', 'application/json'] as const]),
        ],
        body,
      });
      planted?.[Symbol.dispose]();
      const at = `${operation.id}, ${outcome.name}: ${answer.status} ${answer.text.slice(0, 200)}`;
      const isMute = outcome.status === 500 && answer.status < 500 && (planted?.changed ?? 0) === 0;
      if (!isMute) assert.equal(answer.status, outcome.status, at);
      assert.equal((await counts()) - before, outcome.isCounted ? 1 : 0, at);
      assert.equal(quotaOf(answer).length, outcome.isCounted ? 3 : 0, at);
      cells += 1;
    }
  }
  assert.ok(cells > 100, `${cells} cells`);
});
