/** E5, G8: a run through all that handles secrets, and leaks planted in each place, which must be found. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createStripeGateway } from '#operations/payments/stripe-gateway.ts';
import { type FakeStripe, startFakeStripe } from '#operations/payments/testing/start-fake-stripe.ts';
import { createApiClient } from '#operations/surfaces/customer-api/testing/client.ts';
import { createWebhookSender } from '#operations/webhooks/index.ts';
import { type Receiver, startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';
import { createWorld, type World } from './create-world.ts';
import { createSecretWatch } from './watch-secrets.ts';

let world: World;
let stripe: FakeStripe;
let receiver: Receiver;
let isHypervisorBroken = false;
before(async () => {
  stripe = await startFakeStripe();
  receiver = await startReceiver();
  world = await createWorld({
    gateway: () =>
      createStripeGateway({
        secretKey: 'sk_test_x',
        apiUrl: stripe.url,
        callbackSecret: null,
        timeoutMs: 150,
      }),
    hypervisor: (usual) => ({
      ...usual,
      // A hypervisor that repeats what it was told, as a command line in an error would.
      async ensureGuest(guest, step) {
        if (isHypervisorBroken)
          throw new CodedError('hypervisor.refused', `virsh failed: ${JSON.stringify(guest)}`);
        return usual.ensureGuest(guest, step);
      },
    }),
  });
});
after(async () => {
  await receiver[Symbol.asyncDispose]();
  await stripe[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const order = { plan: 'small', image: 'debian-12', location: 'fra' };

/** Orders by card and by credit, failing and repeated; keys made, rotated and misused; webhooks told of all of it. */
async function run(): Promise<{ rootPassword: string; token: string }> {
  const call = createApiClient(world.url);
  const customer = await world.createCustomer('Secretive');
  const { tenant, owner, email } = customer;
  const endpoint = await world.webhooks.createEndpoint((await world.accounts.customerActorOf(owner.id))!, {
    organizationId: tenant.organizationId,
    tenantId: null,
    url: `${receiver.url}/all/200`,
    description: 'all',
    eventTypes: [
      'server.created',
      'server.provisioned',
      'server.provisioning_failed',
      'key.created',
      'key.revoked',
    ],
  });
  receiver.learn(endpoint.secret);
  const cookie = await world.signIn(email);
  const page = async (path: string, fields?: Record<string, string>) => {
    const answer = await fetch(`${world.url}${path}`, {
      headers: { cookie },
      redirect: 'manual',
      ...(fields ? { method: 'POST', body: new URLSearchParams(fields) } : {}),
    });
    return answer.text();
  };
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(await page('/client/developer/'))![1]!;
  const made = await page('/client/developer/', { csrf_token, name: 'CI', scope: 'full' });
  const token = /svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}/.exec(made)![0];
  const rotated = await page('/client/developer/rotate', { csrf_token, key_id: token.split('_')[1]! });
  assert.match(rotated, /svc_[a-z0-9]{16}_/);
  const headers = { 'idempotency-key': 'once' };
  const created = await call('POST', '/api/v2/servers', {
    key: token,
    body: { ...order, name: 'a' },
    headers,
  });
  assert.equal(created.status, 201);
  await call('POST', '/api/v2/servers', { key: token, body: { ...order, name: 'a' }, headers });
  assert.match(
    await page('/client/servers/new', { csrf_token, ...order, name: 'b' }),
    /<code>[^<]{20}<\/code>/,
  );
  isHypervisorBroken = true;
  const broken = await call('POST', '/api/v1/servers', { key: token, body: { ...order, name: 'c' } });
  await world.jobs.drain();
  assert.equal(
    (await call('GET', `/api/v2/servers/${broken.body.id}`, { key: token })).body.status,
    'failed',
  );
  isHypervisorBroken = false;
  await world.jobs.drain();
  // By card, declined and unconfirmed; and where a secret is put that belongs elsewhere.
  await world.setBalance(tenant, 0);
  const setup = await world.payments.startCardSetup(
    systemActor,
    { ...tenant, email },
    { returnUrl: 'http://portal.test/return', cancelUrl: 'http://portal.test/' },
  );
  await world.payments.finishCardSetup(systemActor, tenant.id, new URL(setup).searchParams.get('setup')!);
  for (const behaviour of ['success', 'decline', 'timeout after', 'error after charge'] as const) {
    await stripe.plan({ behaviour, tenantId: tenant.id });
    await world.setBalance(tenant, 0);
    await call('POST', '/api/v2/servers', { key: token, body: order });
  }
  await world.database.pool.query(
    "update charges set next_attempt_at = svc_now() where state = 'unconfirmed'",
  );
  await world.payments.reconcile();
  await call('GET', `/api/v2/servers?key=${token}`);
  await call('GET', '/api/v2/servers', { key: `${token}x` });
  await call('POST', '/api/v2/servers', { key: token, raw: `{"${created.body.root_password}": ` });
  for (const path of [
    '/servers',
    `/servers/${created.body.id}`,
    `/servers/${broken.body.id}`,
    '/key',
    '/usage',
    '/account',
  ])
    await call('GET', `/api/v2${path}`, { key: token });
  for (const path of [
    '/client/',
    '/client/developer/',
    '/client/billing/',
    '/client/webhooks/',
    '/client/usage/',
  ])
    await page(path);
  await world.jobs.drain();
  await createWebhookSender({
    secrets: world.sealing,
    db: () => world.database.db,
    clock: systemClock,
    reporter: world.reporter,
    rules: { allowPrivate: true },
    random: () => 0.5,
  }).drain();
  return { rootPassword: created.body.root_password, token };
}

test('E5, G8: of passwords and tokens nothing stands in answers, logs, events, webhooks, errors, the gateway or the database', async (t) => {
  const { rootPassword, token } = await run();
  assert.ok(receiver.received.length >= 6, `${receiver.received.length} webhooks`);
  world.secrets.watchText('webhooks', JSON.stringify(receiver.received));
  world.secrets.watchText('what Stripe was told', JSON.stringify(await stripe.heard()));
  const { leaks, secrets, bytes } = await world.secrets.findLeaks(world.database.pool);
  assert.deepEqual(leaks, []);
  assert.ok(secrets >= 9, `${secrets} secrets`);
  t.diagnostic(`${secrets} secrets, looked for in ${bytes} bytes: 0 found`);

  // Planted: the same watch finds each of them where it must not be.
  const { pool } = world.database;
  const planted = async (plant: (watch: ReturnType<typeof createSecretWatch>) => unknown, clean?: string) => {
    const watch = createSecretWatch();
    watch
      .watchTokens({ ...world.adminProjects, issueToken: async () => ({ token }) as never })
      .issueToken(systemActor, 1, null);
    await plant(watch);
    const found = (await watch.findLeaks(pool)).leaks;
    if (clean) await pool.query(clean);
    return found;
  };
  assert.deepEqual(await planted(() => {}), []);
  assert.deepEqual(
    await planted((watch) => watch.reporter.debug('ordered', { note: { deep: [rootPassword] } })),
    ['a root password in the log'],
  );
  assert.deepEqual(await planted((watch) => watch.watchText('an event', `{"key":"${token}"}`)), [
    "a token's secret in an event",
  ]);
  const undo = "update tenants set name = 'Secretive' where name like '%leaked%'";
  for (const [secret, leak] of [
    [`leaked${rootPassword}`, 'a root password in the table tenants'],
    [`leaked ${token}`, "a token's secret in the table tenants"],
  ] as const)
    assert.deepEqual(
      await planted(
        () => pool.query("update tenants set name = $1 where name = 'Secretive'", [secret]),
        undo,
      ),
      [leak],
    );
});
