import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type pg from 'pg';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createApiClient } from './testing/client.ts';

let world: World;
let call: ReturnType<typeof createApiClient>;
before(async () => {
  world = await createWorld({ countLockTimeoutMs: 60_000 });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const order = { plan: 'small', image: 'debian-12' };

async function customer(name: string) {
  const made = await world.createCustomer(name);
  const key = await world.createKey(made);
  await call('GET', '/api/v2/servers', { key });
  return { ...made, key };
}

/** Runs `work` while another connection holds these rows, as a long transaction would. */
async function whileLocked(statement: string, values: unknown[], work: () => Promise<void>): Promise<void> {
  const client: pg.PoolClient = await world.database.pool.connect();
  try {
    await client.query('begin');
    assert.equal((await client.query(statement, values)).rowCount, 1);
    await work();
  } finally {
    await client.query('rollback');
    client.release();
  }
}

const usageLocks: [string, string][] = [
  ['its month', 'select 1 from usage_months where tenant_id = $1 for update'],
  ['its day', 'select 1 from usage_days where tenant_id = $1 for update'],
  ['its key', 'select 1 from usage_key_months where tenant_id = $1 for update'],
];

for (const [what, statement] of usageLocks)
  test(`while ${what} is locked an account waits alone: others are counted, and so is it once the lock is gone`, async () => {
    const [stuck, other] = [await customer('Stuck'), await customer('Other')];
    const waiting: ReturnType<typeof call>[] = [];
    await whileLocked(statement, [stuck.tenant.id], async () => {
      for (let sent = 0; sent < 3; sent += 1)
        waiting.push(call('GET', '/api/v2/servers', { key: stuck.key }));
      let isOver = false;
      void Promise.any(waiting).then(() => {
        isOver = true;
      });
      for (let used = 2; used <= 10; used += 1) {
        const answer = await call('GET', '/api/v2/servers', { key: other.key });
        assert.deepEqual([answer.status, answer.headers.get('x-api-quota-used')], [200, String(used)]);
      }
      assert.equal(isOver, false);
    });
    const used = (await Promise.all(waiting)).map(({ headers }) => headers.get('x-api-quota-used'));
    assert.deepEqual(used.sort(), ['2', '3', '4']);
  });

test('API-8.5: requests of an account that stays locked succeed uncounted, which is reported', async () => {
  await using short = await createWorld({ countLockTimeoutMs: 100 });
  const ask = createApiClient(short.url);
  const made = await short.createCustomer('Locked for long');
  const key = await short.createKey(made);
  await ask('GET', '/api/v2/servers', { key });
  const client: pg.PoolClient = await short.database.pool.connect();
  await client.query('begin');
  await client.query('select 1 from usage_months where tenant_id = $1 for update', [made.tenant.id]);
  const answers = await Promise.all([1, 2, 3].map(() => ask('GET', '/api/v2/servers', { key })));
  for (const answer of answers)
    assert.deepEqual([answer.status, answer.headers.get('x-api-quota-used')], [200, null]);
  await client.query('rollback');
  client.release();
  assert.equal(short.metering.failedCounts, 3);
  const counted = await ask('GET', '/api/v2/servers', { key });
  assert.equal(counted.headers.get('x-api-quota-used'), '2', 'what was not recorded is not made up');
});

test('a key whose row is locked answers, and its use is noted later', async () => {
  const { key, tenant } = await customer('Locked key');
  const uses = () =>
    world.database.pool
      .query('select last_used_at from api_keys where organization_id = $1', [tenant.organizationId])
      .then(({ rows }) => rows[0].last_used_at as Date | null);
  while ((await uses()) === null) await new Promise((resolve) => setImmediate(resolve));
  await world.database.pool.query('update api_keys set last_used_at = null where organization_id = $1', [
    tenant.organizationId,
  ]);
  const lock = 'select 1 from api_keys where organization_id = $1 for update';
  await whileLocked(lock, [tenant.organizationId], async () => {
    // More calls than there are connections.
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => call('GET', '/api/v2/servers', { key })),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  });
  await call('GET', '/api/v2/servers', { key });
  while ((await uses()) === null) await new Promise((resolve) => setImmediate(resolve));
});

test('an account whose balance is locked holds one connection, however many servers it orders', async () => {
  const [stuck, other] = [await customer('Stuck balance'), await customer('Other balance')];
  const lock = 'select 1 from credit_balances where tenant_id = $1 for update';
  const waiters = async () => {
    const { rows } = await world.database.pool.query<{ n: number }>(
      "select count(*) as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rows[0]!.n;
  };
  const waiting: ReturnType<typeof call>[] = [];
  await whileLocked(lock, [stuck.tenant.id], async () => {
    for (let sent = 0; sent < 6; sent += 1)
      waiting.push(call('POST', '/api/v2/servers', { key: stuck.key, body: { ...order, dry_run: true } }));
    while ((await waiters()) === 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await call('POST', '/api/v2/servers', { key: other.key, body: order })).status, 201);
    assert.ok((await waiters()) <= 1);
    // The one that waits gives up after five seconds, and says so.
    const first = await Promise.any(waiting);
    assert.deepEqual(
      [first.status, first.body.error.code, first.body.error.retryable],
      [503, 'unavailable', true],
    );
    assert.ok(Number(first.headers.get('retry-after')) > 0);
  });
  const answers = await Promise.all(waiting);
  assert.ok(
    answers.some(({ status }) => status === 200),
    'the others go on once it is free',
  );
});
