/** Single sign-on that the monitor must refuse, as a browser without scripts sees it. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type Assertion, keyIdOf, keyText } from '#contracts/sign-on/index.ts';
import { systemActor as monitorSystem } from '#monitor/operators/index.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';
import {
  createSignOnPair,
  type Keys,
  logins,
  makeKeys,
  openBrowser,
  type SignOnPair,
} from './testing/sign-on-pair.ts';
import { begin, bring, isSignedIn, linkAgain, secretCookie, target } from './testing/sign-on-steps.ts';

let pair: SignOnPair;
before(async () => {
  pair = await createSignOnPair();
});
after(() => pair[Symbol.asyncDispose]());
beforeEach(() => linkAgain(pair));

describe('the monitor refuses to sign a person in', () => {
  const refuse = async (
    title: RegExp,
    change: (secret: string) => string,
    prepare: () => unknown = () => {},
  ) => {
    const { browser, secret } = await begin(pair);
    const assertion = change(secret);
    await prepare();
    const page = await bring(pair, browser, assertion);
    assert.match(page.text, title);
    assert.ok(page.status >= 400 && page.status < 500, String(page.status));
    assert.ok(!(await isSignedIn(pair, browser)));
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
    const { browser, secret } = await begin(pair);
    const assertion = pair.assert(secret);
    await bring(pair, browser, assertion);
    assert.ok(await isSignedIn(pair, browser));
    const other = openBrowser();
    other.jarOf(pair.monitorUrl).set(secretCookie, secret);
    const page = await bring(pair, other, assertion);
    assert.match(page.text, /used before/);
    assert.ok(!(await isSignedIn(pair, other)));
  });

  test('twice when an assertion arrives at several replicas at once', async () => {
    const { secret } = await begin(pair);
    const assertion = pair.assert(secret);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => pair.monitor.monitor.signOn.accept(assertion)),
    );
    assert.equal(answers.filter((answer) => 'ticket' in answer).length, 1);
  });

  test('with a ticket that was used before', async () => {
    const { browser, secret } = await begin(pair);
    const { to } = await browser.post(`${pair.monitorUrl}/sign-on/answer`, {
      assertion: pair.assert(secret),
    });
    const other = openBrowser();
    for (const [name, value] of browser.jarOf(pair.monitorUrl)) other.jarOf(pair.monitorUrl).set(name, value);
    await browser.follow(to!);
    assert.match((await other.follow(to!)).text, /not begun in this browser/);
    assert.ok(!(await isSignedIn(pair, other)));
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
    const attacker = await begin(pair);
    const victim = openBrowser();
    const page = await bring(pair, victim, pair.assert(attacker.secret));
    assert.match(page.text, /not begun in this browser/);
    assert.ok(!(await isSignedIn(pair, victim)));
    const begun = await begin(pair);
    await bring(pair, begun.browser, pair.assert(attacker.secret));
    assert.ok(!(await isSignedIn(pair, begun.browser)), 'also not where another sign-on has begun');
  });

  test('with the right secret alone: the ticket belongs to the browser that brought the assertion', async () => {
    const { browser, secret } = await begin(pair);
    await pair.monitor.monitor.signOn.accept(pair.assert(secret));
    assert.match(
      (await browser.follow(`${pair.monitorUrl}/sign-on/finish`)).text,
      /not begun in this browser/,
    );
  });

  test('for another path than the one that was begun with', async () => {
    const { browser, secret } = await begin(pair, '/settings');
    const state = pair.assert(secret, { path: '/settings' });
    const { state: bound } = JSON.parse(Buffer.from(state.split('.')[1]!, 'base64url').toString());
    const page = await bring(pair, browser, pair.assert(secret, { path: '/operations', state: bound }));
    assert.match(page.text, /not begun in this browser/);
  });

  test('more than ten minutes after it began', async () => {
    const { browser, secret } = await begin(pair);
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
