/**
 * Follows the links of a site as one person, in a real browser at the widths of a phone, a tablet and a desk, and reports layout
 * errors: overflowing text and tables, also in drawers, targets too small for a finger, markup shown as text, and delete buttons without
 * confirmation; and what axe finds for people who don't see or don't point (WCAG 2.2).
 */
import { readFileSync } from 'node:fs';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import type { Visitor } from './people.ts';

export interface Crawl {
  /** Start URL; links to other hosts are not followed. */
  url: string;
  visitor: Visitor;
  /** Only these paths. */
  within: RegExp;
}

export interface CrawlResult {
  /** Visited paths. */
  pages: string[];
  drawers: number;
  faults: string[];
}

/** A function that runs in the page. */
const findFaults = readFileSync(new URL('./find-page-faults.js', import.meta.url), 'utf8')
  .replace(/^\/\/.*\n/gm, '')
  .trim()
  .replace(/^export default /, '');

/** Contrast takes as long as all other rules; the colours of both schemes have a test (`service-kit/pages`). */
const axeOptions = { resultTypes: ['violations'], rules: { 'color-contrast': { enabled: false } } };

const phone = { width: 390, height: 844 };
const desk = { width: 1440, height: 900 };
const tablet = { width: 1024, height: 768 };
/** Buttons that end or delete something; "Close" of a drawer is an ×. */
const destructive =
  /^(Remove|Detach|Deactivate|Close|Revoke|Delete|Destroy|Power off|Shut down|Reboot|Reset|Suspend|Switch off|End|Stop retrying)\b(?! ignor)/;

/**
 * What is to be seen in this address: its page, and each parameter of the page once. Ids, ranges and orders would lead to
 * endless links.
 */
function kindsOf({ pathname, searchParams }: URL): string[] {
  const page = pathname
    .replace(/\/(\d+|CVE-[\d-]+)(?=\/|$)/g, '/#')
    .replace(/\/[0-9a-f.:%]{7,}(?=\/|$)/gi, '/#');
  return [page, ...[...searchParams.keys()].map((name) => `${page} ${name}`)];
}

export async function crawlPages(browser: Browser, crawl: Crawl): Promise<CrawlResult> {
  const context = await browser.newContext({ viewport: phone });
  const start = new URL(crawl.url);
  await context.addCookies([{ ...crawl.visitor.cookie, domain: start.hostname, path: '/' }]);
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const found: CrawlResult = { pages: [], drawers: 0, faults: [] };
  const seen = new Set(kindsOf(start));
  const waiting = [start];
  const asked = new Set<string>();
  while (waiting.length > 0) {
    const url = waiting.shift()!;
    const answer = await page.goto(url.href, { waitUntil: 'load' });
    if (!(answer?.headers()['content-type'] ?? '').startsWith('text/html')) continue;
    found.pages.push(url.pathname);
    if (answer!.status() >= 400) found.faults.push(`${url.pathname} answers ${answer!.status()}`);
    const [kind] = kindsOf(url) as [string];
    const isNew = !asked.has(kind);
    // What a parameter adds shows on the narrowest and the widest.
    for (const size of isNew ? [phone, tablet, desk] : [phone, desk]) {
      await page.setViewportSize(size);
      const look = await lookAt(page, size === phone);
      found.drawers += size === phone ? look.drawers : 0;
      found.faults.push(...look.faults.map((fault) => `${url.pathname} (${size.width} px): ${fault}`));
    }
    if (isNew) found.faults.push(...(await askAxe(page)).map((fault) => `${url.pathname}: ${fault}`));
    asked.add(kind);
    await page.setViewportSize(phone);
    for (const href of await page.evaluate<string[]>('[...document.links].map((one) => one.href)')) {
      const next = new URL(href);
      next.hash = '';
      if (next.origin !== start.origin || !crawl.within.test(next.pathname)) continue;
      const isFile = next.searchParams.has('format') || /\.(csv|json)$/.test(next.pathname);
      const kinds = kindsOf(next);
      if (isFile || kinds.every((kind) => seen.has(kind))) continue;
      for (const kind of kinds) seen.add(kind);
      waiting.push(next);
    }
  }
  await context.close();
  return found;
}

function lookAt(page: Page, isPhone: boolean): Promise<{ drawers: number; faults: string[] }> {
  return page.evaluate(`(${findFaults})(${isPhone}, ${destructive.toString()})`);
}

function askAxe(page: Page): Promise<string[]> {
  return page.evaluate(`${axe.source};
    axe.run(document, ${JSON.stringify(axeOptions)}).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`);
}
