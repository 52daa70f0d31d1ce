// Slow: drives a real browser.
/** The command palette in a real browser: by keyboard, by roles, on a phone, and with nothing left to the next person. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { silentReporter } from '#common/reporter/index.ts';
import { createHttpServer, type HttpServer } from '#service-kit/http/index.ts';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import * as pages from './index.ts';
import { openPage } from './testing/open-page.ts';

let server: HttpServer;
let browser: Browser;
const questions: string[] = [];

/** A page of a signed-in session; the same browser may come back with another. */
function page(title: string, csrfToken: string) {
  return pages.shell(
    {
      area: 'Test',
      home: '/',
      title,
      navigation: [
        {
          items: [
            { label: 'Servers', href: '/', key: 's' },
            { label: 'Billing', href: '/billing', key: 'b' },
          ],
        },
      ],
      breadcrumb: [{ label: 'Servers', href: '/' }, { label: title }],
      search: { action: '/', placeholder: 'Find a server' },
      palette: { url: '/palette', actions: [{ label: 'Deploy a server', href: '/deploy' }] },
      person: { name: 'Ada' },
      csrfToken,
    },
    pages.pageHeader({
      title,
      actions: [
        pages.link('/reboot', 'Reboot', { kind: 'button' }),
        title === 'new' ? pages.link('/deploy', 'Deploy one more', { kind: 'button' }) : '',
      ],
    }),
  );
}

before(async () => {
  server = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) => {
      pages.registerAssets(app);
      app.get('/palette', async (request, reply) => {
        const { q = '' } = request.query as { q?: string };
        questions.push(q);
        const text = '<b>web-1</b>';
        return pages.sendPaletteHits(
          reply,
          'web-1'.startsWith(q) ? [{ kind: 'Servers', text, detail: 'running web', href: '/servers/1' }] : [],
        );
      });
      app.get('/sign-in', async (_, reply) => pages.sendPage(reply, pages.signInPage({ area: 'Test' })));
      app.get('*', async (request, reply) => {
        const { as = 'one' } = request.query as { as?: string };
        const path = request.url.split('?')[0]!;
        return pages.sendPage(reply, page(path === '/' ? 'Servers' : path.slice(1), `token of ${as}`));
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

const open = (path = '/', options = {}) => openPage(browser, `${server.url}${path}`, options);
const field = (page: Page) => page.getByRole('combobox');
const texts = (page: Page) => page.locator('.palette-option > :first-child').allTextContents();
const activeText = (page: Page) => page.locator('[aria-selected="true"] > :first-child').textContent();

describe('command palette', () => {
  test('what the page and every page offers stands there once, and leads there', async () => {
    await using opened = await open('/new');
    const { page } = opened;
    await page.keyboard.press('Control+k');
    await field(page).fill('deploy');
    await page.locator('.palette-option', { hasText: 'Deploy one more' }).waitFor();
    assert.equal((await texts(page)).filter((text) => text.startsWith('Deploy')).length, 1);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/deploy');
    assert.deepEqual(opened.complaints, []);
  });

  test('what is typed before its script has come is its text, and no key of the page', async () => {
    const held = Promise.withResolvers<void>();
    // Before the page is there: a page that is loaded may send its next request past a new route.
    const hold = (page: Page) =>
      page.route(/palette\.js/, async (route) => {
        await held.promise;
        await route.continue();
      });
    await using opened = await openPage(browser, `${server.url}/`, {}, hold);
    const { page } = opened;
    await page.keyboard.press('Control+k');
    // As one types on: `g s` would go to the servers.
    await page.keyboard.type('gs');
    for (const key of ['Control+k', 'w', 'e']) await page.keyboard.press(key);
    held.resolve();
    await field(page).waitFor();
    assert.equal(await field(page).inputValue(), 'gswe');
    assert.equal(new URL(page.url()).pathname, '/');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('we');
    await page.locator('.palette-option', { hasText: 'web-1' }).waitFor();
    assert.deepEqual(opened.complaints, []);
  });

  test('Ctrl-K opens it, arrows move, Enter goes there; the focus stays in the field', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.keyboard.press('Control+k');
    await field(page).waitFor();
    assert.equal(await activeText(page), 'Servers');
    await page.keyboard.press('ArrowDown');
    assert.equal(await activeText(page), 'Billing');
    assert.equal(await page.evaluate("document.activeElement.getAttribute('role')"), 'combobox');
    const id = await field(page).getAttribute('aria-activedescendant');
    assert.equal(await page.locator(`#${id}`).getAttribute('aria-selected'), 'true');
    assert.equal(await page.locator('[role="listbox"] [role="group"]').count(), 2);
    await Promise.all([page.waitForURL('**/billing'), page.keyboard.press('Enter')]);
    assert.deepEqual(opened.complaints, []);
  });

  test('what is typed is asked of the server once it rests; what is found is text, not markup', async () => {
    await using opened = await open();
    const { page } = opened;
    questions.length = 0;
    await page.keyboard.press('Control+k');
    await field(page).waitFor();
    // Faster than any pause between keys, on every machine.
    await page.evaluate(`(() => {
      const field = document.activeElement;
      for (const text of ['w', 'we', 'web']) {
        field.value = text;
        field.dispatchEvent(new Event('input', { bubbles: true }));
      }
    })()`);
    await page.getByRole('option', { name: '<b>web-1</b>' }).waitFor();
    assert.deepEqual(questions, ['web']);
    assert.equal(await page.locator('.palette-option b').count(), 0);
    await Promise.all([page.waitForURL('**/servers/1'), page.keyboard.press('Enter')]);
  });

  test('pages, actions of this page and of everywhere are found by their words; the rest is a search', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.keyboard.press('Control+k');
    await field(page).fill('reb');
    assert.deepEqual((await texts(page))[0], 'Reboot');
    await field(page).fill('deploy');
    assert.deepEqual(await texts(page), ['Deploy a server', 'All results for “deploy”']);
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowUp');
    await Promise.all([page.waitForURL('**/?q=deploy'), page.keyboard.press('Enter')]);
  });

  test('pages visited in this session come first; another session at the same browser finds none of them', async () => {
    await using opened = await open('/servers/7');
    const { page } = opened;
    await page.goto(`${server.url}/`);
    await page.keyboard.press('Control+k');
    await field(page).waitFor();
    assert.deepEqual(await page.locator('.palette-kind').first().textContent(), 'Recent');
    assert.equal((await texts(page))[0], 'servers/7');
    await page.goto(`${server.url}/?as=two`);
    await page.keyboard.press('Control+k');
    await field(page).waitFor();
    assert.equal(await page.locator('.palette-kind').first().textContent(), 'Pages');
    assert.doesNotMatch((await page.evaluate<string>("localStorage.getItem('recent')")) ?? '', /servers\/7/);
    await page.goto(`${server.url}/servers/8?as=two`);
    await page.goto(`${server.url}/sign-in`);
    assert.equal(await page.evaluate("localStorage.getItem('recent')"), null);
  });

  test('? lists the keys, and types a question mark inside a field; Escape closes and gives the focus back', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.locator('[data-search]').focus();
    await page.keyboard.type('a?');
    assert.equal(await page.locator('[data-search]').inputValue(), 'a?');
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    await keys.waitFor();
    assert.match(await keys.innerText(), /g b\s+Billing/);
    await page.keyboard.press('Escape');
    assert.equal(await keys.isVisible(), false);
    await page.getByRole('button', { name: /^Go to a page/ }).focus();
    await page.keyboard.press('Enter');
    await field(page).waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate("document.activeElement.hasAttribute('data-palette')"), true);
  });

  test('on a phone a button opens it, and its options are large enough for a finger', async () => {
    await using opened = await open('/', { viewport: { width: 390, height: 844 } });
    const { page } = opened;
    assert.equal(await page.locator('[data-search]').isVisible(), false);
    await page.getByRole('button', { name: /^Go to a page/ }).click();
    await field(page).waitFor();
    const box = (await page.getByRole('option').first().boundingBox())!;
    assert.ok(box.height >= 44, `${box.height} px`);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  });

  test('without JavaScript the search form is there and the button is not', async () => {
    await using opened = await open('/', { javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
    assert.equal(await opened.page.locator('[data-search]').isVisible(), true);
    assert.equal(await opened.page.locator('[data-palette]').isVisible(), false);
  });
});
