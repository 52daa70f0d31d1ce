import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import { createApiClient } from '#operations/surfaces/customer-api/testing/client.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createPatientGateway } from './testing/create-patient-gateway.ts';
import { type Behaviour, behaviours, signCallback } from './testing/fake-stripe.ts';
import { type FakeStripe, startFakeStripe } from './testing/start-fake-stripe.ts';

const month = 40_000;
const secret = 'whsec_of_a_test';
let stripe: FakeStripe;
/** Stripe does not answer, so that its answers need not be waited for. */
let isSilent = false;
/** Happens while a charge is taken. */
let meanwhile = async () => {};
let world: World;
let call: ReturnType<typeof createApiClient>;
before(async () => {
  stripe = await startFakeStripe();
  world = await createWorld({
    gateway: () => {
      const gateway = createPatientGateway(stripe, secret, () => isSilent);
      return { ...gateway, take: (...given) => meanwhile().then(() => gateway.take(...given)) };
    },
  });
  call = createApiClient(world.url);
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await stripe[Symbol.asyncDispose]();
});

async function customerWithCard(name: string): Promise<{ tenant: Tenant; key: string }> {
  const customer = await world.createCustomer(name);
  await world.setBalance(customer.tenant, 0);
  const returned = await world.payments.startCardSetup(
    systemActor,
    { ...customer.tenant, email: customer.email },
    { returnUrl: 'http://portal.test/return?tenant=1', cancelUrl: 'http://portal.test/' },
  );
  const setup = new URL(returned).searchParams.get('setup')!;
  await world.payments.finishCardSetup(systemActor, customer.tenant.id, setup);
  return { tenant: customer.tenant, key: await world.createKey(customer) };
}

async function chargeOf(tenant: Tenant) {
  const [charge] = await world.payments.listCharges(systemActor, tenant.id, 1);
  const intent = (await stripe.books()).find((each) => each.key === charge!.key)!;
  return { charge: charge!, intent, balance: await world.billing.balanceOf(systemActor, tenant.id) };
}

/** What a caller is told, and how it stands once reconciliation has had its say. */
const expected: Record<Behaviour, { status: number; reason?: string; end: string; kept: boolean }> = {
  success: { status: 201, end: 'succeeded', kept: true },
  decline: { status: 402, reason: 'charge_declined', end: 'declined', kept: false },
  'timeout before': { status: 402, reason: 'charge_unconfirmed', end: 'voided', kept: false },
  'timeout after': { status: 402, reason: 'charge_unconfirmed', end: 'refunded', kept: false },
  'late success': { status: 402, reason: 'charge_unconfirmed', end: 'refunded', kept: false },
  'duplicate callback': { status: 201, end: 'succeeded', kept: true },
  // The library asks once more under the same key, and Stripe repeats what the first call came to.
  'error after charge': { status: 201, end: 'succeeded', kept: true },
  reset: { status: 201, end: 'succeeded', kept: true },
  'in use': { status: 402, reason: 'charge_unconfirmed', end: 'voided', kept: false },
  // An off-session charge cannot ask the customer, and must not be confirmed later.
  'wants the customer': { status: 402, reason: 'charge_declined', end: 'declined', kept: false },
  'callbacks out of order': { status: 201, end: 'succeeded', kept: true },
};

for (const behaviour of behaviours) {
  test(`API-3.2, API-3.3: Stripe, ${behaviour}: one order, at most one capture, nothing kept without a server`, async () => {
    const { tenant, key } = await customerWithCard(`Stripe ${behaviour}`);
    await stripe.plan({ behaviour, callbackUrl: `${world.url}/integrations/stripe`, callbackSecret: secret });
    isSilent = behaviour.startsWith('timeout');
    const answer = await call('POST', '/api/v2/servers', {
      key,
      body: { plan: 'small', image: 'debian-12' },
    });
    isSilent = false;
    const { status, reason, end, kept } = expected[behaviour];
    assert.deepEqual([answer.status, answer.body.error?.reason], [status, reason]);
    await stripe.finishLate();
    await world.database.pool.query(
      "update charges set next_attempt_at = svc_now() where state = 'unconfirmed' and tenant_id = $1",
      [tenant.id],
    );
    await world.payments.reconcile();
    const { charge, intent, balance } = await chargeOf(tenant);
    assert.equal(charge.state, end);
    if (behaviour === 'wants the customer') assert.equal(intent.status, 'canceled');
    assert.equal(intent.amount, 400, 'one month, in cents');
    assert.ok(intent.captures <= 1);
    assert.equal(intent.captures - intent.refunds, kept ? 1 : 0);
    assert.equal(balance, kept ? month : 0);
    const { rows } = await world.database.pool.query('select 1 from servers where tenant_id = $1', [
      tenant.id,
    ]);
    assert.equal(rows.length, kept ? 1 : 0, 'a late success queues nothing');
  });
}

test('a callback hastens reconciliation when its signature fits the raw body, and is refused else', async () => {
  const { tenant, key } = await customerWithCard('Callback');
  await stripe.plan({ behaviour: 'late success' });
  assert.equal(
    (await call('POST', '/api/v2/servers', { key, body: { plan: 'small', image: 'debian-12' } })).status,
    402,
  );
  await stripe.finishLate();
  assert.equal(await world.payments.reconcile(), 0, 'not due yet');
  const { charge } = await chargeOf(tenant);
  const body = JSON.stringify({
    id: 'evt_1',
    object: 'event',
    type: 'payment_intent.succeeded',
    data: { object: { object: 'payment_intent', metadata: { charge_key: charge.key } } },
  });
  const now = Math.floor(Date.now() / 1000);
  const post = (signature: string | null, text = body) =>
    fetch(`${world.url}/integrations/stripe`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(signature === null ? {} : { 'stripe-signature': signature }),
      },
      body: text,
    });
  const good = signCallback(body, secret, now);
  for (const [signature, text] of [
    [null, body],
    ['', body],
    [good.replace(/.$/, (last) => (last === '0' ? '1' : '0')), body],
    [signCallback(body, 'another secret', now), body],
    [signCallback(body, secret, now - 301), body],
    [good, `${body} `],
    [good, JSON.stringify(JSON.parse(body), null, 1)],
  ] as const)
    assert.equal((await post(signature, text)).status, 401, String(signature));
  assert.equal(await world.payments.reconcile(), 0, 'nothing was believed');
  assert.equal((await post(good)).status, 200);
  assert.equal((await post(good)).status, 200, 'twice is once');
  assert.equal(await world.payments.reconcile(), 1);
  assert.equal((await chargeOf(tenant)).charge.state, 'refunded');
});

test('a card set-up of another customer gives no card', async () => {
  const mine = await customerWithCard('Setup mine');
  const theirs = await world.createCustomer('Setup theirs');
  const url = await world.payments.startCardSetup(
    systemActor,
    { ...theirs.tenant, email: null },
    { returnUrl: 'http://portal.test/return', cancelUrl: 'http://portal.test/' },
  );
  const setup = new URL(url).searchParams.get('setup')!;
  await assert.rejects(
    world.payments.finishCardSetup(systemActor, mine.tenant.id, setup),
    /No card was saved/,
  );
  await assert.rejects(
    world.payments.finishCardSetup(systemActor, mine.tenant.id, '../customers'),
    /No card/,
  );
  await assert.rejects(
    world.payments.finishCardSetup(systemActor, mine.tenant.id, 'cs_test_unknown_session'),
    /No card/,
  );
});

test('a removed card does not return with the browser’s back button, and is not the default card', async () => {
  const customer = await world.createCustomer('Gone back');
  const { tenant } = customer;
  const start = (name: string) =>
    world.payments.startCardSetup(
      systemActor,
      { ...tenant, name, email: customer.email },
      { returnUrl: 'http://portal.test/return', cancelUrl: 'http://portal.test/' },
    );
  const setup = new URL(await start('Gone back')).searchParams.get('setup')!;
  const card = await world.payments.finishCardSetup(systemActor, tenant.id, setup);
  assert.equal(await world.payments.finishCardSetup(systemActor, tenant.id, setup), card, 'once');
  assert.ok(await world.payments.removeCard(systemActor, tenant.id, card));
  await assert.rejects(world.payments.finishCardSetup(systemActor, tenant.id, setup), /No card was saved/);
  assert.deepEqual(await world.payments.listCards(systemActor, tenant.id), []);
  // The customer's name at Stripe was not stored, as after a crash, and they are called differently by now.
  await world.database.pool.query('delete from gateway_customers where tenant_id = $1', [tenant.id]);
  assert.ok(await start('Gone back and renamed'));
});

test('when the default card is removed, the newest of those that are left is the default', async () => {
  const { tenant } = await customerWithCard('Left');
  const add = async () => {
    const url = await world.payments.startCardSetup(
      systemActor,
      { ...tenant, email: null },
      { returnUrl: 'http://portal.test/return', cancelUrl: 'http://portal.test/' },
    );
    const setup = new URL(url).searchParams.get('setup')!;
    return world.payments.finishCardSetup(systemActor, tenant.id, setup);
  };
  const list = () => world.payments.listCards(systemActor, tenant.id);
  const defaults = async () => (await list()).filter((card) => card.isDefault).map(({ id }) => id);
  const remove = (id: number) => world.payments.removeCard(systemActor, tenant.id, id);
  const [first] = await defaults();
  const [second, third, newest] = [await add(), await add(), await add()];
  await world.payments.makeCardDefault(systemActor, tenant.id, newest);
  await remove(newest);
  assert.deepEqual(await defaults(), [third]);
  await world.payments.makeCardDefault(systemActor, tenant.id, first!);
  await remove(second);
  assert.deepEqual(await defaults(), [first], 'another one changes nothing');
});

test('an account is not closed while an order of it is charged', async () => {
  const { tenant, key } = await customerWithCard('Closing');
  const close = () => world.accounts.setTenantStatus(systemActor, tenant.id, 'CLOSED');
  let refusals = 0;
  meanwhile = async () => {
    await assert.rejects(close(), /An order of this account is being carried out/);
    refusals += 1;
  };
  await stripe.plan({ behaviour: 'decline' });
  const answer = await call('POST', '/api/v2/servers', { key, body: { plan: 'small', image: 'debian-12' } });
  meanwhile = async () => {};
  assert.equal(answer.status, 402);
  assert.equal(refusals, 1);
  await close();
});

test('a closed account is not charged any more', async () => {
  const { tenant } = await customerWithCard('Closed');
  await world.accounts.setTenantStatus(systemActor, tenant.id, 'CLOSED');
  const intent = { amountQuanta: 100_000, formId: '00000000-0000-4000-8000-000000000001' };
  await assert.rejects(world.payments.addCredit(systemActor, tenant.id, intent), /closed/);
  assert.deepEqual(await world.payments.listCharges(systemActor, tenant.id, 5), []);
});
