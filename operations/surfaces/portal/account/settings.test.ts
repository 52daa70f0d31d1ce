import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

let world: World;
const failuresMax = 12;
before(async () => {
  world = await createWorld({ signInFailuresMax: failuresMax });
});
after(() => world[Symbol.asyncDispose]());

const html = { accept: 'text/html' };
const get = (path: string, cookie = '') =>
  fetch(`${world.url}${path}`, { headers: { ...html, cookie }, redirect: 'manual' });
const send = (path: string, fields: Record<string, string>, cookie = '') =>
  fetch(`${world.url}${path}`, {
    method: 'POST',
    headers: { ...html, cookie },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  });

async function visit(email: string, given = password) {
  const cookie = await world.signIn(email, given);
  const page = async (path: string) => (await get(path, cookie)).text();
  const token = /name="csrf_token" value="([^"]+)"/.exec(await page('/client/settings/'))?.[1] ?? '';
  return {
    cookie,
    page,
    get: (path: string) => get(path, cookie),
    post: (path: string, fields: Record<string, string> = {}) =>
      send(path, { csrf_token: token, ...fields }, cookie),
  };
}

/** Mails an invitation; the path of its link, which stands in the mail and on no page. */
async function invite(owner: Awaited<ReturnType<typeof visit>>, organizationId: number, email: string) {
  const answer = await owner.post('/client/settings/invitations', {
    organization: String(organizationId),
    email,
  });
  assert.equal(answer.status, 303);
  assert.doesNotMatch(await owner.page(answer.headers.get('location')!), /\/join\//);
  const [mail] = await world.mailsTo(email.toLowerCase());
  return new URL(/http\S+\/join\/[A-Za-z0-9_-]{43}/.exec(mail!.text)![0]).pathname;
}

test('an owner invites a person by a link that is mailed to them, works once and for seven days', async () => {
  const { email, tenant } = await world.createCustomer('Inviting');
  const owner = await visit(email);
  const path = await invite(owner, tenant.organizationId, 'New.Person@inviting.test');
  assert.match(await (await get(path)).text(), /You were invited as new\.person@inviting\.test/);
  assert.equal((await send(path, { name: 'New Person', password: 'too short' })).status, 422);
  assert.equal((await send(path, { name: '', password: 'a long new password' })).status, 422);
  const joined = await send(path, { name: 'New Person', password: 'a long new password' });
  assert.equal(joined.headers.get('location'), '/client/');
  const cookie = joined.headers.get('set-cookie')!.split(';')[0]!;
  assert.match(await (await get('/client/settings/', cookie)).text(), /You are a member/);
  assert.equal((await get(path)).status, 404, 'works once');
  assert.equal((await send(path, { name: 'Again', password: 'a long new password' })).status, 404);

  const late = await invite(owner, tenant.organizationId, 'late@inviting.test');
  await moveWorldClock(world.database, '7 days 1 minute');
  assert.equal((await get(late)).status, 404, 'seven days');
  await moveWorldClock(world.database, '0');
  const first = await invite(owner, tenant.organizationId, 'twice@inviting.test');
  const second = await invite(owner, tenant.organizationId, 'twice@inviting.test');
  assert.deepEqual([(await get(first)).status, (await get(second)).status], [404, 200], 'the newest works');
  const id = /twice@inviting\.test[\s\S]*?name="invitation" value="(\d+)"/.exec(
    await owner.page('/client/settings/'),
  )![1]!;
  const revoke = { organization: String(tenant.organizationId), invitation: id };
  await owner.post('/client/settings/invitations/revoke', revoke);
  assert.equal((await get(second)).status, 404, 'taken back');
  const { rows } = await world.database.pool.query('select invitations::text as row from invitations');
  assert.ok(!JSON.stringify(rows).includes(second.slice(6)), 'no link stands in the database');
});

test('invitations are bounded by day, organization and address, and their mail says nothing that the organization chose but its name', async () => {
  const { email, tenant } = await world.createCustomer('Mailing');
  const owner = await visit(email);
  const other = await world.createCustomer('Also mailing');
  const stranger = await visit(other.email);
  const organization = String(tenant.organizationId);
  const asked = async (by: typeof owner, of: { organizationId: number }, to: string) => {
    const fields = { organization: String(of.organizationId), email: to };
    return (await by.post('/client/settings/invitations', fields)).status;
  };
  for (const name of [
    ...['Pay at https://evil.example/x', 'www.evil.example', 'Pay now: evil.example', 'pay@evil.example'],
    ...['Evil\u202eelpmaxe', 'Two\nlines', 'evil\uff0eexample'],
  ])
    assert.equal(
      (await owner.post('/client/settings/organization', { organization, name })).status,
      422,
      name,
    );
  const named = { organization, name: 'Müller & Söhne A/S, Inc. of St. Gallen B.V.' };
  assert.equal((await owner.post('/client/settings/organization', named)).status, 303);

  for (let i = 0; i < 3; i += 1)
    assert.equal(
      await asked(i === 0 ? stranger : owner, i === 0 ? other.tenant : tenant, 'x@often.test'),
      303,
    );
  for (const one of [owner, stranger])
    assert.equal(await asked(one, one === owner ? tenant : other.tenant, 'X@often.test'), 422, 'one address');
  const [mail] = await world.mailsTo('x@often.test');
  assert.equal(mail!.subject, 'Invitation to Virtual servers');
  assert.match(
    mail!.text,
    /join the organization “Müller & Söhne A\/S, Inc\. of St\. Gallen B\.V\.” at Virtual/,
  );

  const many = await Promise.all(
    Array.from({ length: 20 }, (_, i) => asked(owner, tenant, `person${i}@mailing.test`)),
  );
  assert.equal(many.filter((status) => status === 303).length, 18, 'twenty of one organization');
  await moveWorldClock(world.database, '1 day 1 minute');
  const later = await visit(email);
  assert.equal(await asked(later, tenant, 'x@often.test'), 303, 'the next day');
  await world.database.pool.query("update organizations set name = 'evil.example' where id = $1", [
    tenant.organizationId,
  ]);
  assert.equal(await asked(later, tenant, 'y@often.test'), 422, 'a name of before this rule');
  await moveWorldClock(world.database, '0');
});

test('a person with an account joins another organization with their own password only, on the same page as all others', async () => {
  const inviting = await world.createCustomer('Second home');
  const known = await world.createCustomer('First home');
  const owner = await visit(inviting.email);
  const path = await invite(owner, inviting.tenant.organizationId, known.email);
  const pageOf = async (at: string, email: string) =>
    (await (await get(at)).text()).replaceAll(at, 'PATH').replaceAll(email, 'EMAIL');
  const stranger = await invite(owner, inviting.tenant.organizationId, 'stranger@second.test');
  assert.equal(await pageOf(path, known.email), await pageOf(stranger, 'stranger@second.test'));
  assert.equal((await send(path, { password: 'not their password' })).status, 422);
  assert.equal((await send(path, { password })).status, 303);
  const actor = await world.accounts.customerActorOf(known.owner.id);
  assert.deepEqual([...actor!.tenantIds].sort(), [known.tenant.id, inviting.tenant.id].sort());
});

test('a removed member’s open session and keys reach nothing of the organization from the next request on', async () => {
  const { email, tenant, owner } = await world.createCustomer('Removing');
  const member = await world.accounts.createPerson(systemActor, {
    email: 'leaving@removing.test',
    name: 'Leaving',
    password,
  });
  await world.accounts.addMember(systemActor, tenant.organizationId, member.id);
  const { serverId } = await world.deploy(tenant, 'kept');
  const leaving = await visit(member.email);
  assert.equal((await leaving.get(`/client/servers/${serverId}`)).status, 200);
  const boss = await visit(email);
  const organization = String(tenant.organizationId);
  const removeOwner = { organization, person: String(owner.id) };
  assert.equal((await boss.post('/client/settings/members/remove', removeOwner)).status, 404);
  await boss.post('/client/settings/members/remove', { organization, person: String(member.id) });
  assert.equal((await leaving.get(`/client/servers/${serverId}`)).status, 404);
  assert.equal((await leaving.get(`/client/billing/?tenant=${tenant.id}`)).status, 404);
});

test('members may not do what is the owner’s, and owners nothing to other organizations', async () => {
  const { tenant } = await world.createCustomer('Guarded');
  const stranger = await visit((await world.createCustomer('Stranger')).email);
  const person = await world.accounts.createPerson(systemActor, {
    email: 'member@guarded.test',
    name: 'Member',
    password,
  });
  await world.accounts.addMember(systemActor, tenant.organizationId, person.id);
  const member = await visit(person.email);
  const organization = String(tenant.organizationId);
  for (const who of [member, stranger]) {
    for (const [path, fields] of [
      ['organization', { organization, name: 'Taken' }],
      ['workspaces', { organization, name: 'Taken' }],
      ['invitations', { organization, email: 'x@x.test' }],
      ['invitations/revoke', { organization, invitation: '1' }],
      ['members/remove', { organization, person: String(person.id) }],
    ] as const)
      assert.equal((await who.post(`/client/settings/${path}`, fields)).status, 403, path);
  }
  const profile = {
    tenant: String(tenant.id),
    tenant_name: 'x',
    legal_name: 'x',
    email: 'x@x.test',
    country: 'DE',
  };
  assert.equal((await member.post('/client/settings/profile', profile)).status, 403);
  assert.equal((await stranger.post('/client/settings/profile', profile)).status, 404);
  assert.equal((await world.accounts.findTenant(tenant.id))!.organizationName, 'Guarded');
});

test('an owner renames, adds a workspace and gives it a billing profile', async () => {
  const { email, tenant } = await world.createCustomer('Growing');
  const owner = await visit(email);
  const organization = String(tenant.organizationId);
  await owner.post('/client/settings/organization', { organization, name: 'Grown' });
  await owner.post('/client/settings/workspaces', { organization, name: 'Staging' });
  const tenants = await world.accounts.tenantsOfOrganization(tenant.organizationId);
  assert.deepEqual(
    tenants.map((each) => [each.name, each.organizationName, each.hasBillingProfile]),
    [
      ['Growing', 'Grown', true],
      ['Staging', 'Grown', false],
    ],
  );
  const page = await (await visit(email)).page('/client/settings/');
  assert.match(page, /Staging has no billing profile, so its API is locked/);
  const staging = String(tenants[1]!.id);
  const profile = { tenant: staging, tenant_name: 'Stage', legal_name: 'Grown Ltd', email, country: 'de' };
  assert.equal((await (await visit(email)).post('/client/settings/profile', profile)).status, 303);
  assert.equal((await world.accounts.billingProfileOf(tenants[1]!.id))!.country, 'DE');
});

test('a changed password needs the old one, ends the person’s other sessions, and is mailed', async () => {
  const { email } = await world.createCustomer('Password');
  const other = await visit(email);
  const here = await visit(email);
  const change = (current: string, next: string) => here.post('/client/account/password', { current, next });
  assert.equal((await change('wrong password', 'another long one')).status, 422);
  const refused = await change(password, 'eleven long');
  assert.deepEqual([refused.status, /12 to 200 characters/.test(await refused.text())], [422, true]);
  assert.equal((await change(password, `${email}!`)).status, 422, 'the own address');
  assert.equal((await other.get('/client/')).status, 200);
  assert.equal((await change(password, 'another long one')).status, 303);
  assert.equal((await other.get('/client/')).status, 303, 'signed out');
  assert.equal((await here.get('/client/')).status, 200, 'this browser stays');
  assert.equal((await send('/sign-in', { email, password })).status, 401);
  assert.equal((await send('/sign-in', { email, password: 'another long one' })).status, 303);
  const subjects = (await world.mailsTo(email)).map((mail) => mail.subject);
  assert.ok(subjects.includes('Your password was changed'));
});

test('strangers’ failures do not lock out the owner of the right password in a browser that knows them', async () => {
  const { email } = await world.createCustomer('Besieged');
  const signedIn = await send('/sign-in', { email, password });
  const device = signedIn.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0]!)
    .find((cookie) => cookie.includes('_device='))!;
  const attack = (address: string, network: string) =>
    Promise.all(
      Array.from({ length: failuresMax * 5 }, (_, i) =>
        world.sessions.beginAttempt(address, `${network}.${i % 5}`),
      ),
    );
  // One source locks out only itself; five together use up the attempts of an address.
  for (let i = 0; i < failuresMax * 3; i += 1) await world.sessions.beginAttempt(email, '192.0.2.77');
  assert.equal((await send('/sign-in', { email, password })).status, 303);
  await attack(email, '198.51.100');
  assert.equal((await send('/sign-in', { email, password })).status, 429, 'an unknown browser waits');
  assert.equal((await send('/sign-in', { email, password }, device)).status, 303, 'the owner’s does not');
  const other = await world.createCustomer('Other besieged');
  await attack(other.email, '203.0.113');
  assert.equal(
    (await send('/sign-in', { email: other.email, password }, device)).status,
    429,
    'a device is known for its own person alone',
  );
  // The mailed link lets the owner in through an unknown browser while strangers go on.
  await send('/reset-password', { email });
  const link = /http\S+(\/set-password\/\S+)/.exec((await world.mailsTo(email))[0]!.text)![1]!;
  const set = await send(link, { password: 'quite another one' });
  const known = set.headers.get('set-cookie')!.split(';')[0]!;
  assert.equal((await send('/sign-in', { email, password: 'quite another one' })).status, 429);
  assert.equal((await send('/sign-in', { email, password: 'quite another one' }, known)).status, 303);
  assert.equal((await send('/sign-in', { email, password: 'quite another one' }, device)).status, 429);
  const again = known;
  for (let i = 0; i < failuresMax; i += 1) await world.sessions.beginAttempt(email, `203.0.113.${i}`, again);
  assert.equal((await send('/sign-in', { email, password }, again)).status, 429, 'its own failures count');
});
