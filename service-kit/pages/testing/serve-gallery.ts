/** The gallery of all parts of pages, served to a browser. */
import type { BrowserContextOptions, Page } from 'playwright-core';
import { silentReporter } from '#common/reporter/index.ts';
import { createHttpServer } from '#service-kit/http/index.ts';
import { launchBrowser } from '#service-kit/testing/browser.ts';
import { registerAssets, registerGallery } from '../index.ts';
import { openPage } from './open-page.ts';

export type ServedGallery = Awaited<ReturnType<typeof serveGallery>>;

export async function serveGallery() {
  const server = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) => {
      registerAssets(app);
      registerGallery(app);
    },
  });
  await server.start();
  const browser = await launchBrowser();
  return {
    /** Without a slash at its end. */
    url: server.url,
    open: (path: string, options?: BrowserContextOptions, prepare?: (page: Page) => Promise<unknown>) =>
      openPage(browser, `${server.url}${path}`, options, prepare),
    stop: async () => {
      await browser.close();
      await server.stop();
    },
  };
}
