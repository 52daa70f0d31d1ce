import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Command } from 'commander';
import { systemActor } from '#operations/accounts/index.ts';
import { addCommands } from '#operations/main.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { formatTime } from '#service-kit/pages/index.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

type Visitor = Awaited<ReturnType<typeof visit>>;

/** Days until the newest row of this table expires, whole; null for never. */
async function daysOfNewest(table: 'api_keys' | 'admin_tokens'): Promise<number | null> {
  const { rows } = await world.database.pool.query(
    `select round(extract(epoch from expires_at - svc_now()) / 86400)::int as days from ${table} order by created_at desc limit 1`,
  );
  return rows[0].days;
}

async function expiryIn(visitor: Visitor, path: string, table: 'api_keys' | 'admin_tokens', fields: object) {
  assert.match(await visitor.page(path.replace(/tokens$/, '')), /name="days"[^>]*value="365"/);
  for (const [given, expected] of [
    [{}, 365],
    [{ days: '365' }, 365],
    [{ days: '30' }, 30],
    [{ days: ' ' }, null],
  ] as const) {
    const answer = await visitor.post(path, { ...fields, ...given });
    assert.match(await answer.text(), /svc(adm)?_[a-z0-9]{16}_/);
    assert.equal(await daysOfNewest(table), expected, `${table} ${JSON.stringify(given)}`);
  }
  for (const days of ['0', '-1', '1.5', '99999', 'year']) {
    const answer = await (await visitor.post(path, { ...fields, days })).text();
    assert.match(answer, /whole number of days/, days);
  }
}

test('API keys and admin tokens expire after a year unless another time, or none, is chosen', async () => {
  await world.accounts.createPerson(systemActor, {
    email: 'operator@staff.test',
    name: 'Operator',
    password,
    staffRole: 'operator',
  });
  const { email } = await world.createCustomer('Expiring');
  const client = await visit(world, email, '/client/');
  await expiryIn(client, '/client/developer/', 'api_keys', { name: 'CI', scope: 'read' });
  const { rows } = await world.database.pool.query<{ at: Date }>(
    'select min(expires_at) as at from api_keys where expires_at is not null',
  );
  assert.ok((await client.page('/client/developer/')).includes(formatTime(rows[0]!.at.getTime(), 'seconds')));
  const input = { name: 'Monitor', permissions: ['vm_inventory_read'], clusterIds: null };
  const project = await world.adminProjects.create(systemActor, input);
  const console = await visit(world, 'operator@staff.test', '/console/');
  await expiryIn(console, `/console/projects/${project.id}/tokens`, 'admin_tokens', {});
  const issueKey = addedCommands().find((one) => one.name() === 'issue-key')!;
  assert.equal(issueKey.options.find((one) => one.long === '--days')!.defaultValue, 365);
});

function addedCommands(): readonly Command[] {
  const program = new Command();
  addCommands(program);
  return program.commands;
}

test('a key that has expired is refused from then on', async () => {
  const { owner, tenant } = await world.createCustomer('Expired');
  const { token } = await world.apiKeys.issueKey(systemActor, {
    organizationId: tenant.organizationId,
    personId: owner.id,
    name: 'a year',
    scope: 'read',
    tenantIds: null,
    expiresAt: new Date(world.clock.nowMs() + 365 * 86_400_000),
  });
  const ask = async () =>
    (await fetch(`${world.url}/api/v2/key`, { headers: { authorization: `Bearer ${token}` } })).status;
  assert.equal(await ask(), 200);
  await moveWorldClock(world.database, '365 days');
  assert.equal(await ask(), 401);
});
