/** A page in a browser of its own, with everything that the browser complains about. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

export type OpenedPage = Awaited<ReturnType<typeof openPage>>;

/** Opens an address at 1440 px, light, unless told otherwise; `prepare` runs before the page is asked for. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  prepare?: (page: Page) => Promise<unknown>,
) {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    colorScheme: 'light',
    ...options,
  });
  const page = await context.newPage();
  // A busy machine may be slow; it is no failure of the pages.
  page.setDefaultTimeout(120_000);
  const complaints: string[] = [];
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  if (options.javaScriptEnabled !== false) {
    await page.addInitScript(
      "addEventListener('securitypolicyviolation', (e) => console.error('policy refused ' + e.blockedURI + ' ' + e.violatedDirective))",
    );
  }
  await prepare?.(page);
  await page.goto(url, { waitUntil: 'load' });
  return {
    page /** Messages of the console, script errors and refusals of the policy. */,
    complaints,
    [Symbol.asyncDispose]: () => context.close(),
  };
}
