import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { visit as visitSurface } from '#operations/testing/visit.ts';

let world: World;
before(async () => {
  world = await createWorld();
  for (const role of ['operator', 'support'] as const)
    await world.accounts.createPerson(systemActor, {
      email: `${role}@svc.test`,
      name: role,
      password,
      staffRole: role,
    });
});
after(() => world[Symbol.asyncDispose]());

const linkIn = (text: string) => /http\S+(\/set-password\/\S+)/.exec(text)![1]!;
const setPassword = (link: string, given: string) =>
  fetch(`${world.url}${link}`, {
    method: 'POST',
    body: new URLSearchParams({ password: given }),
    redirect: 'manual',
  });

const visit = (email: string) => visitSurface(world, email, '/console/');

test('an operator finds a customer, records credit once, suspends, activates and closes; the API follows', async () => {
  const customer = await world.createCustomer('Console customer');
  const { tenant } = customer;
  await world.createCustomer('Other customer');
  const operator = await visit('operator@svc.test');
  const list = await operator.page('/console/customers/?text=console+cust');
  assert.match(list, new RegExp(`/console/customers/${tenant.id}"`));
  assert.doesNotMatch(list, /Other customer/);
  const at = `/console/customers/${tenant.id}`;
  const credit = { amount: '12.34', reference: 'transfer 7' };
  assert.match((await operator.post(`${at}/credit`, credit)).headers.get('location')!, /done=credit/);
  assert.match((await operator.post(`${at}/credit`, credit)).headers.get('location')!, /done=known/);
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), 1_123_400);
  assert.equal((await operator.post(`${at}/credit`, { ...credit, amount: '-1' })).status, 422);
  const reason = async () => (await world.billing.accessOf([tenant.id])).get(tenant.id)!.status;
  await operator.post(`${at}/status`, { status: 'SUSPENDED' });
  assert.equal(await reason(), 'SUSPENDED');
  assert.match(await operator.page(at), /API locked \(403 account_suspended\)/);
  await operator.post(`${at}/status`, { status: 'ACTIVE' });
  assert.equal(await reason(), 'ACTIVE');
  assert.equal((await operator.post(`${at}/close`, { confirm_name: 'something else' })).status, 422);
  assert.equal(await reason(), 'ACTIVE', 'not without the name');
  await operator.post(`${at}/close`, { confirm_name: tenant.name });
  assert.equal(await reason(), 'CLOSED');
  assert.equal((await operator.post(`${at}/status`, { status: 'ACTIVE' })).status, 422, 'stays closed');
});

test('support reads every page of customers, charges and staff, sees no form, and changes nothing', async () => {
  const { tenant } = await world.createCustomer('Read only');
  const support = await visit('support@svc.test');
  const at = `/console/customers/${tenant.id}`;
  for (const path of [
    '/console/',
    '/console/customers/',
    at,
    `${at}/ledger`,
    '/console/reconciliation/',
    '/console/staff/',
  ]) {
    const page = await support.page(path);
    assert.match(page, /support, read-only/);
    const forms = page.match(/<form[^>]*method="post"[^>]*action="([^"]+)"/g) ?? [];
    assert.deepEqual(
      forms.filter((form) => !form.includes('/sign-out')),
      [],
      path,
    );
  }
  for (const [path, fields] of [
    [`${at}/credit`, { amount: '1', reference: 'x' }],
    [`${at}/adjust`, { amount: '1', reason: 'x', form_id: crypto.randomUUID() }],
    [`${at}/status`, { status: 'SUSPENDED' }],
    [`${at}/close`, { confirm_name: tenant.name }],
    ['/console/reconciliation/retry', { charge: '1' }],
    ['/console/staff/', { email: 'x@x.test', name: 'x', password, role: 'operator' }],
    ['/console/staff/active', { person: '1', active: 'no' }],
  ] as const)
    assert.ok((await support.post(path, fields)).status === 403, path);
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), 1_000_000);
  assert.equal((await world.accounts.findTenant(tenant.id))!.status, 'ACTIVE');
  assert.equal((await world.accounts.listStaff(systemActor)).length, 2);
});

test('a charge that waits is named with its customer, and an operator lets the gateway be asked now', async () => {
  const { tenant } = await world.createCustomer('Waiting customer');
  await world.saveCard(tenant, '4000000000000119');
  const outcome = await world.payments.addCredit(systemActor, tenant.id, {
    amountQuanta: 100_000,
    formId: crypto.randomUUID(),
  });
  assert.equal(outcome.kind, 'unconfirmed');
  const operator = await visit('operator@svc.test');
  const page = await operator.page('/console/reconciliation/');
  assert.match(page, /1 charge waits/);
  assert.match(page, /Waiting customer/);
  assert.equal(await world.payments.reconcile(), 0, 'not due yet');
  const charge = /name="charge" value="(\d+)"/.exec(page)![1]!;
  assert.equal((await operator.post('/console/reconciliation/retry', { charge })).status, 303);
  assert.equal(await world.payments.reconcile(), 1);
  assert.match(await operator.page('/console/reconciliation/'), /No unconfirmed charges/);
  assert.equal((await operator.post('/console/reconciliation/retry', { charge })).status, 404);
});

test('an operator adds and deactivates staff, but not themselves', async () => {
  const operator = await visit('operator@svc.test');
  const fields = { email: 'new@svc.test', name: 'New', role: 'support' };
  const added = await operator.post('/console/staff/', fields);
  assert.deepEqual([added.status, /set-password/.test(await added.text())], [200, false]);
  const link = linkIn((await world.mailsTo('new@svc.test'))[0]!.text);
  assert.equal((await setPassword(link, 'their own password')).status, 303);
  assert.ok(await world.signIn('new@svc.test', 'their own password'));
  assert.equal((await operator.post('/console/staff/', fields)).status, 422, 'the address is taken');
  const staff = await world.accounts.listStaff(systemActor);
  const made = staff.find((person) => person.email === 'new@svc.test')!;
  const me = staff.find((person) => person.email === 'operator@svc.test')!;
  await operator.post('/console/staff/active', { person: String(made.id), active: 'no' });
  assert.equal((await world.accounts.findPerson(made.id))!.isActive, false);
  assert.equal(
    (await operator.post('/console/staff/active', { person: String(me.id), active: 'no' })).status,
    422,
  );
  const { owner } = await world.createCustomer('No staff');
  const customer = { person: String(owner.id), active: 'no' };
  assert.equal(
    (await operator.post('/console/staff/active', customer)).status,
    404,
    'customers are not staff',
  );
});

test('an operator gives and takes credit for a reason, once for each form; the customer reads the reason', async () => {
  const customer = await world.createCustomer('Adjusted');
  const { tenant, email } = customer;
  const operator = await visit('operator@svc.test');
  const at = `/console/customers/${tenant.id}`;
  const formId = /name="form_id" value="([^"]+)"/.exec(await operator.page(at))![1]!;
  const gift = { amount: '5', reason: 'Sorry for the outage', form_id: formId };
  assert.match((await operator.post(`${at}/adjust`, gift)).headers.get('location')!, /done=adjusted/);
  assert.match((await operator.post(`${at}/adjust`, gift)).headers.get('location')!, /done=known/);
  const taken = { amount: '−2.50', reason: 'Recorded twice', form_id: crypto.randomUUID() };
  await operator.post(`${at}/adjust`, taken);
  assert.equal(await world.billing.balanceOf(systemActor, tenant.id), 1_025_000);
  for (const wrong of [{ amount: '0' }, { amount: '-' }, { amount: '--5' }, { reason: ' ' }]) {
    const given = { ...taken, ...wrong, form_id: crypto.randomUUID() };
    assert.equal((await operator.post(`${at}/adjust`, given)).status, 422, JSON.stringify(wrong));
  }
  assert.match(
    await operator.page(`${at}/ledger`),
    /Credit is \$102\.50[\s\S]*Recorded twice[\s\S]*−\$2\.50/,
  );
  const cookie = await world.signIn(email);
  const own = await fetch(`${world.url}/client/billing/`, { headers: { accept: 'text/html', cookie } });
  assert.match(await own.text(), /Sorry for the outage/);
});

test('credit that an operator gave is no payment: it opens nothing once it is spent', async () => {
  const { tenant } = await world.accounts.createCustomer(systemActor, {
    organization: 'Never paid',
    email: 'never@paid.test',
    name: 'Never',
  });
  await world.accounts.setBillingProfile(systemActor, tenant.id, {
    legalName: 'Never',
    email: 'never@paid.test',
    country: 'DE',
  });
  const access = async () => (await world.billing.accessOf([tenant.id])).get(tenant.id)!;
  const adjust = (amountQuanta: number) =>
    world.billing.adjustCredit(systemActor, tenant.id, {
      amountQuanta,
      reason: 'Trial',
      formId: crypto.randomUUID(),
    });
  await adjust(50_000);
  assert.equal((await access()).balanceQuanta, 50_000);
  await adjust(-50_000);
  assert.equal((await access()).hasDeposit, false);
  const operator = await visit('operator@svc.test');
  assert.match(await operator.page(`/console/customers/${tenant.id}`), /402 hourly_not_eligible/);
});

test('API-5.2: a deactivated member is signed out for good and their key stops; a link lets them set a password', async () => {
  const customer = await world.createCustomer('Locked');
  const { tenant, owner, email } = customer;
  const key = await world.createKey(customer);
  const operator = await visit('operator@svc.test');
  const at = `/console/customers/${tenant.id}/members`;
  const fields = { person: String(owner.id) };
  let cookie = await world.signIn(email);
  const pageStatus = async () =>
    (await fetch(`${world.url}/client/`, { headers: { cookie, accept: 'text/html' }, redirect: 'manual' }))
      .status;
  const apiStatus = async () =>
    (await fetch(`${world.url}/api/v2/servers`, { headers: { authorization: `Bearer ${key}` } })).status;
  assert.deepEqual([await pageStatus(), await apiStatus()], [200, 200]);
  assert.equal((await operator.post(`${at}/active`, { ...fields, active: 'no' })).status, 303);
  assert.deepEqual([await pageStatus(), await apiStatus()], [303, 401]);
  await operator.post(`${at}/active`, { ...fields, active: 'yes' });
  assert.deepEqual([await pageStatus(), await apiStatus()], [303, 200], 'the old session stays ended');

  cookie = await world.signIn(email);
  const sent = await operator.post(`${at}/link`, fields);
  assert.deepEqual([sent.status, /set-password/.test(await sent.text())], [200, false], 'mailed, not shown');
  const link = linkIn((await world.mailsTo(email))[0]!.text);
  assert.equal(await pageStatus(), 200);
  const short = await setPassword(link, 'short');
  assert.deepEqual([short.status, /12 to 200 characters/.test(await short.text())], [422, true]);
  assert.equal((await setPassword(link, 'quite another one')).status, 303);
  assert.equal(await pageStatus(), 303, 'the old session has ended');
  assert.equal((await setPassword(link, 'quite a third one')).status, 404, 'it works once');
  cookie = await world.signIn(email, 'quite another one');
  assert.equal(await pageStatus(), 200);

  const stranger = await world.createCustomer('Stranger');
  const staff = (await world.accounts.findPersonByEmail('support@svc.test'))!;
  await world.accounts.addMember(systemActor, tenant.organizationId, staff.id);
  for (const person of [stranger.owner.id, staff.id, 999_999]) {
    const given = { person: String(person), active: 'no' };
    assert.equal((await operator.post(`${at}/active`, given)).status, 404);
    assert.equal((await operator.post(`${at}/link`, given)).status, 404);
  }
});

test('an operator sends a colleague a link, and never learns or sets a password of theirs', async () => {
  const operator = await visit('operator@svc.test');
  const staff = await world.accounts.listStaff(systemActor);
  const idOf = (email: string) => String(staff.find((person) => person.email === email)!.id);
  const support = await visit('support@svc.test');
  const sent = await operator.post('/console/staff/link', { person: idOf('support@svc.test') });
  assert.equal(sent.status, 200);
  assert.equal((await support.get('/console/')).status, 200, 'nothing ends before the link is used');
  const link = linkIn((await world.mailsTo('support@svc.test'))[0]!.text);
  assert.equal((await setPassword(link, 'quite another one')).status, 303);
  assert.equal((await support.get('/console/')).status, 303, 'sent to sign in');
  const { owner } = await world.createCustomer('No colleague');
  assert.equal((await operator.post('/console/staff/link', { person: String(owner.id) })).status, 404);
  const actor = (await world.accounts.staffActorOf(Number(idOf('operator@svc.test'))))!;
  await assert.rejects(world.accounts.setPassword(actor, owner.id, 'quite another one'), /own passwords/);
});
