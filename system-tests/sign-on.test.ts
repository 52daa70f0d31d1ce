/** Single sign-on between the two consoles, as a browser without scripts sees it: who is signed in, and which accounts are linked. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { systemActor as monitorSystem } from '#monitor/operators/index.ts';
import { createSignOnPair, formIn, logins, openBrowser, type SignOnPair } from './testing/sign-on-pair.ts';
import { begin, bring, isSignedIn, linkAgain, secretCookie, target } from './testing/sign-on-steps.ts';

let pair: SignOnPair;
before(async () => {
  pair = await createSignOnPair();
});
after(() => pair[Symbol.asyncDispose]());
beforeEach(() => linkAgain(pair));

describe('an operator of operations at the monitor', () => {
  test('is signed in as their linked operator without a password, and lands on the page that the link named', async () => {
    const browser = openBrowser();
    await browser.post(`${pair.operations.url}/sign-in`, logins.operations);
    const link = `${pair.monitorUrl}/sign-on?to=${encodeURIComponent(target)}`;
    const page = await browser.follow(link);
    assert.equal(page.status, 200, page.text);
    const { action, fields } = formIn(page.text);
    assert.equal(action, `${pair.monitorUrl}/sign-on/answer`);
    const policy = page.headers.get('content-security-policy') ?? '';
    assert.match(policy, new RegExp(`form-action ${pair.monitorUrl}(;|$)`));
    const answer = await browser.post(action, fields);
    assert.equal(answer.status, 303);
    const landed = await browser.follow(answer.to!);
    assert.equal(landed.status, 200);
    assert.match(landed.text, /Olga/);
    assert.match(landed.text, /<h1[^>]*>Single sign-on/);
    const again = await browser.get(link);
    assert.equal(again.to, `${pair.monitorUrl}${target}`, 'signed in already: at once');
  });

  test('leaves an entry in the audit trail of both programs, with one nonce', async () => {
    const browser = openBrowser();
    await browser.post(`${pair.operations.url}/sign-in`, logins.operations);
    const { text } = await browser.follow(`${pair.monitorUrl}/sign-on?to=${encodeURIComponent(target)}`);
    const { action, fields } = formIn(text);
    await bring(pair, browser, fields.assertion!);
    assert.equal(new URL(action).pathname, '/sign-on/answer');
    const newest = 'select after from audit_entries where operation = $1 order by id desc limit 1';
    const issued = await pair.operations.database.pool.query(newest, ['sign_on.issue_assertion']);
    const begun = await pair.monitor.database.pool.query(newest, ['session.start']);
    const { nonce } = issued.rows[0].after;
    assert.match(nonce, /^[A-Za-z0-9_-]{43}$/);
    assert.equal(begun.rows[0].after.signOn.nonce, nonce);
    assert.equal(begun.rows[0].after.signOn.subjectId, pair.olivia.id);
  });

  test('is asked to sign in at operations first, and comes back', async () => {
    const { browser, asked } = await begin(pair);
    const { to } = await browser.get(asked.href);
    assert.equal(new URL(to!).pathname, '/sign-in');
    const next = new URL(to!).searchParams.get('next')!;
    const signedIn = await browser.post(`${pair.operations.url}/sign-in`, { ...logins.operations, next });
    const { text } = await browser.follow(signedIn.to!);
    await bring(pair, browser, formIn(text).fields.assertion!);
    assert.ok(await isSignedIn(pair, browser));
  });

  test('has a session that is no younger than the one at operations: it is confirmed no longer, and ends no later', async () => {
    const { browser, secret } = await begin(pair);
    const now = Math.floor(pair.monitorClock.nowMs() / 1000);
    await bring(pair, browser, pair.assert(secret, { authenticated_at: now - 10 * 86_400 }));
    const cookie = `svc_monitor=${browser.jarOf(pair.monitorUrl).get('svc_monitor')}`;
    assert.equal((await pair.monitor.monitor.sessions.read(cookie))?.isConfirmed, false);
    const { rows } = await pair.monitor.database.pool.query(
      `select extract(epoch from expires_at - svc_now()) / 86400 as days from sessions order by created_at desc limit 1`,
    );
    assert.ok(rows[0].days > 3.9 && rows[0].days < 4.1, rows[0].days);
    const older = await begin(pair);
    await bring(pair, older.browser, pair.assert(older.secret, { authenticated_at: now - 15 * 86_400 }));
    assert.ok(!(await isSignedIn(pair, older.browser)), 'older than any session may be');
  });
});

describe('a second factor', () => {
  /** Olga gets an app; returns its codes. */
  const addApp = async () => {
    const { factors } = pair.monitor.monitor;
    const { secret } = (await factors.beginTotp(pair.olga.id, pair.olga.email))!;
    const totp = new TOTP({ secret: Secret.fromBase32(secret) });
    const code = () => totp.generate({ timestamp: pair.monitorClock.nowMs() });
    await factors.confirmTotp(pair.olga.id, code());
    await pair.monitorClock.advance(30_000);
    return code;
  };

  test('of the monitor is asked for here, unless one was shown at operations', async () => {
    const code = await addApp();
    try {
      const { browser, secret } = await begin(pair);
      const page = await bring(pair, browser, pair.assert(secret));
      assert.match(page.text, /Enter your code/);
      assert.ok(!(await isSignedIn(pair, browser)));
      const answer = await browser.post(`${pair.monitorUrl}/sign-in/code`, { code: code(), next: target });
      assert.equal(answer.to, `${pair.monitorUrl}${target}`);
      assert.ok(await isSignedIn(pair, browser));
      const strong = await begin(pair);
      await bring(pair, strong.browser, pair.assert(strong.secret, { second_factor: true }));
      assert.ok(await isSignedIn(pair, strong.browser));
    } finally {
      await pair.monitor.monitor.factors.removeTotp(pair.olga.id);
    }
  });

  test('that the monitor requires, and that was shown nowhere, is a refusal that says so', async () => {
    await using strict = await createSignOnPair({ SVC_REQUIRE_SECOND_FACTOR: '1' });
    const { signOn } = strict.monitor.monitor;
    await signOn.linkAccount(monitorSystem, { subjectId: strict.olivia.id, personId: strict.olga.id });
    const begun = async () => {
      const browser = openBrowser();
      await browser.get(`${strict.monitorUrl}/sign-on?to=/settings`);
      return { browser, secret: browser.jarOf(strict.monitorUrl).get(secretCookie)! };
    };
    const weak = await begun();
    const assertion = strict.assert(weak.secret, { path: '/settings' });
    const answer = await weak.browser.post(`${strict.monitorUrl}/sign-on/answer`, { assertion });
    const page = await weak.browser.follow(answer.to!);
    assert.equal(page.status, 403);
    assert.match(page.text, /A second factor is required/);
    assert.equal(weak.browser.jarOf(strict.monitorUrl).has('svc_monitor'), false);
  });

  test('is told by operations for sessions in which it was shown, and for no other', async () => {
    const said = async (cookie: string) => {
      const browser = openBrowser();
      browser.jarOf(pair.operations.url).set(...(cookie.split('=') as [string, string]));
      const { text } = await browser.follow(`${pair.monitorUrl}/sign-on?to=/settings`);
      const payload = formIn(text).fields.assertion!.split('.')[1]!;
      return JSON.parse(Buffer.from(payload, 'base64url').toString());
    };
    const { sessions } = pair.operations;
    const weak = (await sessions.start(pair.olivia.id)).split(';')[0]!;
    assert.equal((await said(weak)).second_factor, false);
    const strong = (await sessions.start(pair.olivia.id, undefined, { hasSecondFactor: true })).split(
      ';',
    )[0]!;
    const told = await said(strong);
    assert.equal(told.second_factor, true);
    assert.equal(told.operator_id, pair.olivia.id);
    const hourAgo = { hasSecondFactor: true, authenticatedAtMs: Date.now() - 3_600_000 };
    const old = await said((await sessions.start(pair.olivia.id, undefined, hourAgo)).split(';')[0]!);
    assert.equal(old.authenticated_at, Math.floor(hourAgo.authenticatedAtMs / 1000));
  });
});

describe('accounts', () => {
  test('are linked by signing in on both sides once, which the person confirms and is mailed', async () => {
    const { signOn } = pair.monitor.monitor;
    await signOn.unlinkAccount(monitorSystem, pair.olivia.id);
    const { browser, secret } = await begin(pair);
    const refused = await bring(pair, browser, pair.assert(secret));
    assert.match(refused.text, /href="\/sign-in\?next=%2Fsign-on%2Flink"/);
    await browser.post(`${pair.monitorUrl}/sign-in`, { ...logins.monitor, next: '/sign-on/link' });
    const page = await browser.get(`${pair.monitorUrl}/sign-on/link`);
    assert.match(page.text, /olivia@operations\.test/);
    assert.match(page.text, /olga@monitor\.test/);
    const { action, fields } = formIn(page.text);
    const forged = await browser.post(`${pair.monitorUrl}${action}`, { ...fields, csrf_token: 'x' });
    assert.equal(forged.status, 403);
    const done = await browser.post(`${pair.monitorUrl}${action}`, fields);
    assert.equal(done.to, `${pair.monitorUrl}${target}`);
    const [linked] = (await signOn.view()).accounts;
    assert.deepEqual([linked?.subjectId, linked?.personId], [pair.olivia.id, pair.olga.id]);
    const again = await begin(pair);
    await bring(pair, again.browser, pair.assert(again.secret));
    assert.ok(await isSignedIn(pair, again.browser), 'from then on without a password');
  });

  test('are not linked by a stranger’s sign-on that a signed-in person is sent into', async () => {
    const { signOn } = pair.monitor.monitor;
    await signOn.unlinkAccount(monitorSystem, pair.olivia.id);
    const attacker = await begin(pair);
    const victim = openBrowser();
    await victim.post(`${pair.monitorUrl}/sign-in`, logins.monitor);
    await bring(pair, victim, pair.assert(attacker.secret, { operator_email: 'mallory@operations.test' }));
    assert.equal((await victim.get(`${pair.monitorUrl}/sign-on/link`)).status, 410);
    assert.deepEqual((await signOn.view()).accounts, []);
  });

  test('are linked one to one', async () => {
    const { signOn } = pair.monitor.monitor;
    await assert.rejects(
      signOn.linkAccount(monitorSystem, { subjectId: 999, personId: pair.olga.id }),
      /linked already/,
    );
    await assert.rejects(
      signOn.linkAccount(monitorSystem, { subjectId: 998, personId: 999_999 }),
      /no operator/,
    );
  });

  test('a read-only person is signed in with their own rights, and changes nothing of it', async () => {
    const { signOn, operators } = pair.monitor.monitor;
    const victor = await operators.add({
      ...logins.monitor,
      email: 'victor@monitor.test',
      name: 'Victor',
      role: 'viewer',
    });
    await signOn.linkAccount(monitorSystem, { subjectId: 500, personId: victor.id });
    const { browser, secret } = await begin(pair);
    await bring(
      pair,
      browser,
      pair.assert(secret, { operator_id: 500, operator_email: 'victor@operations.test' }),
    );
    const { text } = await browser.get(`${pair.monitorUrl}/account/`);
    const { csrf_token: token } = formIn(text).fields;
    const post = (path: string, fields: Record<string, string>) =>
      browser.post(`${pair.monitorUrl}${path}`, { csrf_token: token!, ...fields });
    assert.equal((await post(`${target}key`, {})).status, 403);
    assert.equal((await post(`${target}unlink`, { subject: String(pair.olivia.id) })).status, 403);
    assert.equal((await post(`${target}unlink`, { subject: '500' })).status, 403);
    assert.equal((await signOn.view()).accounts.length, 2);
  });
});
