/** The firewall's page: a rule is edited in its row, and nothing that was typed is lost. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { systemActor } from '#operations/accounts/index.ts';
import type { Rule } from '#operations/firewall/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';
import { openPage } from '#service-kit/pages/testing/open-page.ts';
import { launchBrowser } from '#service-kit/testing/browser.ts';

let world: World;
let browser: Browser;
let visitor: Awaited<ReturnType<typeof visit>>;
let email: string;
let serverId: number;
let tenantId: number;
let path: string;

before(async () => {
  world = await createWorld();
  const customer = await world.createCustomer('Walled');
  email = customer.email;
  tenantId = customer.tenant.id;
  ({ serverId } = await world.deploy(customer.tenant, 'walled'));
  path = `/client/servers/${serverId}/firewall`;
  visitor = await visit(world, email, '/client/');
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await world?.[Symbol.asyncDispose]();
});

const read = async () => (await world.firewalls.readFirewall(systemActor, tenantId, serverId))!;
const told = async () =>
  (await read()).rules.map((rule) =>
    [rule.protocol, rule.ports, rule.peers.join(' '), rule.description].join(' '),
  );
const change = async (wanted: Parameters<World['firewalls']['changeFirewall']>[3]) =>
  world.firewalls.changeFirewall(systemActor, serverId, (await read()).version, wanted);
const rule = (ports: string) =>
  ({
    direction: 'inbound',
    action: 'accept',
    protocol: 'tcp',
    ports,
    peers: [],
    description: '',
  }) satisfies Rule;

beforeEach(async () => {
  for (const { id } of (await read()).rules) await change({ kind: 'remove', ruleId: id });
  for (const ports of ['22', '80', '443']) await change({ kind: 'add', rule: rule(ports) });
});

/** The edit form of a rule as its page shows it, with other values. */
async function formOf(ruleId: number, values: Record<string, string> = {}) {
  const page = await visitor.page(`${path}?edit=${ruleId}`);
  const hidden = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(page)![1]!;
  const form = { version: hidden('version'), rule: String(ruleId), seen: hidden('seen') };
  const fields = {
    direction: 'inbound',
    action: 'accept',
    protocol: 'tcp',
    ports: '80',
    peers: '',
    description: '',
  };
  return { ...form, ...fields, ...values };
}

test('the first rule of a firewall that is off offers to switch it on, and says what passes until then', async () => {
  const offer = /Switch the firewall on to apply these rules/;
  const page = await visitor.page(path);
  assert.match(page, offer);
  assert.match(
    page,
    /It is off, so all traffic passes\. Once it is on, inbound traffic that no rule matches is (?:allowed|dropped)\./,
  );
  const { version } = await read();
  const answer = await visitor.post(`${path}/switch`, { version: String(version), enabled: 'yes' });
  assert.equal(answer.status, 303);
  assert.doesNotMatch(await visitor.page(path), offer);
  await change({ kind: 'switch', isEnabled: false });
});

describe('a rule is edited in its row', () => {
  test('every field of it can be changed, the order stays', async () => {
    const [, second] = (await read()).rules;
    const values = {
      action: 'drop',
      protocol: 'udp',
      ports: '8000-9000',
      peers: '198.51.100.0/24, 2001:db8::1',
    };
    const answer = await visitor.post(
      `${path}/edit`,
      await formOf(second!.id, { ...values, description: 'media' }),
    );
    assert.equal(answer.status, 303);
    assert.equal(answer.headers.get('location'), `${path}?done=saved#edit-${second!.id}`);
    assert.deepEqual(await told(), [
      'tcp 22  ',
      'udp 8000-9000 198.51.100.0/24 2001:db8::1/128 media',
      'tcp 443  ',
    ]);
    const { rules } = await read();
    assert.deepEqual([rules[1]!.id, rules[1]!.action], [second!.id, 'drop']);
  });

  test('an error stands beside its field with what was typed', async () => {
    const [first] = (await read()).rules;
    const answer = await visitor.post(`${path}/edit`, await formOf(first!.id, { ports: '99999' }));
    assert.equal(answer.status, 422);
    const page = await answer.text();
    assert.match(page, /value="99999"[^>]*>\s*<p class="field-error" id="edit-ports-error">/);
    assert.deepEqual(await told(), ['tcp 22  ', 'tcp 80  ', 'tcp 443  ']);
  });

  test('a change of another rule is no hindrance', async () => {
    const [first, , third] = (await read()).rules;
    const form = await formOf(first!.id, { ports: '2222' });
    await change({ kind: 'remove', ruleId: third!.id });
    assert.equal((await visitor.post(`${path}/edit`, form)).status, 303);
    assert.deepEqual(await told(), ['tcp 2222  ', 'tcp 80  ']);
  });

  test('a rule that was changed meanwhile is shown as it is now; saved once more, what was typed replaces it', async () => {
    const [first] = (await read()).rules;
    const form = await formOf(first!.id, { ports: '2222', description: 'typed at length' });
    assert.equal((await visitor.post(`${path}/edit`, await formOf(first!.id, { ports: '23' }))).status, 303);
    const refused = await visitor.post(`${path}/edit`, form);
    assert.equal(refused.status, 409);
    const page = await refused.text();
    assert.match(page, /changed while you edited it\. It is now: allow TCP 23 from all addresses/);
    assert.match(page, /value="2222"/);
    assert.match(page, /value="typed at length"/);
    const seen = /name="seen" value="([^"]+)"/.exec(page)![1]!;
    assert.equal((await visitor.post(`${path}/edit`, { ...form, seen })).status, 303);
    assert.deepEqual((await told())[0], 'tcp 2222  typed at length');
  });

  test('of a rule that was removed meanwhile what was typed is kept, to be added anew', async () => {
    const [first] = (await read()).rules;
    const form = await formOf(first!.id, { ports: '2222', description: 'typed at length' });
    await change({ kind: 'remove', ruleId: first!.id });
    const refused = await visitor.post(`${path}/edit`, form);
    assert.equal(refused.status, 409);
    const page = await refused.text();
    assert.match(page, /removed while you edited it/);
    assert.match(page, /id="field-description"[^>]*value="typed at length"/);
    assert.deepEqual(await told(), ['tcp 80  ', 'tcp 443  ']);
  });

  test('without the token, and of another customer’s server, nothing is changed', async () => {
    const [first] = (await read()).rules;
    const form = await formOf(first!.id, { ports: '2222' });
    assert.equal((await visitor.post(`${path}/edit`, { ...form, csrf_token: 'none' })).status, 403);
    const stranger = await world.createCustomer('Stranger');
    const other = await visit(world, stranger.email, '/client/');
    assert.equal((await other.post(`${path}/edit`, form)).status, 404);
    assert.deepEqual(await told(), ['tcp 22  ', 'tcp 80  ', 'tcp 443  ']);
  });

  test('by keyboard: Edit, a new value, Enter saves; Escape leaves it as it was', async () => {
    const cookie = await world.signIn(email);
    const [name, value] = cookie.split('=') as [string, string];
    await using opened = await openPage(browser, `${world.url}/sign-in`);
    const { page } = opened;
    await page.context().addCookies([{ name, value, url: world.url }]);
    await page.goto(`${world.url}${path}`);
    await page.getByRole('link', { name: 'Edit' }).first().focus();
    await page.keyboard.press('Enter');
    const ports = page.locator('#edit-ports:focus');
    await ports.waitFor();
    await ports.fill('2222');
    await Promise.all([page.waitForURL(/done=saved/), page.keyboard.press('Enter')]);
    assert.deepEqual(await told(), ['tcp 2222  ', 'tcp 80  ', 'tcp 443  ']);
    await page.goto(`${world.url}${path}?edit=${(await read()).rules[1]!.id}`);
    await page.locator('#edit-ports').fill('8080');
    await Promise.all([
      page.waitForURL((url) => !url.searchParams.has('edit')),
      page.keyboard.press('Escape'),
    ]);
    assert.deepEqual(await told(), ['tcp 2222  ', 'tcp 80  ', 'tcp 443  ']);
    assert.deepEqual(opened.complaints, []);
  });
});

describe('a page that renews itself', () => {
  test('does not keep its session alive, is no call of the API, and hears 401 once the session has ended', async () => {
    const cookie = await world.signIn(email);
    const ask = (headers: Record<string, string>) =>
      fetch(`${world.url}/client/`, {
        headers: { accept: 'text/html', cookie, ...headers },
        redirect: 'manual',
      });
    const lastSeen = async () =>
      (await world.database.pool.query('select max(last_seen_at) as at from sessions')).rows[0].at.getTime();
    const calls = async () =>
      (await world.database.pool.query('select count(*)::int as n from usage_days')).rows[0].n;
    await world.database.pool.query("update sessions set last_seen_at = last_seen_at - interval '11 hours'");
    const [seen, counted] = [await lastSeen(), await calls()];
    const first = await ask({ 'x-refresh': '1' });
    assert.equal(first.status, 200);
    const tag = first.headers.get('etag')!;
    assert.equal((await ask({ 'x-refresh': '1', 'if-none-match': tag })).status, 304);
    assert.equal(await lastSeen(), seen);
    assert.equal(await calls(), counted);
    assert.equal((await ask({})).status, 200);
    assert.ok((await lastSeen()) > seen, 'a page that a person opens is use');
    await world.database.pool.query("update sessions set last_seen_at = last_seen_at - interval '13 hours'");
    assert.equal((await ask({ 'x-refresh': '1' })).status, 401);
    assert.equal((await ask({})).status, 303);
  });
});
