/** Opens pages in a browser, on a phone, and reports errors. */
import type { Browser } from 'playwright-core';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import type { Visitor } from './people.ts';

export interface Visit {
  url: string;
  visitor: Visitor;
  /** Text that must be on the page. */
  shows: string;
}

/** Returns every error of the browser, each request to another host, and what is wider than its window. */
export async function visitPages(visits: readonly Visit[]): Promise<string[]> {
  const browser = await launchBrowser();
  try {
    const faults: string[] = [];
    for (const visit of visits) faults.push(...(await visitPage(browser, visit)));
    return faults;
  } finally {
    await browser.close();
  }
}

async function visitPage(browser: Browser, { url, visitor, shows }: Visit): Promise<string[]> {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  const { hostname, pathname, origin } = new URL(url);
  await context.addCookies([{ ...visitor.cookie, domain: hostname, path: '/' }]);
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const faults: string[] = [];
  const say = (fault: string) => faults.push(`${pathname}: ${fault}`);
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) say(message.text());
  });
  page.on('pageerror', (error) => say(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin)) say(`asks another host: ${request.url()}`);
  });
  const answer = await page.goto(url, { waitUntil: 'networkidle' });
  if (answer?.status() !== 200) say(`answered ${answer?.status()}`);
  const text = await page.locator('body').innerText();
  if (!text.includes(shows)) say(`does not show "${shows}"`);
  const tooWide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  if (Number(tooWide) > 0) say(`is ${tooWide} px wider than its window`);
  await context.close();
  return faults;
}
