/** Opens pages in a browser, takes screenshots, and reports errors. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import type { Visitor } from './people.ts';

export interface Visit {
  url: string;
  visitor: Visitor;
  /** Text that must be on the page. */
  shows: string;
}

const pictures = fileURLToPath(new URL('../../.cache/pictures', import.meta.url));
const looks = [
  { name: 'light', colorScheme: 'light', width: 1440, height: 900 },
  { name: 'dark', colorScheme: 'dark', width: 1440, height: 900 },
  { name: 'phone', colorScheme: 'light', width: 390, height: 844 },
] as const;

/**
 * Takes a screenshot of each page in each style into `.cache/pictures`. Returns every error of the browser or of the
 * layout checks.
 */
export async function photographPages(visits: readonly Visit[]): Promise<string[]> {
  mkdirSync(pictures, { recursive: true });
  const browser = await launchBrowser();
  const faults: string[] = [];
  try {
    for (const visit of visits) {
      for (const look of looks) faults.push(...(await visitPage(browser, visit, look)));
    }
  } finally {
    await browser.close();
  }
  return faults;
}

async function visitPage(browser: Browser, visit: Visit, look: (typeof looks)[number]): Promise<string[]> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.height },
    colorScheme: look.colorScheme,
  });
  const { hostname, pathname, origin } = new URL(visit.url);
  await context.addCookies([{ ...visit.visitor.cookie, domain: hostname, path: '/' }]);
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const faults: string[] = [];
  const say = (fault: string) => faults.push(`${pathname} (${look.name}): ${fault}`);
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) say(message.text());
  });
  page.on('pageerror', (error) => say(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin)) say(`asks another host: ${request.url()}`);
  });
  const answer = await page.goto(visit.url, { waitUntil: 'networkidle' });
  if (answer?.status() !== 200) say(`answered ${answer?.status()}`);
  await lookAt(page, visit, say);
  const name = `${pathname}-${look.name}`.replace(/[^a-z0-9]+/gi, '-').replace(/^-/, '');
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
  await context.close();
  return faults;
}

async function lookAt(page: Page, visit: Visit, say: (fault: string) => void): Promise<void> {
  const text = await page.locator('body').innerText();
  if (!text.includes(visit.shows)) say(`does not show "${visit.shows}"`);
  const tooWide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  if (Number(tooWide) > 0) say(`is ${tooWide} px wider than its window`);
}
