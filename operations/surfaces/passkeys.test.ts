// Slow: drives a real browser with a virtual authenticator.
/** Passkeys in a real browser with a virtual authenticator: made, signed in with, asked for again, removed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { launchBrowser } from '#service-kit/testing/browser.ts';

let world: World;
let browser: Browser;
let base: string;
before(async () => {
  world = await createWorld();
  // Passkeys belong to a host name; a bare address has none.
  base = world.url.replace('127.0.0.1', 'localhost');
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await world[Symbol.asyncDispose]();
});

/** A page with an authenticator that verifies its user. */
async function openPage(): Promise<Page> {
  const context = await browser.newContext();
  const page = await context.newPage();
  // A busy machine may be slow; it is no failure of the pages.
  page.setDefaultTimeout(120_000);
  const session = await context.newCDPSession(page);
  await session.send('WebAuthn.enable');
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return page;
}

async function signIn(page: Page, email: string): Promise<void> {
  await page.goto(`${base}/sign-in`);
  await page.fill('#field-email', email);
  await page.fill('#field-password', password);
  await page.click('button[type=submit]');
}

async function addPasskey(page: Page): Promise<void> {
  await page.goto(`${base}/client/account/`);
  await page.click('text=Add a passkey');
  await page.click('text=Create passkey');
}

test('a person adds a passkey, gets recovery codes, and signs in by it without email and password', async () => {
  const { email } = await world.createCustomer('Passkey');
  const page = await openPage();
  await signIn(page, email);
  await addPasskey(page);
  await page.waitForSelector('text=Your recovery codes');
  await page.goto(`${base}/client/account/`);
  await page.click('text=Sign out');
  await page.waitForURL(/\/sign-in$/);
  await page.click('text=Sign in with a passkey');
  await page.waitForURL(/\/client\/$/);
  await page.goto(`${base}/client/account/`);
  assert.match(await page.content(), new RegExp(email));
  const { rows } = await world.database.pool.query('select count(*)::int as left from passkey_challenges');
  assert.equal(rows[0].left, 0, 'each challenge is used up');
});

test('the password of a person with a passkey opens nothing; the passkey is the second step', async () => {
  const { email } = await world.createCustomer('Second');
  const page = await openPage();
  await signIn(page, email);
  await addPasskey(page);
  await page.waitForSelector('text=Your recovery codes');
  await page.context().clearCookies();
  await signIn(page, email);
  await page.waitForURL(/\/sign-in\/code/);
  await page.goto(`${base}/client/`);
  assert.match(page.url(), /\/sign-in\?next/, 'no session yet');
  await page.goto(`${base}/sign-in/code`);
  await page.click('text=Sign in with a passkey');
  await page.waitForURL(/\/client\/$/);
});

test('a passkey confirms a sensitive action, and is removed', async () => {
  const { email } = await world.createCustomer('Confirming');
  const page = await openPage();
  await signIn(page, email);
  await addPasskey(page);
  await page.waitForSelector('text=Your recovery codes');
  await page.goto(`${base}/client/account/`);
  await moveWorldClock(world.database, '16 minutes');
  await page.click('summary:has-text("Remove"), button:has-text("Remove")');
  await page.click('form[action$="/passkeys/remove"] button[type=submit]');
  await page.waitForSelector('text=Confirm that it is you');
  await page.click('text=Use a passkey');
  await page.waitForURL(/done=passkey_removed/);
  assert.match(await page.content(), /Passkeys:/);
  await moveWorldClock(world.database, '0');
});

test('an answer is refused when it was used, was made for another site, or is none', async () => {
  const { email } = await world.createCustomer('Refused');
  const page = await openPage();
  await signIn(page, email);
  await addPasskey(page);
  await page.waitForSelector('text=Your recovery codes');
  await page.context().clearCookies();
  await page.goto(`${base}/sign-in`);
  const sent = page.waitForRequest((request) => request.url().endsWith('/sign-in/passkey'));
  await page.click('text=Sign in with a passkey');
  const answer = new URLSearchParams((await sent).postData() ?? '').get('passkey')!;
  await page.waitForURL(/\/client\/$/);
  const post = async (passkey: string) =>
    (
      await fetch(`${base}/sign-in/passkey`, {
        method: 'POST',
        body: new URLSearchParams({ passkey }),
        redirect: 'manual',
      })
    ).status;
  assert.equal(await post(answer), 401, 'the challenge was used');
  for (const bad of ['', 'null', '{}', '{"id":"x"}', `{"id":"${'x'.repeat(9_000)}"}`, '{"id":"\\u0000"}'])
    assert.equal(await post(bad), 401, bad.slice(0, 20));
  const site = { origin: 'http://evil.example', host: 'evil.example' };
  assert.equal(await world.factors.takePasskey(site, answer), null);
});

test('on a bare address passkeys are not offered, and an authenticator app is', async () => {
  const { email } = await world.createCustomer('Bare');
  const page = await openPage();
  await page.goto(`${world.url}/sign-in`);
  assert.doesNotMatch(await page.content(), /passkey/i);
  await page.fill('#field-email', email);
  await page.fill('#field-password', password);
  await page.click('button[type=submit]');
  await page.goto(`${world.url}/client/account/`);
  const content = await page.content();
  assert.match(content, /Passkeys need a host name/);
  assert.match(content, /Set up an authenticator app/);
});
