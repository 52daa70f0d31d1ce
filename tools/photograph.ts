/**
 * Photographs pages for page development: each at 1440 and 390 px, light and dark, as PNG files.
 *
 * usage: sh tools/with-node tools/photograph.ts [--out DIR] [--email E --password P] [--sign-in URL] [--viewport] URL ...
 *
 * With an email it signs in first, at /sign-in of the first URL's server. Besides the pictures it says what a glance
 * misses: a page wider than its window, messages of the browser's console, refused policies, and a
 * page of more than 150 KiB as they were sent.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BrowserContext, Page } from 'playwright-core';
import { launchBrowser } from '#service-kit/testing/browser.ts';

const WIDTHS = [1440, 390] as const;
const SCHEMES = ['light', 'dark'] as const;

interface Options {
  urls: string[];
  out: string;
  isViewportOnly: boolean;
  signIn?: { url: string; email: string; password: string };
}

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      out: { type: 'string', default: 'data/pictures' },
      email: { type: 'string' },
      password: { type: 'string' },
      'sign-in': { type: 'string' },
      viewport: { type: 'boolean', default: false },
    },
  });
  const first = positionals[0];
  if (first === undefined) throw new Error('Name at least one URL.');
  const options: Options = { urls: positionals, out: values.out, isViewportOnly: values.viewport };
  if (values.email === undefined) return options;
  if (values.password === undefined) throw new Error('--email needs --password.');
  const url = values['sign-in'] ?? new URL('/sign-in', first).href;
  return { ...options, signIn: { url, email: values.email, password: values.password } };
}

async function signIn(context: BrowserContext, login: NonNullable<Options['signIn']>): Promise<void> {
  const page = await context.newPage();
  await page.goto(login.url);
  await page.fill('input[name="email"]', login.email);
  await page.fill('input[name="password"]', login.password);
  await Promise.all([
    page.waitForURL((url) => url.href !== login.url),
    page.press('input[name="password"]', 'Enter'),
  ]);
  await page.close();
}

async function photograph(page: Page, url: string, path: string, isViewportOnly: boolean): Promise<string[]> {
  const remarks: string[] = [];
  const sizes: Promise<number>[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) remarks.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => remarks.push(`script: ${error.message}`));
  page.on('response', (response) => {
    const size = response.request().sizes();
    sizes.push(size.then((all) => all.responseBodySize).catch(() => 0));
  });
  await page.goto(url, { waitUntil: 'networkidle' });
  const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  if (Number(wide) > 0) remarks.push(`the page is ${wide} px wider than its window`);
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  if (bytes > 150 * 1024) remarks.push(`weighs ${Math.round(bytes / 1024)} KiB, more than 150`);
  await page.screenshot({ path, fullPage: !isViewportOnly });
  return remarks;
}

/** `/sites/3/traffic?range=1h` becomes `sites-3-traffic-range-1h`. */
function nameOf(url: string): string {
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '') || 'index';
}

async function main(): Promise<void> {
  const options = readOptions();
  await mkdir(options.out, { recursive: true });
  const browser = await launchBrowser();
  try {
    for (const scheme of SCHEMES) {
      for (const width of WIDTHS) {
        const context = await browser.newContext({
          viewport: { width, height: width === 390 ? 844 : 900 },
          colorScheme: scheme,
        });
        if (options.signIn) await signIn(context, options.signIn);
        for (const url of options.urls) {
          const page = await context.newPage();
          const path = join(options.out, `${nameOf(url)}-${width}-${scheme}.png`);
          const remarks = await photograph(page, url, path, options.isViewportOnly);
          console.log([path, ...remarks.map((remark) => `  ! ${remark}`)].join('\n'));
          await page.close();
        }
        await context.close();
      }
    }
  } finally {
    await browser.close();
  }
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
