// Slow: looks at a hundred and fifty pages in a browser, when the demo has minutes to show.
/** Every page of the portal and of both consoles, at phone and desktop width, with every drawer open. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import { crawlPages } from './testing/crawl-pages.ts';
import { apiOf, signIn } from './testing/people.ts';
import type { Login, RunningDemo } from './testing/run-demo.ts';
import { shareDemo } from './testing/shared-demo.ts';

const shared = shareDemo();

describe('every page', () => {
  let demo: RunningDemo;
  let browser: Browser;

  before(async () => {
    demo = await shared.start();
    const api = apiOf(demo.file, demo.file.full_key);
    const network = await api.createNetwork({ name: 'office' });
    // The demo's own server, whose pages are the first that are linked.
    const { id } = (await api.listServers()).servers.toSorted((a, b) => a.id - b.id)[0]!;
    await api.attachServer(id, { network_id: network.id });
    // Deleting a rule or a card asks for confirmation, so there must be one of each.
    const customer = await signIn(demo.file.operations_url, demo.file.customer);
    await customer.submit(`/client/servers/${id}/firewall`, 'add', {
      ...{ direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '22' },
      ...{ peers: '198.51.100.0/24', description: 'from the office' },
    });
    await customer.submit('/client/billing/', 'cards/test', { number: '4242424242424242' });
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await shared.stop();
  });

  const crawl = async (of: { url: string; path: string; login: Login; within: RegExp }) => {
    const visitor = await signIn(of.url, of.login);
    return crawlPages(browser, { url: of.url + of.path, visitor, within: of.within });
  };

  test('of the portal: no overflow, large enough targets, and confirmation before deletion', async (t) => {
    const { operations_url: url, customer: login } = demo.file;
    const { pages, drawers, faults } = await crawl({ url, path: '/client/', login, within: /^\/client\// });
    t.diagnostic(`${pages.length} pages, ${drawers} drawers`);
    assert.equal(faults.join('\n'), '');
    assert.ok(pages.length >= 15 && drawers >= 7, `${pages.length} pages, ${drawers} drawers`);
    const visitor = await signIn(url, login);
    for (const [page, action] of [
      [pages.find((one) => one.endsWith('/firewall')), '/firewall/remove'],
      [pages.find((one) => one.endsWith('/client/billing/')), '/billing/cards/remove'],
    ] as const) {
      assert.ok(page, `no page with ${action} was looked at`);
      const { text } = await visitor.get(new URL(page, url).pathname);
      assert.ok(text.includes(`${action}"`), `${page} has no button for ${action}`);
    }
  });

  test("of the operators' console: the same", async (t) => {
    const { operations_url: url, operator: login } = demo.file;
    // Pages of the reference are the same as the portal's.
    const within = /^\/console\/(?!.*\/docs\/\w)/;
    const { pages, drawers, faults } = await crawl({ url, path: '/console/', login, within });
    t.diagnostic(`${pages.length} pages, ${drawers} drawers`);
    assert.equal(faults.join('\n'), '');
    assert.ok(pages.length >= 15 && drawers >= 5, `${pages.length} pages, ${drawers} drawers`);
  });

  test("of the monitor's console: the same", async (t) => {
    const { monitor_url: url, monitor_operator: login } = demo.file;
    // Pages of addresses, captures and applications are linked where there is something to show.
    await demo.until('the monitor has two minutes of each capture', 240_000, async () => {
      const text = 'select 1 from capture_minutes group by capture_id having count(*) >= 2';
      return (await demo.query('monitor', text)).length > 0;
    });
    const { pages, drawers, faults } = await crawl({
      url,
      path: '/',
      login,
      within: /^\/(?!assets|agent|api|sign-out)/,
    });
    t.diagnostic(`${pages.length} pages, ${drawers} drawers`);
    assert.equal(faults.join('\n'), '');
    assert.ok(pages.length >= 45 && drawers >= 3, `${pages.length} pages, ${drawers} drawers`);
  });
});
