/** Staff sign in at an OpenID provider: who they are then, and what no answer of a provider or a stranger brings about. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/create-world.ts';
import { type Answering, startLyingProvider } from '#service-kit/oidc/testing/lying-provider.ts';

let world: World;
let provider: Awaited<ReturnType<typeof startLyingProvider>>;
before(async () => {
  provider = await startLyingProvider();
  world = await createWorld({
    ...{ oidcIssuer: provider.issuer, oidcClientId: 'svc', oidcClientSecret: 'Kx7wQ2mZr9TfLp4B' },
    ...{ oidcOperatorGroups: ['ops'], oidcReaderGroups: ['helpdesk'] },
  });
  // Someone must remain an operator.
  await world.accounts.createPerson(systemActor, {
    ...{ email: 'root@staff.test', name: 'Root', password, staffRole: 'operator' },
  });
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await provider.stop();
});

/** A browser: keeps cookies, follows nothing by itself. */
function openBrowser() {
  const jar = new Map<string, string>();
  const ask = async (path: string, fields?: Record<string, string>) => {
    const answer = await fetch(`${world.url}${path}`, {
      ...(fields && { method: 'POST', body: new URLSearchParams(fields) }),
      headers: { accept: 'text/html', cookie: [...jar].map((pair) => pair.join('=')).join('; ') },
      redirect: 'manual',
    });
    for (const line of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]!.split('=');
      if (/Max-Age=0/.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    return { status: answer.status, to: answer.headers.get('location') ?? '', text: await answer.text() };
  };
  /** Begins at a path of ours and comes back with the provider's answer. */
  const at = async (path: string, answering: Answering) =>
    ask(provider.answer((await ask(path)).to, answering));
  return {
    ...{ jar, at, get: (path: string) => ask(path), post: ask },
    signIn: (answering: Answering, next = '/console/') =>
      at(`/sign-in/oidc?next=${encodeURIComponent(next)}`, answering),
    /** The path of one's first page, with a session or without. */
    home: async () => (await ask('/console/')).status,
  };
}

let made = 0;
/** A person of the provider in these groups. */
function personOf(groups: readonly string[], more: Record<string, unknown> = {}) {
  made += 1;
  const name = `person-${made}`;
  return { claims: { sub: name, email: `${name}@staff.test`, name: `Person ${made}`, groups, ...more } };
}
const tokenIn = (page: string) => /name="csrf_token" value="([^"]+)"/.exec(page)?.[1] ?? '';
const ticketIn = (page: string) => /name="ticket" value="([^"]+)"/.exec(page)?.[1] ?? '';
const roleOf = async (email: string) => (await world.accounts.findPersonByEmail(email))?.staffRole ?? null;
/** Makes every session look as if this much time had passed since its last proof and its last look at groups. */
const passTime = (interval: string) =>
  world.database.pool.query(
    `update sessions set authenticated_at = authenticated_at - $1::interval,
      identity_checked_at = identity_checked_at - $1::interval`,
    [interval],
  );

test('a new person of the provider is let in with the role of their groups, by the strongest of them', async () => {
  const reader = personOf(['helpdesk', 'other']);
  const browser = openBrowser();
  const landed = await browser.signIn(reader, '/console/attacks/');
  assert.deepEqual([landed.status, landed.to], [303, '/console/attacks/']);
  assert.equal(await browser.home(), 200);
  assert.equal(await roleOf(String(reader.claims.email)), 'support');
  const both = { claims: { ...reader.claims, groups: ['helpdesk', 'ops'] } };
  await browser.signIn(both);
  assert.equal(await roleOf(String(reader.claims.email)), 'operator');
  const audited = await world.database.pool.query(
    `select operation from audit_entries where operation in ('oidc.create_person', 'person.change_role') order by id`,
  );
  assert.deepEqual(
    audited.rows.map(({ operation }) => operation),
    ['oidc.create_person', 'person.change_role'],
  );
});

test('no answer signs anyone in that the provider did not sign for this client, this browser and this moment', async () => {
  const now = Math.floor(Date.now() / 1000);
  const claimed = (more: Record<string, unknown>): Answering => personOf(['ops'], more);
  const lies: Record<string, Answering> = {
    'another nonce': claimed({ nonce: 'x'.repeat(43) }),
    'no nonce': claimed({ nonce: undefined }),
    'another issuer': claimed({ iss: 'https://evil.example' }),
    'another audience': claimed({ aud: 'someone-else' }),
    expired: claimed({ exp: now - 600, iat: now - 900 }),
    'alg none': { ...claimed({}), alg: 'none' },
    'another key': { ...claimed({}), isForged: true },
    'a refusal': { ...claimed({}), back: { error: 'access_denied' } },
    'another state': { ...claimed({}), back: { state: 'x'.repeat(43) } },
  };
  for (const [name, lie] of Object.entries(lies)) {
    const browser = openBrowser();
    const { status, text } = await browser.signIn(lie);
    assert.equal(status, 403, name);
    assert.match(text, /Back to sign-in/, name);
    assert.equal(browser.jar.has('svc_operations'), false, name);
    assert.equal(await roleOf(String(lie.claims.email)), null, name);
  }
});

test('an answer counts once, in the browser that asked, with the verifier of its request', async () => {
  const person = personOf(['ops']);
  const [browser, stranger] = [openBrowser(), openBrowser()];
  const { to } = await browser.get('/sign-in/oidc');
  const back = provider.answer(to, person);
  await stranger.get('/sign-in/oidc');
  assert.match((await stranger.get(back)).text, /was not begun here/);
  assert.equal((await browser.get(back)).status, 303);
  assert.match((await browser.get(back)).text, /was not begun here/, 'a replay');
  // The code of another request, which was made with another verifier.
  const [first, second] = [await browser.get('/sign-in/oidc'), await browser.get('/sign-in/oidc')];
  const stolen = new URLSearchParams(provider.answer(first.to, person).split('?')[1]);
  const mixed = new URLSearchParams(provider.answer(second.to, person).split('?')[1]);
  mixed.set('code', stolen.get('code')!);
  assert.match((await browser.get(`/sign-in/oidc/answer?${mixed}`)).text, /is not valid/);
});

test('a provider that replaces its key signs people in at once, and one that is down is said to be', async () => {
  const person = personOf(['ops']);
  const browser = openBrowser();
  assert.equal((await browser.signIn(person)).status, 303);
  provider.rotate();
  assert.equal((await browser.signIn(person)).status, 303);
  await passTime('61 minutes');
  provider.setDown(true);
  const asked = await browser.get((await browser.get('/console/')).to);
  const down = await browser.get(asked.to);
  const way = /href="([^"]+)"[^>]*>Back to sign-in/.exec(down.text)?.[1];
  const page = (await browser.get(way!)).text;
  provider.setDown(false);
  assert.match(page, /name="password"/, 'no circle: the form is one click away');
  assert.equal(down.status, 503);
  assert.match(down.text, /can’t be reached.*password/s);
  assert.match(await world.signIn('root@staff.test'), /^svc_operations=/, 'and local sign-in works');
});

test('who is in no group has no access, and sessions end at the next look when the groups are gone', async () => {
  const stranger = personOf(['sales']);
  assert.match((await openBrowser().signIn(stranger)).text, /give no access/);
  assert.equal(await roleOf(String(stranger.claims.email)), null, 'and no account was made');
  const person = personOf(['ops']);
  const [browser, other] = [openBrowser(), openBrowser()];
  await browser.signIn(person);
  await other.signIn(person);
  await passTime('61 minutes');
  const asked = await browser.get('/console/servers/');
  assert.equal(asked.to, `/sign-in?next=${encodeURIComponent('/console/servers/')}`);
  assert.equal(
    (await browser.get(asked.to)).to,
    `/sign-in/oidc?next=${encodeURIComponent('/console/servers/')}`,
  );
  assert.equal((await browser.signIn(person)).status, 303, 'still in the group');
  assert.equal(await browser.home(), 200);
  const removed = { claims: { ...person.claims, groups: [] } };
  assert.match((await browser.signIn(removed)).text, /give no access/);
  assert.deepEqual([await browser.home(), await other.home()], [303, 303], 'in every browser');
});

test('whom the provider made has no other way in', async () => {
  const person = personOf(['ops']);
  await openBrowser().signIn(person);
  const email = String(person.claims.email);
  const { id } = (await world.accounts.findPersonByEmail(email))!;
  await world.accounts.setPassword(systemActor, id, password);
  const browser = openBrowser();
  const { status, text } = await browser.post('/sign-in', { email, password });
  assert.equal(status, 403);
  assert.match(text, /is signed in there only/);
  assert.equal(browser.jar.has('svc_operations'), false);
});

test('an equal email address links nothing: the owner signs in and links by hand', async () => {
  const owner = await world.accounts.createPerson(systemActor, {
    ...{ email: 'lena@staff.test', name: 'Lena', password, staffRole: 'support' },
  });
  const lena = personOf(['ops'], { email: 'LENA@staff.test' });
  const browser = openBrowser();
  assert.match((await browser.signIn(lena)).text, /is not linked yet/);
  const customer = await world.createCustomer('Namesake');
  assert.match((await openBrowser().signIn(personOf(['ops'], { email: customer.email }))).text, /not linked/);

  await browser.post('/sign-in', { email: owner.email, password });
  const back = await browser.at('/console/account/oidc/begin', lena);
  const page = (await browser.get(back.to)).text;
  assert.match(page, /LENA@staff\.test/);
  const link = (fields: Record<string, string>) => browser.post('/console/account/oidc/link', fields);
  assert.equal((await link({ ticket: ticketIn(page) })).status, 403, 'without the token of the session');
  const done = await link({ ticket: ticketIn(page), csrf_token: tokenIn(page) });
  assert.equal(done.to, '/console/account/?done=linked');
  assert.match((await browser.get('/console/account/')).text, /Linked with LENA@staff\.test/);

  const fresh = openBrowser();
  assert.equal((await fresh.signIn(lena)).status, 303);
  assert.equal(await roleOf(owner.email), 'operator', 'by the groups');
  assert.match(await world.signIn(owner.email), /^svc_operations=/, 'the password still works');
  const token = tokenIn((await browser.get('/console/account/')).text);
  await browser.post('/console/account/oidc/unlink', { csrf_token: token });
  assert.equal(await fresh.home(), 303, 'its sessions end with the link');
  assert.match((await fresh.signIn(lena)).text, /is not linked yet/);
  const audited = await world.database.pool.query(
    `select operation, person_id::int as person from audit_entries where operation like 'oidc.%link' order by id`,
  );
  assert.deepEqual(audited.rows, [
    { operation: 'oidc.link', person: owner.id },
    { operation: 'oidc.unlink', person: owner.id },
  ]);
});

test('a stranger’s account is not linked by a page that sends a browser there', async () => {
  const mallory = personOf(['ops']);
  const victim = openBrowser();
  await victim.post('/sign-in', { email: 'root@staff.test', password });
  const back = await victim.at('/console/account/oidc/begin', mallory);
  const ticket = new URLSearchParams(back.to.split('?')[1]).get('ticket')!;
  // Nothing is linked before the victim says so; nor may another session use what was begun.
  const other = openBrowser();
  await other.signIn(personOf(['ops']));
  other.jar.set('svc_operations_oidc', victim.jar.get('svc_operations_oidc')!);
  const csrf = tokenIn((await other.get('/console/account/')).text);
  const tried = await other.post('/console/account/oidc/link', { ticket, csrf_token: csrf });
  assert.equal(tried.status, 404);
  const rows = await world.database.pool.query('select 1 from oidc_identities where subject = $1', [
    mallory.claims.sub,
  ]);
  assert.equal(rows.rowCount, 0);
});

test('a sensitive change is confirmed at the provider, by the same person and not by an old sign-in', async () => {
  const person = personOf(['ops']);
  const browser = openBrowser();
  await browser.signIn(person);
  await passTime('20 minutes');
  const fields = {
    ...{ email: 'new@staff.test', name: 'New', role: 'support' },
    csrf_token: tokenIn((await browser.get('/console/staff/')).text),
  };
  const refused = await browser.post('/console/staff/', fields);
  assert.equal(refused.status, 403);
  assert.match(refused.text, /Confirm at 127\.0\.0\.1:\d+ in a new tab/);
  assert.match(refused.text, /name="email" value="new@staff\.test"/, 'what was typed is kept');
  assert.equal(
    (await browser.post('/console/staff/', { ...fields, confirm_password: password })).status,
    403,
  );

  const { to } = await browser.get('/sign-in/oidc/confirm');
  const asked = new URL(to).searchParams;
  assert.deepEqual([asked.get('max_age'), asked.get('prompt')], ['300', 'login']);
  const confirm = (answering: Answering) => browser.at('/sign-in/oidc/confirm', answering);
  const old = { claims: { ...person.claims, auth_time: Math.floor(Date.now() / 1000) - 400 } };
  const unnamed = { claims: { ...person.claims, auth_time: undefined } };
  for (const unproved of [old, unnamed])
    assert.match((await confirm(unproved)).text, /did not ask who you are/);
  assert.match((await confirm(personOf(['ops']))).text, /another person’s account/);
  assert.equal((await browser.post('/console/staff/', fields)).status, 403);
  assert.match((await confirm(person)).text, /Confirmed/);
  assert.equal((await browser.post('/console/staff/', fields)).status, 200);
  await passTime('20 minutes');
  assert.match((await confirm({ claims: { ...person.claims, groups: [] } })).text, /give no access/);
  assert.equal(await browser.home(), 303, 'a removed group ends the session at a step-up too');
});

test('a provider that does not say when a person signed in there signs them in, and confirms nothing', async () => {
  const browser = openBrowser();
  assert.equal((await browser.signIn(personOf(['ops'], { auth_time: undefined }))).status, 303);
  const csrf_token = tokenIn((await browser.get('/console/staff/')).text);
  const asked = await browser.post('/console/staff/', {
    csrf_token,
    email: 'x@staff.test',
    name: 'X',
    role: 'support',
  });
  assert.match(asked.text, /in a new tab/);
});

test('no address of another site is followed, before or after', async () => {
  for (const next of ['https://evil.example/', '//evil.example', '/\\evil.example', 'javascript:alert(1)']) {
    const landed = await openBrowser().signIn(personOf(['ops']), next);
    assert.deepEqual([landed.status, landed.to], [303, '/console/'], next);
  }
});

test('the last operator is not made a reader, and a customer’s sign-in page stays theirs', async () => {
  const person = personOf(['ops']);
  await openBrowser().signIn(person);
  await world.database.pool.query(
    `update people set deactivated_at = now() where staff_role = 'operator' and email <> $1`,
    [person.claims.email],
  );
  const reader = { claims: { ...person.claims, groups: ['helpdesk'] } };
  assert.match((await openBrowser().signIn(reader)).text, /are the last operator/);
  assert.equal(await roleOf(String(person.claims.email)), 'operator');
  const page = (await openBrowser().get('/sign-in')).text;
  assert.match(page, /name="password"/);
  assert.match(page, /Staff: sign in at/);
});
