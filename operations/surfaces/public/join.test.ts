/** Mailed links prove an email address: invitations, new customers and password links. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';

let world: World;
before(async () => {
  world = await createWorld();
  await world.accounts.createPerson(systemActor, {
    email: 'operator@svc.test',
    name: 'Operator',
    password,
    staffRole: 'operator',
  });
});
after(() => world[Symbol.asyncDispose]());

const get = (path: string, cookie = '') =>
  fetch(`${world.url}${path}`, { headers: { accept: 'text/html', cookie }, redirect: 'manual' });
const send = (path: string, fields: Record<string, string>) =>
  fetch(`${world.url}${path}`, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' });

test('an owner who invites a stranger’s address never becomes the owner of the customer that is created for it', async () => {
  const attacker = await world.createCustomer('Attacker');
  const boss = await visit(world, attacker.email, '/client/settings/');
  const victim = 'victim@victim.test';
  const invited = await boss.post('/client/settings/invitations', {
    organization: String(attacker.tenant.organizationId),
    email: victim,
  });
  const seen = (await invited.text()) + (await boss.page('/client/settings/'));
  const link = /\/join\/[A-Za-z0-9_-]{43}/.exec(seen)?.[0];
  if (link) await send(link, { name: 'Not the victim', password: 'the attacker’s password' });

  const operator = await visit(world, 'operator@svc.test', '/console/');
  const fields = { organization: 'Victim Inc', email: victim, name: 'Victoria Victim', password };
  await operator.post('/console/customers/', fields);
  const signedIn = await send('/sign-in', { email: victim, password: 'the attacker’s password' });
  assert.equal(signedIn.status, 401, 'the attacker is the owner of Victim Inc');
  assert.equal(link, undefined, 'no page shows a link that proves an address');
});

const linkIn = (text: string) => /http\S+(\/(?:set-password|join)\/\S+)/.exec(text)![1]!;
const newest = async (email: string) => linkIn((await world.mailsTo(email))[0]!.text);

/** As an installation from before has it: a person who set a password by a link that was shown to another person. */
async function createUnverified(email: string) {
  const { owner: boss, tenant } = await world.createCustomer('Before');
  const early = await world.accounts.createPerson(systemActor, { email, name: 'Early', password });
  await world.accounts.addMember(systemActor, tenant.organizationId, early.id);
  await world.database.pool.query('update people set email_verified_at = null where id = $1', [early.id]);
  const key = await world.createKey({ owner: early, tenant });
  const cookie = await world.signIn(email);
  assert.equal((await get('/client/', cookie)).status, 200);
  return {
    ...{ boss, early },
    async isReset() {
      assert.equal((await get('/client/', cookie)).status, 303, 'the session has ended');
      assert.equal((await send('/sign-in', { email, password })).status, 401, 'the password is gone');
      const headers = { authorization: `Bearer ${key}` };
      const call = await fetch(`${world.url}/api/v2/servers`, { headers });
      assert.equal(call.status, 401, 'the key is revoked');
    },
  };
}

test('a known address that was never verified is reset by its own mailed invitation: password, sessions and keys', async () => {
  const email = 'invited@early.test';
  const { isReset } = await createUnverified(email);
  const { tenant } = await world.createCustomer('Inviting');
  await world.accounts.inviteMember(systemActor, tenant.organizationId, email);
  const joined = await send(await newest(email), { name: 'Real', password: 'chosen by the reader' });
  assert.equal(joined.status, 303);
  await isReset();
  const real = await visit(world, email, '/client/settings/', 'chosen by the reader');
  assert.match(await real.page('/client/settings/'), /Inviting/);
});

test('a customer created for a known address that was never verified is reset: password, sessions and keys', async () => {
  const email = 'early@early.test';
  const { boss, early, isReset } = await createUnverified(email);
  const operator = await visit(world, 'operator@svc.test', '/console/');
  const fields = { organization: 'Early Inc', email, name: 'Real Owner' };
  const made = await operator.post('/console/customers/', fields);
  assert.match(made.headers.get('location')!, /done=mailed/);
  await isReset();

  const link = await newest(email);
  assert.match(await (await get(link)).text(), /For early@early\.test/);
  assert.equal((await send(link, { password: 'chosen by the owner' })).status, 303);
  const real = await visit(world, email, '/client/settings/', 'chosen by the owner');
  assert.match(await real.page('/client/settings/'), /Early Inc/);
  assert.ok((await world.accounts.findPerson(early.id))!.isVerified);
  assert.ok((await world.accounts.findPerson(boss.id))!.isVerified, 'people of an operator are verified');
});

test('a customer created for a verified person keeps their password, and they are told', async () => {
  const { email } = await world.createCustomer('Keeping');
  const { delivery } = await world.accounts.createCustomer(systemActor, {
    organization: 'Second of Keeping',
    email,
    name: 'ignored',
  });
  assert.equal(delivery, null);
  assert.equal((await world.mailsTo(email))[0]!.subject, 'You are the owner of an organization');
  assert.equal((await send('/sign-in', { email, password })).status, 303);
});

test('without a mail server an operator gets the owner’s link to pass on, and owners cannot invite', async () => {
  await using silent = await createWorld({ mailFolder: null });
  await silent.accounts.createPerson(systemActor, {
    email: 'operator@svc.test',
    name: 'Operator',
    password,
    staffRole: 'operator',
  });
  const operator = await visit(silent, 'operator@svc.test', '/console/');
  const fields = { organization: 'Quiet', email: 'quiet@quiet.test', name: 'Quinn Quiet' };
  const answer = await (await operator.post('/console/customers/', fields)).text();
  const link = /\/set-password\/[A-Za-z0-9_-]{43}/.exec(answer)![0];
  const set = await fetch(`${silent.url}${link}`, {
    method: 'POST',
    body: new URLSearchParams({ password: 'chosen by the owner' }),
    redirect: 'manual',
  });
  assert.equal(set.status, 303);
  const owner = await visit(silent, 'quiet@quiet.test', '/client/settings/', 'chosen by the owner');
  assert.match(await owner.page('/client/settings/'), /Invitations are not available/);
  const actor = (await silent.accounts.customerActorOf(
    (await silent.accounts.findPersonByEmail('quiet@quiet.test'))!.id,
  ))!;
  const refused = await owner.post('/client/settings/invitations', {
    organization: String(actor.ownedOrganizationIds[0]),
    email: 'x@quiet.test',
  });
  assert.equal(refused.status, 422);
  assert.match(await refused.text(), /This installation has no mail server/);
  const reset = await fetch(`${silent.url}/reset-password`);
  assert.match(await reset.text(), /Ask support/);
});

test('links in a mail use the configured URL, not the Host of a request', async () => {
  const { email } = await world.createCustomer('Hosted');
  const { hostname, port } = new URL(world.url);
  const body = new URLSearchParams({ email }).toString();
  await new Promise<void>((done, fail) => {
    const headers = { host: 'localhost', 'content-type': 'application/x-www-form-urlencoded' };
    const call = request({ hostname, port, path: '/reset-password', method: 'POST', headers }, (answer) => {
      answer.resume().on('end', () => done());
    });
    call.on('error', fail).end(body);
  });
  const [mail] = await world.mailsTo(email);
  assert.ok(mail!.text.includes(`${world.url}/set-password/`), mail!.text);
});
