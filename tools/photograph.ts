/**
 * Photographs pages for page development: each at 1440 and 390 px, light and dark, as PNG files.
 *
 * usage: sh tools/with-node tools/photograph.ts [--out DIR] [--email E --password P] [--sign-in URL] [--viewport]
 *          [--follow] [--wrong-input] [--sheets] URL ...
 *
 * With an email it signs in first, at /sign-in of the first URL's server. `--follow` also opens the pages that links lead to,
 * one of each kind. `--wrong-input` sends every form that has a field with input that can't be right, and photographs the answer:
 * on a demo, not on an installation that someone uses. `--sheets` puts the pictures together, many on one.
 *
 * Besides the pictures it says what a glance misses: a page wider than its window, text that is too pale, messages of the
 * browser's console, refused policies, and a page of more than 150 KiB as they were sent.
 */
import { mkdir } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { BrowserContext, Page } from 'playwright-core';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import { follow } from './photograph/follow.ts';
import { nameOf, open, type Picture, photograph, sizeOf, widths } from './photograph/looks.ts';
import { makeSheets } from './photograph/sheets.ts';
import { listForms, sendWrongly } from './photograph/wrong-input.ts';

interface Options {
  urls: string[];
  folder: string;
  isViewportOnly: boolean;
  isFollowing: boolean;
  hasWrongInput: boolean;
  hasSheets: boolean;
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
      follow: { type: 'boolean', default: false },
      'wrong-input': { type: 'boolean', default: false },
      sheets: { type: 'boolean', default: false },
    },
  });
  const first = positionals[0];
  if (first === undefined) throw new Error('Name at least one URL.');
  const options: Options = {
    urls: positionals,
    folder: values.out,
    isViewportOnly: values.viewport,
    isFollowing: values.follow,
    hasWrongInput: values['wrong-input'],
    hasSheets: values.sheets,
  };
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

/** What ends the session, or another's, is not followed and not sent. */
const without = /\/sign-out|\/sign-in|\/sessions|\/logout/;

/** One run: the pages, their pictures and what is wrong with them, said as they come. */
function createRun(context: BrowserContext, options: Options) {
  const pictures: Picture[] = [];
  const { folder, isViewportOnly } = options;
  const sent = new Set<string>();

  async function visit(url: string): Promise<string[]> {
    const remarks = new Set<string>();
    let hrefs: string[] = [];
    for (const width of widths) {
      const page = await context.newPage();
      for (const remark of await open(page, url, width)) remarks.add(remark);
      const of = { name: nameOf(url), width, folder, isViewportOnly };
      const found = await photograph(page, of);
      pictures.push(...found.pictures);
      for (const remark of found.remarks) remarks.add(`${width}: ${remark}`);
      hrefs = (await page.evaluate('[...document.links].map((link) => link.href)')) as string[];
      if (options.hasWrongInput && width === widths[0]) await sendForms(page, url);
      await page.close();
    }
    say(url, remarks);
    return hrefs;
  }

  async function sendForms(page: Page, url: string): Promise<void> {
    for (const form of await listForms(page)) {
      // The same form on many pages of a kind is sent once.
      const kind = form.action.replace(/\d+/g, '#');
      if (without.test(form.action) || sent.has(kind)) continue;
      sent.add(kind);
      await page.setViewportSize(sizeOf(widths[0]));
      await page.goto(url, { waitUntil: 'networkidle' });
      const remarks = new Set<string>();
      const status = await sendWrongly(page, form.index).catch(
        (error: Error) => error.message.split('\n')[0],
      );
      remarks.add(`answered ${status}`);
      const name = `wrong-${nameOf(new URL(form.action, url).href)}`;
      for (const width of widths) {
        const found = await photograph(page, { name, width, folder, isViewportOnly });
        pictures.push(...found.pictures);
        for (const remark of found.remarks) remarks.add(`${width}: ${remark}`);
      }
      say(`POST ${form.action}`, remarks);
    }
  }

  return { pictures, visit };
}

function say(what: string, remarks: ReadonlySet<string>): void {
  console.log([what, ...[...remarks].map((remark) => `  ! ${remark}`)].join('\n'));
}

async function main(): Promise<void> {
  const options = readOptions();
  await mkdir(options.folder, { recursive: true });
  const browser = await launchBrowser();
  try {
    const context = await browser.newContext();
    if (options.signIn) await signIn(context, options.signIn);
    const run = createRun(context, options);
    const pages = follow(options.urls, without);
    for (let url = pages.next(); url !== null; url = pages.next()) {
      const hrefs = await run.visit(url).catch((error: Error) => {
        say(url!, new Set([`can't be looked at: ${error.message.split('\n')[0]}`]));
        return [];
      });
      if (options.isFollowing) pages.found(hrefs, url);
    }
    if (options.hasSheets)
      for (const path of await makeSheets(browser, run.pictures, options.folder)) console.log(path);
  } finally {
    await browser.close();
  }
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
