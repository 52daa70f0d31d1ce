/** Second factors and step-up, as a browser without scripts sees them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock, worldStartMs } from '#operations/testing/world-time.ts';

let world: World;
before(async () => {
  world = await createWorld({ clockStartMs: worldStartMs });
});
after(() => world[Symbol.asyncDispose]());

/** A browser: keeps cookies, follows nothing by itself. */
function openBrowser(at: Pick<World, 'url'> = world) {
  const jar = new Map<string, string>();
  const ask = async (path: string, fields?: Record<string, string>) => {
    const answer = await fetch(`${at.url}${path}`, {
      ...(fields && { method: 'POST', body: new URLSearchParams(fields) }),
      headers: { accept: 'text/html', cookie: [...jar].map((pair) => pair.join('=')).join('; ') },
      redirect: 'manual',
    });
    for (const line of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]!.split('=');
      if (/Max-Age=0/.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    return { status: answer.status, to: answer.headers.get('location'), text: await answer.text() };
  };
  let token = '';
  return {
    jar,
    get: (path: string) => ask(path),
    post: (path: string, fields: Record<string, string> = {}) => ask(path, fields),
    /** Posts a form with the token of the session. */
    async send(path: string, fields: Record<string, string> = {}) {
      token ||= tokenIn((await ask('/client/account/')).text);
      return ask(path, { csrf_token: token, ...fields });
    },
  };
}

const tokenIn = (page: string) => /name="csrf_token" value="([^"]+)"/.exec(page)?.[1] ?? '';
const codesIn = (page: string) =>
  [...page.matchAll(/\b(?:[a-z2-9]{6}-){3}[a-z2-9]{6}\b/g)].map(([code]) => code);

/** A person with an app: signed in, with the code of any time and the recovery codes. */
async function withApp(name: string) {
  const { email, owner, tenant } = await world.createCustomer(name);
  const browser = openBrowser();
  await browser.post('/sign-in', { email, password });
  const page = (await browser.send('/client/account/app/new')).text;
  const secret = /<code>((?:[A-Z2-7]{4} ?)+)<\/code>/.exec(page)![1]!.replaceAll(' ', '');
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  const code = () => totp.generate({ timestamp: world.testClock.nowMs() });
  const confirmed = await browser.send('/client/account/app/confirm', { code: code() });
  assert.equal(confirmed.status, 200);
  return { email, owner, tenant, browser, code, secret, page, recovery: codesIn(confirmed.text) };
}
const later = () => world.testClock.advance(30_000);

test('a person sets up an app by QR code or key, gets recovery codes once, and signs in with a code from then on', async () => {
  const { email, browser, code, page, recovery, secret } = await withApp('App');
  assert.match(page, /<svg[^>]*class="qr-code"/);
  assert.equal(new Set(recovery).size, 8);
  assert.doesNotMatch((await browser.get('/client/account/')).text, new RegExp(recovery[0]!));
  const other = openBrowser();
  const first = await other.post('/sign-in', { email, password, next: '/client/billing/' });
  assert.equal(first.to, '/sign-in/code?next=%2Fclient%2Fbilling%2F');
  assert.equal(
    (await other.get('/client/')).to,
    '/sign-in?next=%2Fclient%2F',
    'the password alone opens nothing',
  );
  assert.equal(
    (await other.post('/sign-in/code', { code: code() })).status,
    401,
    'the code that confirmed the app',
  );
  later();
  const wrong = code() === '000000' ? '000001' : '000000';
  assert.equal((await other.post('/sign-in/code', { code: wrong })).status, 401);
  const done = await other.post('/sign-in/code', { code: code(), next: '/client/billing/' });
  assert.equal(done.to, '/client/billing/');
  assert.equal((await other.get('/client/')).status, 200);
  const { rows } = await world.database.pool.query('select recovery_codes::text as row from recovery_codes');
  assert.ok(!JSON.stringify(rows).includes(recovery[0]!), 'digests alone are stored');
  assert.match(secret, /^[A-Z2-7]{32}$/);
});

test('a code is accepted once, also of two browsers at the same moment, and a later code ends the earlier ones', async () => {
  const { email, code } = await withApp('Replay');
  later();
  const browsers = [openBrowser(), openBrowser()];
  for (const browser of browsers) await browser.post('/sign-in', { email, password });
  const given = code();
  const answers = await Promise.all(
    browsers.map((browser) => browser.post('/sign-in/code', { code: given })),
  );
  assert.deepEqual(answers.map((answer) => answer.status).sort(), [303, 401]);
  const third = openBrowser();
  await third.post('/sign-in', { email, password });
  assert.equal((await third.post('/sign-in/code', { code: given })).status, 401);
});

test('a recovery code signs in once and is mailed about; a reset password does not take the second factor away', async () => {
  const { email, recovery } = await withApp('Recovery');
  const signIn = async (code: string, given = password) => {
    const browser = openBrowser();
    await browser.post('/sign-in', { email, password: given });
    return (await browser.post('/sign-in/code', { code })).status;
  };
  assert.equal(await signIn(` ${recovery[0]!.toUpperCase().replaceAll('-', ' ')} `), 303);
  assert.equal(await signIn(recovery[0]!), 401, 'used');
  assert.equal(
    (await world.mailsTo(email)).filter((mail) => mail.subject === 'A recovery code was used').length,
    1,
  );
  const browser = openBrowser();
  await browser.post('/reset-password', { email });
  const reset = (await world.mailsTo(email)).find((mail) => mail.subject === 'Reset your password')!;
  await browser.post(/http\S+(\/set-password\/\S+)/.exec(reset.text)![1]!, { password: 'quite another one' });
  assert.equal(
    (await browser.post('/sign-in', { email, password: 'quite another one' })).to,
    '/sign-in/code',
  );
});

test('guessing codes ends after five of them, and not in a browser that knows the person', async () => {
  const { email, browser, code } = await withApp('Guessing');
  later();
  const stranger = openBrowser();
  await stranger.post('/sign-in', { email, password });
  const wrong = code() === '000000' ? '000001' : '000000';
  const statuses: number[] = [];
  for (let i = 0; i < 6; i += 1)
    statuses.push((await stranger.post('/sign-in/code', { code: wrong })).status);
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429]);
  assert.equal((await stranger.post('/sign-in/code', { code: code() })).status, 429, 'the right one neither');
  const own = openBrowser();
  for (const [name, value] of browser.jar) if (name.endsWith('_device')) own.jar.set(name, value);
  await own.post('/sign-in', { email, password });
  assert.equal((await own.post('/sign-in/code', { code: code() })).status, 303);
});

test('after fifteen minutes an action on money, people or tokens asks for the password, and loses nothing of the form', async () => {
  const { email, tenant } = await world.createCustomer('Step up');
  const browser = openBrowser();
  await browser.post('/sign-in', { email, password });
  const invite = { organization: String(tenant.organizationId), email: 'asked@step.test' };
  const mailed = async () => (await world.mailsTo('asked@step.test')).length;
  await browser.send('/client/settings/organization', {
    organization: invite.organization,
    name: 'Still named',
  });
  await moveWorldClock(world.database, '16 minutes');
  assert.equal((await browser.get('/client/')).status, 200, 'reading asks for nothing');
  const asked = await browser.send('/client/settings/invitations', invite);
  assert.equal(asked.status, 403);
  assert.match(asked.text, /Confirm that it is you/);
  const carried = Object.fromEntries(
    [...asked.text.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)].map((match) => [
      match[1],
      match[2],
    ]),
  );
  const answer = (confirm_password: string) =>
    browser.post('/client/settings/invitations', { ...carried, confirm_password });
  assert.equal((await answer('a wrong password')).status, 401);
  assert.equal(await mailed(), 0);
  const before = [...browser.jar.values()][0];
  assert.equal((await answer(password)).to, '/client/settings/?done=invited');
  assert.equal(await mailed(), 1);
  assert.notEqual([...browser.jar.values()][0], before, 'the session has a new secret');
  assert.equal(
    (await browser.send('/client/settings/invitations', { ...invite, email: 'next@step.test' })).status,
    303,
  );
  await moveWorldClock(world.database, '0');
});

test('who has an app is asked for its code instead, so the password and the browser are not enough', async () => {
  const { browser, code } = await withApp('Step up by app');
  await moveWorldClock(world.database, '16 minutes');
  later();
  const remove = (fields: Record<string, string>) => browser.send('/client/account/app/remove', fields);
  assert.equal((await remove({ confirm_password: password })).status, 403);
  assert.equal((await remove({ confirm_code: code() })).to, '/client/account/?done=app_removed');
  assert.match((await browser.get('/client/account/')).text, /not set up/);
  await moveWorldClock(world.database, '0');
});

test('with a passkey alone the password does not confirm either: the passkey or a recovery code does', async () => {
  const { email, owner } = await world.createCustomer('Step up by passkey');
  const browser = openBrowser();
  await browser.post('/sign-in', { email, password });
  await world.database.pool.query(
    `insert into passkeys (credential_id, person_id, public_key, sign_count, transports, name)
     values ('passkey-of-this-test', $1, '\\x00', 0, '{}', 'Key')`,
    [owner.id],
  );
  const [recovery = ''] = await world.factors.renewRecoveryCodes(owner.id);
  await moveWorldClock(world.database, '16 minutes');
  const remove = (fields: Record<string, string>) =>
    browser.send('/client/account/passkeys/remove', { passkey: 'passkey-of-this-test', ...fields });
  const asked = await remove({ confirm_password: password });
  assert.equal(asked.status, 403);
  assert.doesNotMatch(asked.text, /confirm_password/);
  assert.equal((await remove({ confirm_code: password })).status, 401);
  assert.equal((await world.factors.listPasskeys(owner.id)).length, 1);
  assert.equal((await remove({ confirm_code: recovery })).to, '/client/account/?done=passkey_removed');
  await moveWorldClock(world.database, '0');
});

test('a first factor ends the sessions that the password alone has opened in other browsers', async () => {
  const { email } = await world.createCustomer('Elsewhere');
  const [here, elsewhere] = [openBrowser(), openBrowser()];
  for (const browser of [here, elsewhere]) await browser.post('/sign-in', { email, password });
  const page = (await here.send('/client/account/app/new')).text;
  const secret = /<code>((?:[A-Z2-7]{4} ?)+)<\/code>/.exec(page)![1]!.replaceAll(' ', '');
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  assert.equal((await elsewhere.get('/client/')).status, 200, 'not in use yet');
  await here.send('/client/account/app/confirm', {
    code: totp.generate({ timestamp: world.testClock.nowMs() }),
  });
  assert.equal((await here.get('/client/')).status, 200);
  assert.equal((await elsewhere.get('/client/')).status, 303);
});

test('a changed password ends mailed links and a sign-in that was begun with the former one', async () => {
  const { email, browser, code } = await withApp('Former password');
  const [begun, mailed] = [openBrowser(), openBrowser()];
  await begun.post('/sign-in', { email, password });
  await mailed.post('/reset-password', { email });
  const reset = (await world.mailsTo(email)).find((mail) => mail.subject === 'Reset your password')!;
  const link = /http\S+(\/set-password\/\S+)/.exec(reset.text)![1]!;
  assert.equal((await mailed.get(link)).status, 200);
  const changed = await browser.send('/client/account/password', {
    current: password,
    next: 'entirely another one',
  });
  assert.equal(changed.to, '/client/account/?done=password');
  later();
  assert.equal((await begun.post('/sign-in/code', { code: code() })).to, '/sign-in');
  assert.equal((await begun.get('/client/')).status, 303);
  assert.equal((await mailed.get(link)).status, 404);
  assert.equal((await mailed.post(link, { password: 'the one of a stranger' })).status, 404);
});

test('a path to go on to that no header can hold is left out', async () => {
  const { email } = await world.createCustomer('Further');
  const answer = await openBrowser().post('/sign-in', { email, password, next: '/client/\u2028' });
  assert.deepEqual([answer.status, answer.to], [303, '/client/']);
});

test('staff who must have a second factor reach nothing but its page until they have one', async () => {
  await using strict = await createWorld({ requireSecondFactor: true, clockStartMs: worldStartMs });
  const email = 'operator@svc.test';
  await strict.accounts.createPerson(systemActor, { email, name: 'Op', password, staffRole: 'operator' });
  const browser = openBrowser(strict);
  await browser.post('/sign-in', { email, password });
  assert.equal((await browser.get('/console/customers/')).to, '/console/account/');
  const page = (await browser.get('/console/account/')).text;
  assert.match(page, /Set up a second factor to go on/);
  const csrf_token = tokenIn(page);
  const made = await browser.post('/console/customers/', {
    csrf_token,
    organization: 'x',
    email: 'x@x.test',
    name: 'x',
  });
  assert.equal(made.to, '/console/account/');
  const setUp = (await browser.post('/console/account/app/new', { csrf_token })).text;
  const secret = /<code>((?:[A-Z2-7]{4} ?)+)<\/code>/.exec(setUp)![1]!.replaceAll(' ', '');
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: worldStartMs });
  assert.equal((await browser.post('/console/account/app/confirm', { csrf_token, code })).status, 200);
  assert.equal((await browser.get('/console/customers/')).status, 200);
  assert.equal(
    (await browser.post('/console/account/app/remove', { csrf_token })).status,
    409,
    'it is required',
  );
});

test('an operator removes the factors of a person who has lost them, which ends their sessions and is mailed', async () => {
  const { email, owner, tenant, browser } = await withApp('Lost phone');
  const staff = 'helper@svc.test';
  await world.accounts.createPerson(systemActor, {
    email: staff,
    name: 'Op',
    password,
    staffRole: 'operator',
  });
  const operator = openBrowser();
  await operator.post('/sign-in', { email: staff, password });
  const csrf_token = tokenIn((await operator.get('/console/')).text);
  const at = `/console/customers/${tenant.id}/members/factors`;
  const removed = await operator.post(at, { csrf_token, person: String(owner.id) });
  assert.match(removed.to ?? '', /done=factors/);
  assert.equal((await browser.get('/client/')).status, 303, 'the session has ended');
  const fresh = openBrowser();
  assert.equal((await fresh.post('/sign-in', { email, password })).to, '/client/');
  const [mail] = (await world.mailsTo(email)).filter((one) => one.text.includes('An operator removed'));
  assert.ok(mail);
});
