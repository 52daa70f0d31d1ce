// Slow: two whole programs and an OpenID provider, which is a process of its own
/** Staff of both programs sign in at a provider that others wrote (`oidc-provider`), with its own pages. */
import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { openBrowser, type TestBrowser } from './testing/sign-on-pair.ts';

const secret = 'Kx7wQ2mZr9TfLp4B';
let provider: ChildProcessWithoutNullStreams;
let issuer: string;
let operations: World;
let monitor: MonitorServer;

before(async () => {
  provider = spawn(process.execPath, ['system-tests/testing/oidc-provider/main.ts'], { stdio: 'pipe' });
  const [line] = (await once(createInterface(provider.stdout), 'line')) as [string];
  issuer = line;
  operations = await createWorld({
    ...{ oidcIssuer: issuer, oidcClientId: 'svc', oidcClientSecret: secret },
    ...{ oidcOperatorGroups: ['ops'], oidcReaderGroups: ['helpdesk'] },
  });
  monitor = await startMonitorServer({
    ...{ SVC_OIDC_ISSUER: issuer, SVC_OIDC_CLIENT_ID: 'svc', SVC_OIDC_CLIENT_SECRET: secret },
    ...{ SVC_OIDC_OPERATOR_GROUPS: 'ops', SVC_OIDC_READER_GROUPS: 'helpdesk' },
  });
  const redirectUris = [operations.url, monitor.url].map((url) => `${url}/sign-in/oidc/answer`);
  const groups = { olga: ['ops'], henry: ['helpdesk'], simon: ['sales'] };
  provider.stdin.write(`${JSON.stringify({ redirectUris, secret, groups })}\n`);
});
after(async () => {
  provider.kill();
  await monitor[Symbol.asyncDispose]();
  await operations[Symbol.asyncDispose]();
});

/** Follows the way to the provider, through its forms, and back to a page of ours. */
async function signIn(browser: TestBrowser, url: string, login: string) {
  let answer = await browser.follow(url);
  for (let forms = 0; forms < 4; forms += 1) {
    const [, action] = /<form[^>]* action="([^"]+)"/.exec(answer.text) ?? [];
    if (action === undefined || !new URL(action, url).href.startsWith(issuer)) break;
    const hidden = [...answer.text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)];
    const fields = Object.fromEntries(hidden.map(([, name, value]) => [name!, value!]));
    const { to } = await browser.post(action, { ...fields, login, password: 'any' });
    answer = await browser.follow(to!);
  }
  return answer;
}
const tokenIn = (page: string) => /name="csrf_token" value="([^"]+)"/.exec(page)?.[1] ?? '';

test('one provider signs its people in to both programs, with the roles of their groups', async () => {
  for (const { url, home, form } of [
    { url: operations.url, home: '/console/staff/', form: /action="\/console\/staff\/"/ },
    { url: monitor.url, home: '/settings', form: /action="\/settings\/people"/ },
  ]) {
    const path = `${url}/sign-in/oidc?next=${encodeURIComponent(home)}`;
    const operator = await signIn(openBrowser(), path, 'olga');
    assert.equal(operator.status, 200);
    assert.match(operator.text, form, 'an operator has forms');
    const reader = await signIn(openBrowser(), path, 'henry');
    assert.equal(reader.status, 200);
    assert.doesNotMatch(reader.text, form, 'a reader has none');
    assert.match((await signIn(openBrowser(), path, 'simon')).text, /give no access/);
  }
});

test('a sensitive change asks the provider for a sign-in of its own, in both programs', async () => {
  for (const { url, database, page: home, path, fields } of [
    {
      ...{
        url: operations.url,
        database: operations.database,
        page: '/console/staff/',
        path: '/console/staff/',
      },
      fields: { email: 'new@staff.test', name: 'New', role: 'support' },
    },
    {
      ...{ url: monitor.url, database: monitor.database, page: '/settings', path: '/settings/people' },
      fields: { email: 'new@staff.test', name: 'New', role: 'viewer' },
    },
  ]) {
    const browser = openBrowser();
    const page = await signIn(browser, `${url}/sign-in/oidc?next=${encodeURIComponent(home)}`, 'olga');
    await database.pool.query(
      `update sessions set authenticated_at = authenticated_at - interval '20 minutes'`,
    );
    const form = { ...fields, csrf_token: tokenIn(page.text) };
    assert.match((await browser.post(`${url}${path}`, form)).text, /in a new tab/);
    assert.match((await signIn(browser, `${url}/sign-in/oidc/confirm`, 'henry')).text, /another person/);
    assert.match((await signIn(browser, `${url}/sign-in/oidc/confirm`, 'olga')).text, /Confirmed/);
    const done = await browser.post(`${url}${path}`, form);
    assert.ok(done.status < 400, `${done.status}`);
  }
});

test('a session that is asked about after an hour goes on without a question, while the provider has its own', async () => {
  for (const { url, database, path } of [
    { url: operations.url, database: operations.database, path: '/console/servers/' },
    { url: monitor.url, database: monitor.database, path: '/alerts' },
  ]) {
    const browser = openBrowser();
    await signIn(browser, `${url}/sign-in/oidc`, 'olga');
    await database.pool.query(
      `update sessions set identity_checked_at = identity_checked_at - interval '2 hours'`,
    );
    const landed = await browser.follow(`${url}${path}`);
    assert.equal(landed.status, 200);
    assert.doesNotMatch(landed.text, /name="password"/);
    const checked = await database.pool.query(
      `select 1 from sessions where identity_checked_at > now() - interval '1 minute'`,
    );
    assert.ok(checked.rowCount! > 0);
  }
});
