/** A forgotten password: by a mailed link, through a real mail server, saying nothing about who has an account. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { type MailServer, startMailServer } from '#service-kit/mail/testing/start-mail-server.ts';

let mailServer: MailServer;
let world: World;
before(async () => {
  mailServer = await startMailServer();
  world = await createWorld({ smtpUrl: mailServer.url, mailFolder: null });
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await mailServer[Symbol.asyncDispose]();
});

const html = { accept: 'text/html' };
const get = (path: string, cookie = '') =>
  fetch(`${world.url}${path}`, { headers: { ...html, cookie }, redirect: 'manual' });
const send = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(`${world.url}${path}`, {
    method: 'POST',
    headers: { ...html, ...headers },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  });
const mailsTo = async (email: string) => {
  await world.post.idle();
  return mailServer.mailsTo(email);
};
const linksTo = async (email: string) =>
  (await mailsTo(email)).flatMap((mail) => /(\/set-password\/[A-Za-z0-9_-]{43})/.exec(mail.body)?.[1] ?? []);

test('a person resets their password by mail: the link works once, and all sessions end', async () => {
  const { email, owner } = await world.createCustomer('Forgetful');
  const cookie = await world.signIn(email);
  assert.equal((await send('/reset-password', { email: ` ${email.toUpperCase()}` })).status, 200);
  const [link] = await linksTo(email);
  assert.equal((await get(link!)).status, 200);
  assert.equal((await get(link!)).status, 200, 'opening it uses nothing up');
  assert.equal((await send(link!, { password: 'short' })).status, 422, 'a weak password uses nothing up');
  assert.equal((await get('/client/', cookie)).status, 200);
  const set = await send(link!, { password: 'found again at last' });
  assert.equal(set.headers.get('location'), '/sign-in?done=password');
  assert.equal((await get('/client/', cookie)).status, 303, 'the session has ended');
  assert.equal((await send(link!, { password: 'found again at last' })).status, 404);
  assert.equal((await send('/sign-in', { email, password })).status, 401);
  assert.equal((await send('/sign-in', { email, password: 'found again at last' })).status, 303);
  const subjects = (await mailsTo(email)).map((mail) => mail.subject);
  assert.ok(subjects.includes('Your password was changed'), subjects.join(', '));
  const { rows } = await world.database.pool.query('select access_links::text as row from access_links');
  assert.ok(!JSON.stringify(rows).includes(link!.slice(14)), 'the database holds no link');
  assert.ok((await world.accounts.findPerson(owner.id))!.isVerified);
});

test('a link lives for an hour, and a newer one ends it', async () => {
  const { email } = await world.createCustomer('Slow');
  await send('/reset-password', { email });
  await send('/reset-password', { email });
  const [first, second] = await linksTo(email);
  assert.deepEqual([(await get(first!)).status, (await get(second!)).status], [404, 200]);
  await moveWorldClock(world.database, '61 minutes');
  assert.equal((await get(second!)).status, 404);
  assert.equal((await send(second!, { password: 'found again at last' })).status, 404);
  await moveWorldClock(world.database, '0');
});

test('known, unknown and deactivated addresses get one answer, and only the known one a mail', async () => {
  const known = await world.createCustomer('Known');
  const gone = await world.createCustomer('Gone');
  const { systemActor } = await import('#operations/accounts/index.ts');
  await world.accounts.setPersonActive(systemActor, gone.owner.id, false);
  const answers = new Set<string>();
  for (const email of [known.email, gone.email, 'unknown@known.test', 'no address', 'a\0b@known.test']) {
    const answer = await send('/reset-password', { email });
    assert.equal(answer.status, 200, email);
    answers.add(await answer.text());
  }
  assert.equal(answers.size, 1);
  assert.equal((await linksTo(known.email)).length, 1);
  assert.equal((await linksTo(gone.email)).length, 0);
});

test('a mailbox cannot be flooded: three mails to an address in ten minutes at most', async () => {
  const { email } = await world.createCustomer('Flooded');
  for (let i = 0; i < 6; i += 1) assert.equal((await send('/reset-password', { email })).status, 200);
  assert.equal((await linksTo(email)).length, 3);
});

test('a form of another site requests and sets nothing', async () => {
  const { email } = await world.createCustomer('Forged');
  const from = { 'sec-fetch-site': 'cross-site' };
  assert.equal((await send('/reset-password', { email }, from)).status, 403);
  await send('/reset-password', { email });
  const [link] = await linksTo(email);
  assert.equal((await send(link!, { password: 'found again at last' }, from)).status, 403);
  assert.equal((await get(link!)).status, 200);
});

test('a sign-in from a new browser is mailed, one from a known browser is not', async () => {
  const { email } = await world.createCustomer('Noticed');
  const agent = { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0) Chrome/140.0.0.0 Safari/537.36' };
  const first = await send('/sign-in', { email, password }, agent);
  const cookie = first.headers
    .getSetCookie()
    .map((one) => one.split(';')[0]!)
    .join('; ');
  await send('/sign-in', { email, password }, { ...agent, cookie });
  const notices = (await mailsTo(email)).filter((mail) => mail.subject === 'New sign-in to your account');
  assert.equal(notices.length, 1);
  assert.match(notices[0]!.body, /Chrome on Windows, address 127\.0\.0\.1/);
});
