/** A person who uses pages by keyboard only: moves with Tab, types, and presses Enter. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import { until } from '#service-kit/testing/until.ts';

export interface KeyboardUser extends AsyncDisposable {
  readonly page: Page;
  /** Errors of the browser: console, scripts, content security policy. */
  readonly complaints: string[];
  /** Opens an address, as from the browser's address line. */
  open(url: string): Promise<void>;
  /** Presses keys one after the other: `press('g', 's')`. */
  press(...keys: string[]): Promise<void>;
  /** Presses Tab until the element with this name has the focus; fails after one round without it. */
  tabTo(name: RegExp): Promise<void>;
  /** Moves the focus there, presses Enter, and waits for the next page. */
  enter(name: RegExp): Promise<void>;
  /** Moves the focus to a field and replaces its text. */
  fill(label: RegExp, text: string): Promise<void>;
  /** The page's text. */
  text(): Promise<string>;
  /** Reloads the page until it shows this text. */
  waitFor(shown: RegExp): Promise<void>;
  /** Number of clicks and touches so far. */
  pointerEvents(): Promise<number>;
}

/** The name of the focused element, as for a screen reader. */
const focusedName = `(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return '';
  return (e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || e.value || '').trim();
})()`;
const countPointers = `for (const type of ['pointerdown', 'mousedown', 'touchstart'])
  addEventListener(type, () => sessionStorage.setItem('pointers', Number(sessionStorage.getItem('pointers')) + 1), true);
addEventListener('securitypolicyviolation', (e) => console.error('policy refused ' + e.blockedURI));`;
const stopsMax = 400;

export async function startKeyboardUser(): Promise<KeyboardUser> {
  const browser = await launchBrowser();
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(120_000);
  await page.addInitScript(countPointers);
  const complaints: string[] = [];
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  // Sent without a pause: pages forget a first key after a second or two.
  const press = async (...keys: string[]) => {
    await Promise.all(keys.map((key) => page.keyboard.press(key)));
  };
  const tabTo = async (name: RegExp) => {
    for (let stops = 0; stops < stopsMax; stops += 1) {
      await page.keyboard.press('Tab');
      if (name.test(await page.evaluate<string>(focusedName))) return;
    }
    assert.fail(`no Tab leads to ${name} on ${page.url()}`);
  };
  const text = () => page.locator('body').innerText();
  return {
    page,
    complaints,
    async open(url) {
      await page.goto(url, { waitUntil: 'load' });
    },
    press,
    tabTo,
    async enter(name) {
      await tabTo(name);
      await Promise.all([page.waitForEvent('framenavigated'), page.keyboard.press('Enter')]);
      await page.waitForLoadState('load');
    },
    async fill(label, value) {
      await tabTo(label);
      await press('ControlOrMeta+a');
      await page.keyboard.type(value);
    },
    text,
    async waitFor(shown) {
      await until(`the page shows ${shown}`, 120_000, async () => {
        if (shown.test(await text())) return true;
        // Like F5; the protocol has no key for the browser's own commands.
        await page.reload({ waitUntil: 'load' });
        return false;
      });
    },
    pointerEvents: () => page.evaluate<number>("Number(sessionStorage.getItem('pointers'))"),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}
