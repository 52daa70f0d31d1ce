/** Single sign-on at operations: whom it vouches for, and whom it signs in that the monitor vouches for. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { keyIdOf } from '#contracts/sign-on/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import {
  createSignOnPair,
  formIn,
  logins,
  makeKeys,
  openBrowser,
  type SignOnPair,
} from './testing/sign-on-pair.ts';
import { linkAgain } from './testing/sign-on-steps.ts';

let pair: SignOnPair;
before(async () => {
  pair = await createSignOnPair();
});
after(() => pair[Symbol.asyncDispose]());
beforeEach(() => linkAgain(pair));

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
