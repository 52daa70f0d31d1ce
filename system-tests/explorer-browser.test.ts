// Slow: uses both explorers in a browser.
/** The explorer of traffic in a real browser: an operator's and a customer's steps by keyboard, by pointer and on a phone. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/create-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { formatBytes, formatCount } from '#service-kit/pages/index.ts';
import { type KeyboardUser, startKeyboardUser } from './testing/keyboard.ts';

const minuteMs = 60_000;
/** Taken when the first test begins: other files of the process may have run before. */
let startedMs: number;
const ago = (minutes: number) => startedMs - minutes * minuteMs;
const utc = (ms: number) => new Date(ms).toISOString().slice(0, 16);
/** The same hour at every request of a test. */
const hour = () => `range=custom&from=${utc(ago(60))}&to=${utc(ago(0))}`;

let world: World;
let user: KeyboardUser;
let page: Page;
let operators: string;
let customers: string;
const cookies: Record<string, string> = {};

before(async () => {
  startedMs = Math.floor(Date.now() / minuteMs) * minuteMs;
  world = await createWorld();
  operators = `${world.url}/console/traffic/`;
  customers = `${world.url}/client/traffic/`;
  const token = await world.createToken(['protect_telemetry_ingest']);
  const staff = { email: 'staff@staff.test', name: 'Staff', password, staffRole: 'operator' } as const;
  await world.accounts.createPerson(systemActor, staff);
  cookies.staff = await world.signIn(staff.email);
  const used = (name: string, port: number, bytes: number) => ({
    ...{ name, transport: 'tcp', server_port: port, inbound_bytes: bytes, outbound_bytes: bytes },
  });
  for (const [customer, server, bytes] of [
    ['Acorn', 'oak', 6_000],
    ['Birch', 'twig', 60_000],
  ] as const) {
    const { email, tenant } = await world.createCustomer(customer);
    cookies[customer] = await world.signIn(email);
    const { serverId } = await world.deploy(tenant, server);
    await world.backdate(serverId, '5 days');
    const [of] = await world.addresses.listAllocationsOfServers([serverId]);
    const applications = [used(`${server}.example`, 443, bytes / 10), used('git.example', 22, bytes / 20)];
    const minutes = Array.from({ length: 110 }, (_, n) => 2 + n).map(
      (at) => [ago(at), { in: bytes, out: bytes / 2, pps: bytes / 600, applications }] as const,
    );
    await deliverMinutes(world, token, of!, minutes);
  }
  user = await startKeyboardUser();
  page = user.page;
});
after(async () => {
  await user?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

async function open(who: string, url: string): Promise<void> {
  const [name, value] = cookies[who]!.split('=') as [string, string];
  await page.context().clearCookies();
  await page.context().addCookies([{ name, value, url: world.url }]);
  await user.open(url);
}

const query = () => new URL(page.url()).searchParams;
const filter = () => query().get('q');
/** What the chips say. */
const chips = async () =>
  (await page.locator('ul[aria-label="Filters"] > li').allInnerTexts()).map((text) =>
    text.replace('×', ' ×').replaceAll(/\s+/g, ' '),
  );
const table = (caption: string) =>
  page.locator('table', { has: page.locator('caption', { hasText: caption }) });
const cells = async (caption: string) =>
  Promise.all(
    (await table(caption).locator('tbody tr').all()).map((row) => row.locator('th, td').allInnerTexts()),
  );
/** Clicks a link or a button and waits for the page that it leads to. */
async function go(click: () => Promise<void>): Promise<void> {
  await Promise.all([page.waitForEvent('framenavigated'), click()]);
  await page.waitForLoadState('load');
}

test('by keyboard: a value of a table is the filter, another one is completed and typed, the unit changes, a chip goes', async () => {
  await open('staff', `${operators}?${hour()}&by=customer`);
  await user.enter(/^Only customer Birch$/);
  assert.equal(filter(), 'customer:Birch');
  assert.deepEqual(await chips(), ['customer is Birch ×']);
  assert.doesNotMatch(await table('Applications by traffic').innerText(), /oak/);
  await user.fill(/^Filter$/, 'customer:Birch -app:gi');
  await page
    .locator('#explore-values option[value="customer:Birch -app:git.example"]')
    .waitFor({ state: 'attached' });
  await page.keyboard.type('t.example');
  await go(() => user.press('Enter'));
  assert.deepEqual(await chips(), ['customer is Birch ×', 'app is not git.example ×']);
  assert.doesNotMatch(await table('Applications by traffic').innerText(), /git\.example/);
  await user.enter(/^Remove the filter not app git\.example$/);
  assert.equal(filter(), 'customer:Birch');
  await user.tabTo(/^Group by$/);
  await go(() => page.keyboard.type('Addresses'));
  await user.tabTo(/^Unit$/);
  await go(() => page.keyboard.type('Packets'));
  assert.equal(query().get('measure'), 'packets');
  const [row] = await cells('Addresses by packets');
  assert.match(row!.join(' '), /^[\d.]+.* 354,000 /, '59 minutes of 6,000 packets');
  assert.equal(await user.pointerEvents(), 0);
});

test('by pointer: a table, its minus, the legend and a chip each change the filters, and Back goes the same way back', async () => {
  await open('staff', `${operators}?${hour()}&by=server`);
  const seen: (string | null)[] = [];
  for (const click of [
    () => table('Applications by traffic').getByRole('link', { name: 'Only app git.example' }).click(),
    () => table('Servers by traffic').getByRole('link', { name: 'Leave out oak' }).click(),
    () => page.locator('#traffic').getByRole('link', { name: 'twig' }).first().click(),
    () => page.getByRole('link', { name: 'app:git.example: change to is not' }).click(),
    () => page.getByRole('link', { name: 'Remove the filter not app git.example' }).click(),
  ]) {
    await go(click);
    seen.push(filter());
  }
  assert.deepEqual(seen, [
    'app:git.example',
    '-server:oak app:git.example',
    'server:twig -server:oak app:git.example',
    'server:twig -server:oak -app:git.example',
    'server:twig -server:oak',
  ]);
  for (const before of [...seen.slice(0, -1).reverse(), null]) {
    await page.goBack({ waitUntil: 'load' });
    assert.equal(filter(), before);
  }
  assert.deepEqual(await chips(), []);
});

test('dragging over the chart narrows the range of the chart and of all tables, and Back widens it', async () => {
  await open('staff', `${operators}?${hour()}&by=server`);
  const before = await cells('Servers by traffic');
  const plot = page.locator('#traffic .u-over');
  await plot.waitFor();
  const { x, y, width } = (await plot.boundingBox())!;
  await page.mouse.move(x + width * 0.5, y + 40);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.75, y + 60, { steps: 5 });
  await go(() => page.mouse.up());
  const [from, to] = [query().get('from')!, query().get('to')!].map((text) => Date.parse(text));
  const minutes = (to! - from!) / minuteMs;
  assert.ok(minutes >= 14 && minutes <= 17, `${minutes} of 60 minutes`);
  const [row] = await cells('Servers by traffic');
  assert.equal(row![1], formatBytes(minutes * 60_000), 'the table has the bytes of these minutes');
  assert.match((await page.locator('#traffic').textContent())!, new RegExp(`${minutes} points`));
  await page.goBack({ waitUntil: 'load' });
  assert.equal(query().get('from'), utc(ago(60)));
  assert.deepEqual(await cells('Servers by traffic'), before);
});

test('the period before is drawn and compared, and a view under a name brings all of it back', async () => {
  await open('staff', `${operators}?range=15m&by=none`);
  const legend = page.locator('#traffic .chart-swatch');
  await legend.first().waitFor();
  assert.doesNotMatch(await page.locator('#traffic').innerText(), /previous/);
  await user.tabTo(/^Compare$/);
  await go(() => page.keyboard.type('Previous'));
  await legend.first().waitFor();
  assert.match(await page.locator('#traffic').innerText(), /Out, previous[\s\S]*In, previous/);
  const view = query();
  await user.fill(/^Name$/, 'Quarter of an hour');
  await user.enter(/^Save this view$/);
  assert.match(await user.text(), /Saved\./);
  await open('staff', operators);
  assert.equal(query().get('compare'), null);
  await user.enter(/^Quarter of an hour$/);
  for (const [key, value] of [...view].filter(([, value]) => value !== ''))
    assert.equal(query().get(key), value, key);
  assert.match(await page.locator('#traffic').innerText(), /Out, previous/);
});

test('CSV and JSON have the numbers of the page, in its order', async () => {
  await open('staff', `${operators}?${hour()}&by=server&measure=packets&server_sort=in&server_direction=asc`);
  const shown = (await cells('Servers by packets')).map((row) => [
    row[0]!.split(' ')[0]!.split('\n')[0],
    ...row.slice(1, 4),
  ]);
  assert.deepEqual(
    shown.map(([name]) => name),
    ['oak', 'twig'],
  );
  const file = async (name: string) => {
    const link = page.getByRole('link', { name: `Servers by packets as ${name}` });
    const answer = await page.context().request.get(`${world.url}${await link.getAttribute('href')}`);
    return answer.text();
  };
  const written = (row: Record<string, unknown>) => [
    ...[row.server, formatBytes(Number(row.inbound_bytes)), formatBytes(Number(row.outbound_bytes))],
    formatCount(Number(row.packets)),
  ];
  const [head, ...lines] = (await file('CSV'))
    .trim()
    .split('\r\n')
    .map((line) => line.split(','));
  const ofCsv = lines.map((line) => Object.fromEntries(line.map((value, at) => [head![at]!, value])));
  assert.deepEqual(ofCsv.map(written), shown);
  const { rows } = JSON.parse(await file('JSON')) as { rows: Record<string, unknown>[] };
  assert.deepEqual(rows.map(written), shown);
});

test('NET-2.4.4: a customer sees and completes the own servers alone, by the same steps', async () => {
  await open('Acorn', customers);
  assert.match(await user.text(), /oak used the most/);
  assert.doesNotMatch(await user.text(), /twig|Birch/);
  await user.fill(/^Filter$/, 'server:');
  await page.locator('#explore-values option[value="server:oak"]').waitFor({ state: 'attached' });
  assert.deepEqual(
    await page
      .locator('#explore-values option')
      .evaluateAll((all) => all.map((one) => one.getAttribute('value'))),
    ['server:oak'],
  );
  await page.keyboard.type('twig');
  await go(() => user.press('Enter'));
  assert.deepEqual(await chips(), ['server is twig ×']);
  assert.match(await user.text(), /None of 1 servers passes the filters/);
  await user.enter(/^Remove all filters$/);
  await user.enter(/^Only app git\.example$/);
  assert.equal(filter(), 'app:git.example');
});

test('on a phone both explorers fit the window, in every picture and unit', async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [who, url] of [
    ['staff', operators],
    ['Acorn', customers],
  ] as const)
    for (const view of [
      '?range=1h',
      '?range=1h&by=server&measure=packets&q=-app:x',
      '?range=1h&tab=flows&q=app:git.example,oak.example',
      '?range=24h&by=none&measure=packets&compare=previous',
    ]) {
      await open(who, `${url}${view}`);
      const wider = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      assert.equal(wider, 0, `${who} ${view}`);
      const captions = page.locator('caption:not(.visually-hidden)');
      const heights = await captions.evaluateAll((all) => all.map((one) => one.clientHeight));
      assert.ok(Math.max(...heights, 0) < 60, 'a caption has the width of its table');
    }
  assert.deepEqual(user.complaints, []);
});
