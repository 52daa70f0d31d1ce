/** Single sign-on between the two consoles, as a browser without scripts sees it, and what must be refused. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { type Assertion, keyIdOf, keyText } from '#contracts/sign-on/index.ts';
import { systemActor as monitorSystem } from '#monitor/operators/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';
import {
  createSignOnPair,
  formIn,
  type Keys,
  logins,
  makeKeys,
  openBrowser,
  type SignOnPair,
  type TestBrowser,
} from './testing/sign-on-pair.ts';

let pair: SignOnPair;
before(async () => {
  pair = await createSignOnPair();
});
after(() => pair[Symbol.asyncDispose]());
beforeEach(async () => {
  const { signOn } = pair.monitor.monitor;
  for (const { subjectId } of (await signOn.view()).accounts)
    await signOn.unlinkAccount(monitorSystem, subjectId);
  await signOn.linkAccount(monitorSystem, { subjectId: pair.olivia.id, personId: pair.olga.id });
});

const target = '/settings/sign-on/';
const secretCookie = 'svc_monitor_sign_on';

/** A browser that has begun at the monitor, with the secret that it got. */
async function begin(path = target): Promise<{ browser: TestBrowser; secret: string; asked: URL }> {
  const browser = openBrowser();
  const { status, to } = await browser.get(`${pair.monitorUrl}/sign-on?to=${encodeURIComponent(path)}`);
  assert.equal(status, 303);
  return { browser, secret: browser.jarOf(pair.monitorUrl).get(secretCookie)!, asked: new URL(to!) };
}

/** Brings an assertion to the monitor; the answer after all redirects. */
async function bring(browser: TestBrowser, assertion: string) {
  const answer = await browser.post(`${pair.monitorUrl}/sign-on/answer`, { assertion });
  return answer.to === null ? answer : browser.follow(answer.to);
}

const isSignedIn = async (browser: TestBrowser) =>
  (await browser.get(`${pair.monitorUrl}${target}`)).status === 200;

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
    await bring(browser, fields.assertion!);
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
    const { browser, asked } = await begin();
    const { to } = await browser.get(asked.href);
    assert.equal(new URL(to!).pathname, '/sign-in');
    const next = new URL(to!).searchParams.get('next')!;
    const signedIn = await browser.post(`${pair.operations.url}/sign-in`, { ...logins.operations, next });
    const { text } = await browser.follow(signedIn.to!);
    await bring(browser, formIn(text).fields.assertion!);
    assert.ok(await isSignedIn(browser));
  });

  test('has a session that is no younger than the one at operations: it is confirmed no longer, and ends no later', async () => {
    const { browser, secret } = await begin();
    const now = Math.floor(pair.monitorClock.nowMs() / 1000);
    await bring(browser, pair.assert(secret, { authenticated_at: now - 10 * 86_400 }));
    const cookie = `svc_monitor=${browser.jarOf(pair.monitorUrl).get('svc_monitor')}`;
    assert.equal((await pair.monitor.monitor.sessions.read(cookie))?.isConfirmed, false);
    const { rows } = await pair.monitor.database.pool.query(
      `select extract(epoch from expires_at - svc_now()) / 86400 as days from sessions order by created_at desc limit 1`,
    );
    assert.ok(rows[0].days > 3.9 && rows[0].days < 4.1, rows[0].days);
    const older = await begin();
    await bring(older.browser, pair.assert(older.secret, { authenticated_at: now - 15 * 86_400 }));
    assert.ok(!(await isSignedIn(older.browser)), 'older than any session may be');
  });
});

describe('the monitor refuses to sign a person in', () => {
  const refuse = async (
    title: RegExp,
    change: (secret: string) => string,
    prepare: () => unknown = () => {},
  ) => {
    const { browser, secret } = await begin();
    const assertion = change(secret);
    await prepare();
    const page = await bring(browser, assertion);
    assert.match(page.text, title);
    assert.ok(page.status >= 400 && page.status < 500, String(page.status));
    assert.ok(!(await isSignedIn(browser)));
    return { browser, page };
  };
  const changed = (change: Partial<Assertion>, keys?: Keys) => (secret: string) =>
    pair.assert(secret, change, keys);

  test('by an assertion that has expired', async () => {
    const at = pair.monitorClock.nowMs() / 1000;
    await refuse(
      /has expired/,
      changed({ issued_at: Math.floor(at) - 95, authenticated_at: Math.floor(at) - 95 }),
    );
    await refuse(/clocks differ/, changed({ issued_at: Math.ceil(at) + 35 }));
  });

  test('by an assertion that was used before, whichever replica took it', async () => {
    const { browser, secret } = await begin();
    const assertion = pair.assert(secret);
    await bring(browser, assertion);
    assert.ok(await isSignedIn(browser));
    const other = openBrowser();
    other.jarOf(pair.monitorUrl).set(secretCookie, secret);
    const page = await bring(other, assertion);
    assert.match(page.text, /used before/);
    assert.ok(!(await isSignedIn(other)));
  });

  test('twice when an assertion arrives at several replicas at once', async () => {
    const { secret } = await begin();
    const assertion = pair.assert(secret);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => pair.monitor.monitor.signOn.accept(assertion)),
    );
    assert.equal(answers.filter((answer) => 'ticket' in answer).length, 1);
  });

  test('with a ticket that was used before', async () => {
    const { browser, secret } = await begin();
    const { to } = await browser.post(`${pair.monitorUrl}/sign-on/answer`, {
      assertion: pair.assert(secret),
    });
    const other = openBrowser();
    for (const [name, value] of browser.jarOf(pair.monitorUrl)) other.jarOf(pair.monitorUrl).set(name, value);
    await browser.follow(to!);
    assert.match((await other.follow(to!)).text, /not begun in this browser/);
    assert.ok(!(await isSignedIn(other)));
  });

  test('by an assertion for another program', async () => {
    const other = keyIdOf(makeKeys().publicKey);
    await refuse(/another program/, changed({ audience: other }));
    await refuse(/another program/, changed({ audience: keyIdOf(pair.operationsKeys.publicKey) }));
  });

  test('by an assertion that was changed, or signed by another key', async () => {
    await refuse(/not valid/, changed({}, makeKeys()));
    await refuse(/not valid/, changed({}, pair.monitorKeys));
    await refuse(/not valid/, (secret) => {
      const [version, payload, signature] = pair.assert(secret).split('.') as [string, string, string];
      const said = JSON.parse(Buffer.from(payload, 'base64url').toString());
      const other = Buffer.from(JSON.stringify({ ...said, operator_id: said.operator_id + 1 })).toString(
        'base64url',
      );
      return [version, other, signature].join('.');
    });
    await refuse(/not valid/, () => 'svcso1.e30.');
  });

  test('in a browser that did not begin: a stranger cannot sign a person in to another account', async () => {
    // The attacker is linked too, and begins in a browser of their own.
    const attacker = await begin();
    const victim = openBrowser();
    const page = await bring(victim, pair.assert(attacker.secret));
    assert.match(page.text, /not begun in this browser/);
    assert.ok(!(await isSignedIn(victim)));
    const begun = await begin();
    await bring(begun.browser, pair.assert(attacker.secret));
    assert.ok(!(await isSignedIn(begun.browser)), 'also not where another sign-on has begun');
  });

  test('with the right secret alone: the ticket belongs to the browser that brought the assertion', async () => {
    const { browser, secret } = await begin();
    await pair.monitor.monitor.signOn.accept(pair.assert(secret));
    assert.match(
      (await browser.follow(`${pair.monitorUrl}/sign-on/finish`)).text,
      /not begun in this browser/,
    );
  });

  test('for another path than the one that was begun with', async () => {
    const { browser, secret } = await begin('/settings');
    const state = pair.assert(secret, { path: '/settings' });
    const { state: bound } = JSON.parse(Buffer.from(state.split('.')[1]!, 'base64url').toString());
    const page = await bring(browser, pair.assert(secret, { path: '/operations', state: bound }));
    assert.match(page.text, /not begun in this browser/);
  });

  test('more than ten minutes after it began', async () => {
    const { browser, secret } = await begin();
    const { to } = await browser.post(`${pair.monitorUrl}/sign-on/answer`, {
      assertion: pair.assert(secret),
    });
    await moveDatabaseClock(pair.monitor.database, '11 minutes');
    assert.match((await browser.follow(to!)).text, /not begun in this browser/);
    await moveDatabaseClock(pair.monitor.database, '0');
  });

  test('whose account is not linked, however equal the email addresses are', async () => {
    const { signOn, operators } = pair.monitor.monitor;
    await signOn.unlinkAccount(monitorSystem, pair.olivia.id);
    await operators.add({ ...logins.monitor, email: pair.olivia.email, name: 'Same', role: 'operator' });
    const { page } = await refuse(/not linked yet/, changed({}));
    assert.doesNotMatch(page.text, /Olga|Same/, 'tells nothing of who is here');
  });

  test('who is deactivated here', async () => {
    const change = (isDisabled: boolean) =>
      pair.monitor.monitor.operators.change(monitorSystem, pair.olga.id, { isDisabled });
    await refuse(/has no access/, changed({}), () => change(true));
    await change(false);
  });

  test('when its direction is turned off, or the peer has another key, at once', async () => {
    const { signOn } = pair.monitor.monitor;
    const peer = (await signOn.view()).peer!;
    await refuse(/Single sign-on is off/, changed({}), () =>
      signOn.savePeer(monitorSystem, { ...peer, isAccepted: false }),
    );
    const off = await openBrowser().get(`${pair.monitorUrl}/sign-on?to=${encodeURIComponent(target)}`);
    assert.equal(new URL(off.to!).pathname, '/sign-in', 'the link asks for a password then');
    await signOn.savePeer(monitorSystem, peer);
    await refuse(/not valid/, changed({}), () =>
      signOn.savePeer(monitorSystem, { ...peer, publicKey: keyText(makeKeys().publicKey) }),
    );
    await signOn.savePeer(monitorSystem, peer);
    assert.deepEqual((await signOn.view()).accounts, [], 'accounts of another program are forgotten');
  });

  test('and leads to no other site', async () => {
    for (const path of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example/',
      '/a/..//evil.example',
    ]) {
      const browser = openBrowser();
      const page = await browser.get(`${pair.monitorUrl}/sign-on?to=${encodeURIComponent(path)}`);
      assert.equal(page.status, 400, path);
      assert.match(page.text, /leads nowhere/);
      assert.equal(browser.jarOf(pair.monitorUrl).size, 0);
    }
    await refuse(/leads nowhere|not valid/, (secret) => {
      // No program of ours signs it.
      assert.throws(() => pair.assert(secret, { path: '//evil.example' }), /not an assertion/);
      return pair.assert(secret, {}, makeKeys());
    });
  });

  test('after a hundred assertions of one source within ten minutes', async () => {
    const browser = openBrowser();
    let status = 0;
    for (let count = 0; count <= 100 && status !== 429; count += 1)
      status = (await browser.post(`${pair.monitorUrl}/sign-on/answer`, { assertion: 'x' })).status;
    assert.equal(status, 429);
    await pair.monitor.database.pool.query('delete from sign_in_failures');
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
      const { browser, secret } = await begin();
      const page = await bring(browser, pair.assert(secret));
      assert.match(page.text, /Enter your code/);
      assert.ok(!(await isSignedIn(browser)));
      const answer = await browser.post(`${pair.monitorUrl}/sign-in/code`, { code: code(), next: target });
      assert.equal(answer.to, `${pair.monitorUrl}${target}`);
      assert.ok(await isSignedIn(browser));
      const strong = await begin();
      await bring(strong.browser, pair.assert(strong.secret, { second_factor: true }));
      assert.ok(await isSignedIn(strong.browser));
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
    const { browser, secret } = await begin();
    const refused = await bring(browser, pair.assert(secret));
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
    const again = await begin();
    await bring(again.browser, pair.assert(again.secret));
    assert.ok(await isSignedIn(again.browser), 'from then on without a password');
  });

  test('are not linked by a stranger’s sign-on that a signed-in person is sent into', async () => {
    const { signOn } = pair.monitor.monitor;
    await signOn.unlinkAccount(monitorSystem, pair.olivia.id);
    const attacker = await begin();
    const victim = openBrowser();
    await victim.post(`${pair.monitorUrl}/sign-in`, logins.monitor);
    await bring(victim, pair.assert(attacker.secret, { operator_email: 'mallory@operations.test' }));
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
    const { browser, secret } = await begin();
    await bring(browser, pair.assert(secret, { operator_id: 500, operator_email: 'victor@operations.test' }));
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

describe('operations vouches', () => {
  const askPath = (change: Record<string, string> = {}) => {
    const asked = {
      audience: keyIdOf(pair.monitorKeys.publicKey),
      state: createHash('sha256').update(randomBytes(8)).digest('base64url'),
      to: '/settings',
      ...change,
    };
    return `${pair.operations.url}/sign-on/ask?${new URLSearchParams(asked)}`;
  };
  const signedIn = async (login = logins.operations) => {
    const browser = openBrowser();
    await browser.post(`${pair.operations.url}/sign-in`, login);
    return browser;
  };

  test('for staff only: to a customer there is no such page', async () => {
    const { email } = await pair.operations.createCustomer('Customer');
    const browser = await signedIn({ ...logins.operations, email });
    assert.equal((await browser.get(askPath())).status, 404);
  });

  test('to the program that it is set up with, and to no other', async () => {
    const browser = await signedIn();
    assert.match((await browser.get(askPath())).text, /Continue/);
    const other = await browser.get(askPath({ audience: keyIdOf(makeKeys().publicKey) }));
    assert.equal(other.status, 403);
    assert.doesNotMatch(other.text, /assertion/);
    for (const change of [{ to: '//evil.example' }, { state: 'x' }]) {
      const page = await browser.get(askPath(change));
      assert.equal(page.status, 400);
      assert.doesNotMatch(page.text, /name="assertion"/);
    }
  });

  test('only while an administrator offers it, at most sixty times in ten minutes', async () => {
    const { signOn } = pair.operations;
    const browser = await signedIn();
    const peer = (await signOn.view()).peer!;
    await signOn.savePeer(systemActor, { ...peer, isOffered: false });
    assert.equal((await browser.get(askPath())).status, 403);
    assert.equal(await signOn.links(), null, 'and no page links to the monitor');
    await signOn.savePeer(systemActor, peer);
    let status = 200;
    for (let count = 0; count <= 60 && status === 200; count += 1)
      status = (await browser.get(askPath())).status;
    assert.equal(status, 429);
    await pair.operations.database.pool.query('delete from sign_in_failures');
  });
});

describe('an operator of the monitor at operations', () => {
  const console = '/console/customers/';
  const arrive = async () => {
    const browser = openBrowser();
    await browser.post(`${pair.monitorUrl}/sign-in`, logins.monitor);
    const { text } = await browser.follow(`${pair.operations.url}/sign-on?to=${encodeURIComponent(console)}`);
    const { action, fields } = formIn(text);
    const { to } = await browser.post(action, fields);
    return { browser, landed: await browser.follow(to!) };
  };

  test('is signed in as their linked member of staff', async () => {
    await pair.operations.signOn.linkAccount(systemActor, {
      subjectId: pair.olga.id,
      personId: pair.olivia.id,
    });
    const { landed } = await arrive();
    assert.equal(landed.status, 200);
    assert.match(landed.text, /<h1[^>]*>Customers/);
  });

  test('is never signed in as a customer, also when a link says so', async () => {
    const { owner } = await pair.operations.createCustomer('Linked');
    const link = { subjectId: 77, personId: owner.id };
    await assert.rejects(pair.operations.signOn.linkAccount(systemActor, link), /no operator/);
    await pair.operations.database.pool.query('update sign_on_accounts set person_id = $1', [owner.id]);
    const { browser, landed } = await arrive();
    assert.match(landed.text, /has no access/);
    assert.equal(browser.jarOf(pair.operations.url).has('svc_operations'), false);
  });
});
