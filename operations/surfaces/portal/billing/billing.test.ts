import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Stripe from 'stripe';
import { systemActor } from '#operations/accounts/index.ts';
import { createStripeGateway } from '#operations/payments/gateways/stripe.ts';
import { startFakeStripe } from '#operations/payments/testing/start-fake-stripe.ts';
import { createApiClient } from '#operations/surfaces/customer-api/testing/client.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { visit as visitSurface } from '#operations/testing/visit.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

const visit = (email: string) => visitSurface(world, email, '/client/');

test('a customer saves a card, adds credit with it once, and sees both in the ledger', async () => {
  const { email, tenant } = await world.createCustomer('Payer');
  const me = await visit(email);
  const id = String(tenant.id);
  assert.match(await me.page('/client/billing/'), /No card yet/);
  const saved = await me.post('/client/billing/cards/test', { tenant: id, number: '4242424242424242' });
  assert.equal(saved.headers.get('location'), `/client/billing/?tenant=${id}&done=card`);
  const page = await me.page('/client/billing/');
  assert.match(page, /Visa ···· 4242/);
  const formId = /name="form_id" value="([^"]+)"/.exec(page)![1]!;
  const credit = { tenant: id, amount: '25.50', form_id: formId };
  const added = (await me.post('/client/billing/credit', credit)).headers.get('location')!;
  assert.match(await me.page(added), /The credit is added\./);
  const again = await me.post('/client/billing/credit', credit);
  assert.equal(again.status, 422, 'the same form, sent twice');
  assert.match(await again.text(), /sent before; nothing was charged again/);
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), 1_000_000 + 255_000);
  const csv = await me.page(`/client/billing/ledger.csv?source=deposit`);
  assert.match(csv, /Credit paid by card,25\.50,USD/);
  for (const amount of ['4.99', '10000.01', '-5', 'x', '5.001'])
    assert.equal((await me.post('/client/billing/credit', { ...credit, amount })).status, 422, amount);
});

test('a correction by an operator is no spending: neither in the figure nor in the days', async () => {
  const { email, tenant } = await world.createCustomer('Corrected');
  await world.billing.adjustCredit(systemActor, tenant.id, {
    ...{ amountQuanta: -123_400, reason: 'charged twice', formId: 'correction-1' },
  });
  const text = (await (await visit(email)).page('/client/billing/')).replaceAll(/<[^>]+>/g, ' ');
  assert.match(text, /Spent this month\s+\$0\.00/);
  const days = await world.billing.sumDays(systemActor, tenant.id, 3);
  assert.deepEqual(
    days.map(({ serverQuanta, otherQuanta }) => serverQuanta + otherQuanta),
    days.map(() => 0),
  );
});

test('API-3.6: a customer in debt reads what follows, and a suspended one whether paying ends it', async () => {
  const { email, tenant } = await world.createCustomer('Suspended');
  const me = await visit(email);
  const text = async () => (await me.page('/client/billing/')).replaceAll(/<[^>]+>/g, ' ');
  await world.setBalance(tenant, -10_000);
  assert.match(await text(), /−\$1\.00\. Add credit now, or the workspace will be suspended\./);
  await world.setBalance(tenant, 0);
  await world.accounts.setTenantStatus(systemActor, tenant.id, 'SUSPENDED');
  assert.match(await text(), /This account is suspended, .* Please contact support\./);
  await world.setBalance(tenant, -10_000);
  assert.match(
    await text(),
    /This account is suspended, .* It opens again within minutes once the balance is paid\./,
  );
});

test('a declined and an unconfirmed payment are told apart, and the second is named until it is settled', async () => {
  const { email, tenant } = await world.createCustomer('Unlucky');
  const me = await visit(email);
  const id = String(tenant.id);
  const pay = async (number: string) => {
    await me.post('/client/billing/cards/test', { tenant: id, number });
    const formId = crypto.randomUUID();
    return (
      await me.post('/client/billing/credit', { tenant: id, amount: '10', form_id: formId })
    ).headers.get('location')!;
  };
  assert.match(await me.page(await pay('4000000000000002')), /The card was declined; nothing was charged\./);
  assert.match(await me.page(await pay('4000000000000119')), /A payment of \$10\.00 is not confirmed/);
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), 1_000_000);
});

test('a real card number is not taken by the test gateway, and another’s workspace is no page', async () => {
  const { email, tenant } = await world.createCustomer('Careful');
  const other = await world.createCustomer('Other customer');
  const me = await visit(email);
  const refused = await me.post('/client/billing/cards/test', {
    tenant: String(tenant.id),
    number: '4111111111111111',
  });
  assert.equal(refused.status, 422);
  const theirs = String(other.tenant.id);
  assert.equal((await me.get(`/client/billing/?tenant=${theirs}`)).status, 404);
  assert.equal((await me.get(`/client/billing/ledger.csv?tenant=${theirs}`)).status, 404);
  const card = await world.saveCard(other.tenant);
  for (const path of ['default', 'remove'])
    assert.equal(
      (await me.post(`/client/billing/cards/${path}`, { tenant: String(tenant.id), card: String(card) }))
        .status,
      404,
    );
  assert.equal((await world.payments.listCards(systemActor, other.tenant.id)).length, 1);
});

test('API-1.2: checkout in the portal has the reasons and the charge of the API', async () => {
  const { email, tenant } = await world.createCustomer('Checkout');
  await world.setBalance(tenant, 0);
  const me = await visit(email);
  const order = { tenant: String(tenant.id), plan: 'small', image: 'debian-12', location: 'fra' };
  const refused = await me.post('/client/servers/new', order);
  assert.equal(refused.status, 402);
  assert.match(await refused.text(), /Another server needs credit above zero or a saved card/);
  await world.saveCard(tenant, '4000000000000002');
  const declined = await me.post('/client/servers/new', order);
  assert.equal(declined.status, 402);
  assert.match(await declined.text(), /card was declined/);
  await world.saveCard(tenant);
  assert.equal((await me.post('/client/servers/new', order)).status, 200);
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), 40_000, 'one month of credit');
});

test('API-4.5: the portal’s checkout orders once for one form and once in 20 seconds; each call of the API is a new order', async () => {
  const customer = await world.createCustomer('Twice');
  const { email, tenant } = customer;
  const me = await visit(email);
  const countOf = async () =>
    (await world.database.pool.query('select 1 from server_orders where tenant_id = $1', [tenant.id])).rows
      .length;
  const page = await (await me.get('/client/servers/new')).text();
  const form_id = /name="form_id" value="([0-9a-f-]{36})"/.exec(page)![1]!;
  const order = {
    tenant: String(tenant.id),
    plan: 'small',
    image: 'debian-12',
    location: 'fra',
    name: 'one',
  };
  const sent = await Promise.all([1, 2, 3].map(() => me.post('/client/servers/new', { ...order, form_id })));
  assert.deepEqual(sent.map((answer) => answer.status).sort(), [200, 409, 409], 'a double click');
  const refused = await sent.find((answer) => answer.status === 409)!.text();
  assert.match(refused, /sent before, and nothing was ordered again/);
  assert.notEqual(/name="form_id" value="([0-9a-f-]{36})"/.exec(refused)![1], form_id, 'a new form');
  // However long the answers above took.
  await world.database.pool.query('update server_orders set created_at = svc_now() where tenant_id = $1', [
    tenant.id,
  ]);
  const again = await me.post('/client/servers/new', order);
  assert.equal(again.status, 409, 'another form of the same order');
  assert.match(await again.text(), /ordered less than 20 seconds ago/);
  assert.equal(
    (await me.post('/client/servers/new', { ...order, name: 'two' })).status,
    200,
    'another order',
  );
  await world.database.pool.query(
    "update server_orders set created_at = created_at - interval '21 seconds' where tenant_id = $1",
    [tenant.id],
  );
  assert.equal(
    (await me.post('/client/servers/new', { ...order, form_id })).status,
    409,
    'a page loaded anew',
  );
  assert.equal((await me.post('/client/servers/new', order)).status, 200);
  assert.equal(await countOf(), 3);
  const key = await world.createKey(customer);
  const call = createApiClient(world.url);
  const body = { plan: 'small', image: 'debian-12', location: 'fra', name: 'three' };
  for (let i = 0; i < 2; i += 1)
    assert.equal((await call('POST', '/api/v1/servers', { key, body })).status, 201);
  assert.equal(await countOf(), 5);
});

test('a card is saved by a form with the session’s token, never by a GET', async () => {
  const { email, tenant } = await world.createCustomer('Returning');
  const { get, post } = await visit(email);
  const cards = () => world.payments.listCards(systemActor, tenant.id);
  const back = `/client/billing/cards/return?tenant=${tenant.id}&setup=4242424242424242`;
  const page = await get(back);
  assert.equal(page.status, 200);
  assert.match(await page.text(), /name="setup" value="4242424242424242"/);
  assert.deepEqual(await cards(), []);
  const form = { tenant: String(tenant.id), setup: '4242424242424242' };
  assert.equal((await post('/client/billing/cards/return', { ...form, csrf_token: 'forged' })).status, 403);
  assert.deepEqual(await cards(), []);
  assert.equal((await post('/client/billing/cards/return', form)).status, 303);
  assert.equal((await cards())[0]?.last4, '4242');
});

test('with a wrong key at the gateway, and with none that answers, a customer reads that payments are not available', async () => {
  await using stripe = await startFakeStripe();
  const gateway = createStripeGateway(Stripe, {
    secretKey: 'sk_test_wrong',
    apiUrl: stripe.url,
    callbackSecret: null,
  });
  await using other = await createWorld({ gateway: () => gateway });
  const { email, tenant } = await other.createCustomer('Unserved');
  const { post } = await visitSurface(other, email, '/client/');
  const form = { tenant: String(tenant.id), setup: 'cs_test_1' };
  const refusal = async (path: string) => {
    const answer = await post(`/client/billing/cards/${path}`, form);
    assert.equal(answer.status, 503);
    assert.match(await answer.text(), /Payments are not available right now\. Nothing was changed/);
  };
  await refusal('new');
  await refusal('return');
  await stripe[Symbol.asyncDispose]();
  await refusal('new');
});
