/** Every page of the portal and of both consoles, looked at on a phone and at a desk, with every drawer open. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Browser, chromium } from 'playwright-core';
import { chromiumFlags } from './testing/browser.ts';
import { crawlPages } from './testing/crawl-pages.ts';
import { apiOf, signIn } from './testing/people.ts';
import { type Login, type RunningDemo, runDemo } from './testing/run-demo.ts';

describe('every page', () => {
  let demo: RunningDemo;
  let browser: Browser;

  before(async () => {
    demo = await runDemo({ isSimulated: true });
    const api = apiOf(demo.file, demo.file.full_key);
    const network = await api.createNetwork({ name: 'backend' });
    const { servers } = await api.listServers();
    await api.attachServer(servers[0]!.id, { network_id: network.id });
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: chromiumFlags });
  });
  after(async () => {
    await browser?.close();
    await demo?.stop();
  });

  const crawl = async (of: { url: string; path: string; login: Login; within: RegExp }) => {
    const visitor = await signIn(of.url, of.login);
    return crawlPages(browser, { url: of.url + of.path, visitor, within: of.within, pagesMax: 80 });
  };

  test('of the portal: no text runs off, fingers hit, and what destroys asks first', async (t) => {
    const { operations_url: url, customer: login } = demo.file;
    const { pages, drawers, faults } = await crawl({ url, path: '/client/', login, within: /^\/client\// });
    t.diagnostic(`${pages.length} pages, ${drawers} drawers`);
    assert.equal(faults.join('\n'), '');
    assert.ok(pages.length >= 15 && drawers >= 5, `${pages.length} pages, ${drawers} drawers`);
  });

  test("of the operators' console: the same", async (t) => {
    const { operations_url: url, operator: login } = demo.file;
    const { pages, drawers, faults } = await crawl({ url, path: '/console/', login, within: /^\/console\// });
    t.diagnostic(`${pages.length} pages, ${drawers} drawers`);
    assert.equal(faults.join('\n'), '');
    assert.ok(pages.length >= 15 && drawers >= 5, `${pages.length} pages, ${drawers} drawers`);
  });

  test("of the monitor's console: the same", async (t) => {
    const { monitor_url: url, monitor_operator: login } = demo.file;
    const { pages, drawers, faults } = await crawl({
      url,
      path: '/',
      login,
      within: /^\/(?!assets|agent|api|sign-out)/,
    });
    t.diagnostic(`${pages.length} pages, ${drawers} drawers`);
    assert.equal(faults.join('\n'), '');
    assert.ok(pages.length >= 15 && drawers >= 3, `${pages.length} pages, ${drawers} drawers`);
  });
});
