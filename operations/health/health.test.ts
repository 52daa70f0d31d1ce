/** The metrics of operations as Prometheus reads them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOperationsMeters } from '#operations/health/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';

const metricsToken = 'token-of-the-scraper';
let world: World;
before(async () => {
  world = await createWorld({ metricsToken });
});
after(() => world[Symbol.asyncDispose]());

const ask = (token?: string, url = world.url) =>
  fetch(`${url}/metrics`, token ? { headers: { authorization: `Bearer ${token}` } } : {});

test('metrics need the token, and do not exist without one', async () => {
  for (const token of [undefined, `${metricsToken}x`, metricsToken.slice(1)]) {
    const refused = await ask(token);
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.get('www-authenticate'), 'Bearer');
    assert.doesNotMatch(await refused.text(), /svc_operations/);
  }
  assert.equal((await ask(metricsToken)).status, 200);
  await using plain = await createWorld();
  assert.equal((await ask(metricsToken, plain.url)).status, 404);
});

test('metrics show what waits, what runs and how requests were answered; no path of a caller is a series', async () => {
  const { tenant } = await world.createCustomer('Metered');
  await world.deploy(tenant, 'metered');
  await enqueueJob(world.db(), 'not_known_here', {});
  await world.database.pool.query("update jobs set last_error = 'refused' where kind = 'not_known_here'");
  await world.database.pool.query(
    "update jobs set run_at = run_at - interval '90 seconds' where kind = 'not_known_here'",
  );
  assert.equal((await fetch(`${world.url}/no/such/path-of-a-caller`)).status, 404);
  // State is read anew for each set of meters; the server's own keeps it for a few seconds.
  const meters = createOperationsMeters(world);
  const state = await meters.render();
  for (const line of [
    'svc_operations_database_up 1',
    'svc_operations_limits_apart 0',
    'svc_operations_jobs_failing 1',
    'svc_operations_servers{status="running"} 1',
    'svc_operations_nodes{state="away"} 0',
    'svc_operations_payment_unconfirmed_charges 0',
    'svc_operations_webhook_failing_endpoints 0',
  ])
    assert.ok(state.includes(`${line}\n`), `${line} is missing in\n${state}`);
  const oldest = Number(/^svc_operations_jobs_oldest_due_seconds (\S+)$/m.exec(state)?.[1]);
  assert.ok(oldest >= 90, `the oldest job is due for ${oldest} s`);
  const counted = await (await ask(metricsToken)).text();
  assert.match(counted, /svc_operations_http_request_seconds_count\{area="none",status="4xx"\} 1\n/);
  assert.doesNotMatch(counted, /path-of-a-caller/);
});

test('without its database the metrics that need it are left out', async () => {
  const meters = createOperationsMeters({
    ...world,
    db: () => {
      throw new Error('connect ECONNREFUSED');
    },
  });
  const text = await meters.render();
  assert.match(text, /^svc_operations_database_up 0$/m);
  assert.doesNotMatch(text, /^svc_operations_(jobs|webhook|payment|servers|nodes)\S* /m);
  assert.match(text, /^svc_operations_database_connections\{state="open"\} \d+$/m);
});
