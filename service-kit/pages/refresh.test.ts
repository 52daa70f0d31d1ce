/** Lists renew themselves in a real browser: without disturbing, without asking for nothing, and not for ever. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Browser, Page } from 'playwright-core';
import { silentReporter } from '#common/reporter/index.ts';
import { createHttpServer, type HttpServer } from '#service-kit/http/index.ts';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import * as pages from './index.ts';
import { type OpenedPage, openPage } from './testing/open-page.ts';

let server: HttpServer;
let browser: Browser;
/** What the list holds, and how requests to renew it are answered. */
let rows: string[] = [];
let mode: 'list' | 'error' | 'signed-out' = 'list';
let asked: { tag: string | undefined; status: number }[] = [];
let signInPages = 0;
const observedMs = Date.now() - 5000;

function answer(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (mode === 'signed-out')
    return pages.isRefresh(request)
      ? reply.code(401).send('Sign in first.')
      : reply.redirect('/sign-in', 303);
  if (mode === 'error' && pages.isRefresh(request)) return reply.code(503).send('later');
  const nowMs = Date.now();
  const list = pages.table<string>({
    caption: 'Servers',
    columns: [
      { key: 'name', header: 'Name', cell: (row) => pages.link(`/servers/${row}`, row) },
      { key: 'age', header: 'Observed', cell: () => pages.age(observedMs, nowMs) },
      {
        key: 'act',
        header: '',
        kind: 'actions',
        cell: (row) => pages.actionButton({ action: `/servers/${row}`, csrfToken: 'token', label: 'Start' }),
      },
    ],
    filter: pages.form({ action: '/list', method: 'get', submit: 'Filter', layout: 'inline' }, [
      pages.field({ name: 'name', label: 'Name' }),
    ]),
    rows,
    empty: { title: 'No servers', text: 'Deploy one.' },
  });
  const page = pages.shell(
    { area: 'Test', home: '/list', title: 'Servers', navigation: [], breadcrumb: [{ label: 'Servers' }] },
    [pages.pageHeader({ title: 'Servers' }), list],
  );
  return pages.sendPage(reply, page);
}

before(async () => {
  server = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) => {
      pages.registerAssets(app);
      app.addHook('onResponse', async (request, reply) => {
        if (pages.isRefresh(request))
          asked.push({ tag: request.headers['if-none-match'], status: reply.statusCode });
      });
      app.get('/list', async (request, reply) => answer(request, reply));
      app.get('/sign-in', async (_, reply) => {
        signInPages += 1;
        return pages.sendPage(reply, pages.signInPage({ area: 'Test' }));
      });
    },
  });
  await server.start();
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});
beforeEach(() => {
  rows = ['web-1', 'web-2', 'web-3'];
  mode = 'list';
  asked = [];
  signInPages = 0;
});

const open = () => openPage(browser, `${server.url}/list`, {}, (page) => page.clock.install());

/** Lets the interval pass, and the page take in the answer: its clock stands still, so it is told by what it did last. */
async function pass(page: Page, seconds = 16): Promise<void> {
  const before = asked.length;
  const answered = page.waitForResponse((one) => one.url() === `${server.url}/list`);
  await page.clock.runFor(seconds * 1000);
  await answered;
  await page.locator('[data-freshness]', { hasText: / now$|^Waits|^Offline|^Signed out/ }).waitFor();
  assert.equal(asked.length, before + 1);
}

const names = (page: Page) => page.locator('tbody tr th').allTextContents();
const freshness = (page: Page) => page.locator('[data-freshness]').textContent();
/** Counts every change of the list from here on. */
const watch = ({ page }: OpenedPage) =>
  page.evaluate(
    "window.changes = 0; new MutationObserver((all) => (window.changes += all.filter((one) => !one.target.closest?.('time') && !one.target.parentElement?.closest('time')).length)).observe(document.querySelector('.table-frame'), { subtree: true, childList: true, attributes: true, characterData: true })",
  );
const changes = (page: Page) => page.evaluate<number>('window.changes');

describe('a list renews itself', () => {
  test('new rows appear in their place, and the page says when it was renewed', async () => {
    await using opened = await open();
    const { page } = opened;
    rows = ['web-0', 'web-1', 'web-3'];
    await pass(page);
    assert.deepEqual(await names(page), ['web-0', 'web-1', 'web-3']);
    assert.match((await freshness(page)) ?? '', /^Updated (now|\d+ s ago)$/);
    assert.deepEqual(opened.complaints, []);
  });

  test('an equal list is answered by 304 and changes nothing in the page', async () => {
    await using opened = await open();
    const { page } = opened;
    await watch(opened);
    await pass(page);
    await pass(page);
    await pass(page);
    assert.deepEqual(
      asked.map(({ status }) => status),
      [200, 304, 304],
    );
    assert.ok(asked[1]!.tag !== undefined && asked[1]!.tag === asked[2]!.tag);
    assert.equal(await changes(page), 0);
  });

  test('the focus stays on its row when rows come before it, and goes to the list when its row goes', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.getByRole('link', { name: 'web-2' }).focus();
    rows = ['aaa', 'bbb', 'web-3', 'web-2'];
    await pass(page);
    assert.deepEqual(await names(page), rows);
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'web-2');
    rows = ['aaa'];
    await pass(page);
    assert.equal(await page.evaluate("document.activeElement.matches('.table-scroll')"), true);
  });

  test('nothing changes under a person who types or has selected text; afterwards it does', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.locator('#field-name').fill('we');
    rows = ['other'];
    await pass(page);
    assert.deepEqual(await names(page), ['web-1', 'web-2', 'web-3']);
    assert.equal(await page.locator('#field-name').inputValue(), 'we');
    assert.match((await freshness(page)) ?? '', /^Waits for you/);
    await page.locator('#field-name').fill('');
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('tbody th'))");
    await pass(page);
    assert.deepEqual(await names(page), ['web-1', 'web-2', 'web-3']);
    await page.evaluate('getSelection().removeAllRanges()');
    await pass(page);
    assert.deepEqual(await names(page), ['other']);
  });

  test('a hidden page asks for nothing, and at once when it is seen again', async () => {
    await using opened = await open();
    const { page } = opened;
    const hide = (isHidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await hide(true);
    await page.clock.runFor(120_000);
    assert.equal(asked.length, 0);
    const seen = page.waitForResponse((one) => one.url() === `${server.url}/list`);
    await hide(false);
    await seen;
  });

  test('errors are asked again later and later, the page says offline, and recovers by itself', async () => {
    await using opened = await open();
    const { page } = opened;
    mode = 'error';
    await pass(page);
    assert.match((await freshness(page)) ?? '', /^Offline, \d+ s ago$/);
    assert.match((await page.locator('[data-freshness-said]').textContent()) ?? '', /^Offline/);
    // The next try comes after twice the interval.
    await page.clock.runFor(20_000);
    assert.equal(asked.length, 1);
    await pass(page, 12);
    assert.equal(asked.length, 2);
    mode = 'list';
    rows = ['back'];
    const back = page.waitForResponse((one) => one.url() === `${server.url}/list` && one.status() === 200);
    await page.evaluate("dispatchEvent(new Event('online'))");
    await back;
    await page.getByRole('link', { name: 'back' }).waitFor();
    await page.clock.runFor(1000);
    assert.match((await freshness(page)) ?? '', /^Updated/);
  });

  test('signed out meanwhile: the page goes to sign in, once, and no form to sign in gets into the list', async () => {
    await using opened = await open();
    const { page } = opened;
    mode = 'signed-out';
    await Promise.all([page.waitForURL(`${server.url}/sign-in`), page.clock.runFor(16_000)]);
    assert.equal(signInPages, 1);
    assert.deepEqual(
      asked.map(({ status }) => status),
      [401],
    );
  });

  test('signed out while something was typed: the text stays, and the page says so', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.locator('#field-name').fill('half a sentence');
    mode = 'signed-out';
    await pass(page);
    assert.equal(await page.locator('#field-name').inputValue(), 'half a sentence');
    assert.match((await freshness(page)) ?? '', /^Signed out/);
    await page.clock.runFor(120_000);
    assert.equal(asked.length, 1);
  });
});
