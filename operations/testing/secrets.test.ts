/** E5, G8: a run through all that handles secrets, and leaks planted in each place, which must be found. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { CodedError, hasCode } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createPatientGateway } from '#operations/payments/testing/create-patient-gateway.ts';
import { type FakeStripe, startFakeStripe } from '#operations/payments/testing/start-fake-stripe.ts';
import { operationsSecrets } from '#operations/platform.ts';
import { createApiClient } from '#operations/surfaces/customer-api/testing/client.ts';
import { webhookSecrets } from '#operations/webhooks/index.ts';
import { createWebhookSender } from '#operations/webhooks/send-deliveries.ts';
import { createTestSecrets } from '#service-kit/secrets/testing/test-secrets.ts';
import { createEarlierDatabase } from '#service-kit/testing/earlier-database.ts';
import { findInRows, webhookSecretBytes } from '#service-kit/testing/find-in-rows.ts';
import { type Receiver, startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';
import type { World } from './create-world.ts';
import { createWorld } from './dated-world.ts';
import { createSecretWatch } from './watch-secrets.ts';

let world: World;
let stripe: FakeStripe;
let receiver: Receiver;
let isSilent = false;
let isHypervisorBroken = false;
before(async () => {
  stripe = await startFakeStripe();
  receiver = await startReceiver();
  world = await createWorld({
    gateway: () => createPatientGateway(stripe, null, () => isSilent),
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
async function run() {
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
    isSilent = behaviour.startsWith('timeout');
    await call('POST', '/api/v2/servers', { key: token, body: order });
    isSilent = false;
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
  await drainWebhooks();
  const stored = { ...(await useFactors(customer)), ...(await rotateWebhook(owner.id, endpoint)) };
  return { rootPassword: created.body.root_password as string, token, stored };
}

/** An authenticator app with recovery codes, a sign-in and a mailed link: what of it must not be readable in a row. */
async function useFactors({ owner, email }: { owner: { id: number }; email: string }) {
  const app = (await world.factors.beginTotp(owner.id, email))!;
  const code = new TOTP({ secret: Secret.fromBase32(app.secret) }).generate({
    timestamp: world.clock.nowMs(),
  });
  const confirmed = await world.factors.confirmTotp(owner.id, code);
  const session = await world.sessions.start(owner.id);
  await fetch(`${world.url}/reset-password`, { method: 'POST', body: new URLSearchParams({ email }) });
  const mails = await world.mailsTo(email);
  const link = /set-password\/([A-Za-z0-9_-]{43})/.exec(JSON.stringify(mails));
  return {
    'the secret of an app': app.secret,
    'a recovery code': confirmed!.codes![0]!,
    'a session': session.split(';')[0]!.split('=')[1]!.split('.').at(-1)!,
    'a mailed link': link![1]!,
  };
}

/** Both secrets sign while the former one is still good. */
async function rotateWebhook(
  ownerId: number,
  { endpointId, secret }: { endpointId: number; secret: string },
) {
  const actor = (await world.accounts.customerActorOf(ownerId))!;
  const next = await world.webhooks.rotateSecret(actor, endpointId);
  const had = receiver.received.length;
  await world.webhooks.sendTest(actor, endpointId);
  await drainWebhooks();
  assert.equal(receiver.received.length, had + 1);
  return {
    'a webhook’s former secret': webhookSecretBytes(secret),
    'a webhook’s secret': webhookSecretBytes(next),
  };
}

const drainWebhooks = () =>
  createWebhookSender({
    secrets: world.secrets,
    db: () => world.database.db,
    clock: world.clock,
    reporter: world.reporter,
    rules: { allowPrivate: true },
    random: () => 0.5,
  }).drain();

test('E5, G8: of passwords and tokens nothing stands in answers, logs, events, webhooks, errors, the gateway or the database', async (t) => {
  const { rootPassword, token, stored } = await run();
  assert.ok(receiver.received.length >= 6, `${receiver.received.length} webhooks`);
  world.watch.watchText('webhooks', JSON.stringify(receiver.received));
  world.watch.watchText('what Stripe was told', JSON.stringify(await stripe.heard()));
  const { leaks, secrets, bytes } = await world.watch.findLeaks(world.database.pool);
  assert.deepEqual(leaks, []);
  assert.ok(secrets >= 9, `${secrets} secrets`);
  t.diagnostic(`${secrets} secrets, looked for in ${bytes} bytes: 0 found`);

  assert.deepEqual(await findInRows(world.database.pool, stored), []);
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

test('an earlier version’s readable secrets are sealed when operations starts, and a moved one delivers nothing', async () => {
  await using database = await createEarlierDatabase('operations', '0200');
  const { db, pool } = database;
  const before = {
    one: Buffer.alloc(32, 'one'),
    former: Buffer.alloc(32, 'former'),
    two: Buffer.alloc(32, 'two'),
    app: 'JBSWY3DPEHPK3PXP',
  };
  await pool.query(
    "with o as (insert into organizations (name) values ('O') returning id) insert into webhook_endpoints (organization_id, url, description, event_types, secret, previous_secret, previous_secret_until) select id, 'https://example.net/', '', '{server.created}', secret, former, svc_now() + interval '1 day' from o, (values ($1::bytea, $2::bytea), ($3, null)) as given (secret, former)",
    [before.one, before.former, before.two],
  );
  await pool.query('insert into totp_secrets (person_id, sealed) values (7, $1)', [`plain:${before.app}`]);
  assert.equal((await findInRows(pool, before)).length, 4);
  await database.upgrade();
  const deps = { db: () => db, program: 'operations', columns: operationsSecrets };
  const secrets = createTestSecrets(deps);
  await secrets.part.start();
  assert.deepEqual(await findInRows(pool, before), []);
  const { rows } = await pool.query(
    'select id, sealed_secret as one, sealed_previous_secret as former from webhook_endpoints order by id',
  );
  const [secret, former] = webhookSecrets;
  assert.deepEqual(await secrets.open(db, secret, rows[0].id, rows[0].one), before.one);
  assert.deepEqual(await secrets.open(db, former, rows[0].id, rows[0].former), before.former);
  const refused = (error: unknown) => hasCode(error, 'secrets.refused');
  await assert.rejects(secrets.open(db, secret, rows[0].id, rows[0].former), refused, 'from the next column');
  await assert.rejects(secrets.open(db, secret, rows[0].id, rows[1].one), refused, 'from the next row');
});
