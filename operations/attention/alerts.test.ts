/** What operators are mailed, and the page of operations itself. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

import { until } from '#service-kit/testing/until.ts';

const metricsToken = 'token-of-the-scraper';
let world: World;
before(async () => {
  world = await createWorld({ metricsToken });
  for (const staffRole of ['operator', 'support'] as const)
    await world.accounts.createPerson(systemActor, {
      ...{ email: `${staffRole}@staff.test`, name: staffRole, password, staffRole },
    });
  await world.database.pool.query(
    `insert into leases (name, holder, term, acquired_at, expires_at, interval_seconds, failing_since, last_error)
     values ('operations.billing_maintenance', 'a', 1, svc_now(), svc_now(), 60, svc_now() - interval '3 minutes', 'the ledger is locked')`,
  );
});
after(() => world[Symbol.asyncDispose]());

const subjects = async (email: string) =>
  (await world.mailsTo(email)).map(({ subject }) => subject).reverse();
const judge = () => loopOf(world.attention, 'operations.attention').runOnce();
const title = 'operations: Background task failing: operations.billing_maintenance';

test('what affects customers is mailed to operators once it has lasted a minute, and again when it was gone for one', async () => {
  await judge();
  assert.deepEqual(await subjects('operator@staff.test'), [], 'it may pass by itself');
  await moveWorldClock(world.database, '61 seconds');
  await judge();
  await judge();
  assert.deepEqual(await subjects('operator@staff.test'), [title]);
  const [mail] = await world.mailsTo('operator@staff.test');
  assert.match(mail!.text, /It has failed for \d min: the ledger is locked\.\n\n.*\/console\/system\/\n/);
  await world.database.pool.query(
    'update leases set last_error = null, failing_since = null, succeeded_at = svc_now()',
  );
  await judge();
  await moveWorldClock(world.database, '123 seconds');
  await world.database.pool.query('update leases set succeeded_at = svc_now()');
  await judge();
  await judge();
  assert.deepEqual(await subjects('operator@staff.test'), [title, title.replace(': B', ': Resolved: B')]);
  assert.deepEqual(await subjects('support@staff.test'), [], 'support is not mailed');
});

test('a monitor that has called and falls silent is mailed; one that never called, and an attack, are not', async () => {
  const { tenant } = await world.createCustomer('Attacked');
  const { serverId, allocations } = await world.deploy(tenant, 'attacked');
  await world.backdate(serverId, '2 hours');
  assert.deepEqual(await world.deliverIncidents(incidentOf(allocations[0]!.address)), ['applied']);
  await world.createToken(['protect_telemetry_ingest']);
  await judge();
  await moveWorldClock(world.database, '4 minutes');
  await judge();
  // The worker that delivers webhooks does not run here.
  const told = async () =>
    (await subjects('operator@staff.test')).filter((subject) => /monitor|attack/i.test(subject));
  assert.deepEqual(await told(), []);
  await world.database.pool.query(
    "update admin_tokens set last_used_at = svc_now() - interval '11 minutes' where last_used_at is null",
  );
  await judge();
  await moveWorldClock(world.database, '6 minutes');
  await judge();
  const [mail, ...others] = await told();
  assert.match(mail!, /^operations: The monitor of project \d+ is silent$/);
  assert.deepEqual(others, []);
});

test('the page System shows staff the loops, disks and problems; metrics have the billing loop', async () => {
  await world.database.pool.query(
    `insert into disk_samples values ('host-1', '/var/lib/svc', date_trunc('minute', svc_now()), 40000000000, 1000000000000);
     update leases set last_error = 'the ledger is locked', failing_since = svc_now() - interval '1 hour'`,
  );
  for (const email of ['operator@staff.test', 'support@staff.test']) {
    const cookie = await world.signIn(email);
    const answer = await fetch(`${world.url}/console/system/`, { headers: { accept: 'text/html', cookie } });
    const text = await answer.text();
    assert.equal(answer.status, 200);
    assert.match(text, /Background task failing: operations\.billing_maintenance/);
    assert.match(text, /Disk almost full: \/var\/lib\/svc on host-1/);
    assert.match(text, /40\.0 GB \(4\.0 %\)/);
  }
  const { tenant, email } = await world.createCustomer('Curious');
  assert.ok(tenant.id > 0);
  const cookie = await world.signIn(email);
  const refused = await fetch(`${world.url}/console/system/`, { headers: { accept: 'text/html', cookie } });
  assert.equal(refused.status, 404, 'customers have no such page');
  const metrics = await fetch(`${world.url}/metrics`, {
    headers: { authorization: `Bearer ${metricsToken}` },
  });
  const said = await metrics.text();
  assert.match(said, /^svc_operations_loop_failing\{loop="operations\.billing_maintenance"\} 1$/m);
  assert.match(
    said,
    /^svc_operations_loop_last_success_timestamp_seconds\{loop="operations\.billing_maintenance"\} \d+/m,
  );
  assert.match(said, /^svc_operations_disk_free_bytes\{host="host-1",path="\/var\/lib\/svc"\} 40000000000$/m);
  assert.match(said, /^svc_operations_database_writable 1$/m);
});

test('a database that takes no writes makes operations unready, and says why', async () => {
  await using apart = await createWorld();
  const { pool } = apart.database;
  assert.equal((await fetch(`${apart.url}/readyz`)).status, 200);
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  for (const client of clients) await client.query('set default_transaction_read_only = on');
  for (const client of clients) client.release();
  const { checks } = await until('operations is unready', 30_000, async () => {
    const answer = await fetch(`${apart.url}/readyz`);
    return answer.status === 503 && ((await answer.json()) as { checks: { database: string } });
  });
  assert.equal(checks.database, 'takes no writes: it is read-only');
  for (const client of await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()))) {
    await client.query('set default_transaction_read_only = off');
    client.release();
  }
});
