/** The browser of tests. */
import { existsSync } from 'node:fs';
import type { Browser } from 'playwright-core';

/** Debian's headless shell: the same engine, for a third of the processor time of the whole Chromium. */
const shell = '/usr/lib/chromium/chromium-headless-shell';

/** Looked for at each launch: a first run installs it. */
const options = () => ({
  executablePath: existsSync(shell) ? shell : '/usr/bin/chromium',
  // Without a window and without requests of its own.
  args: [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});

/** Loaded at each launch: it takes a third of a second, and most runs of single files and all runs of checks open no page. */
const loadChromium = async () => (await import('playwright-core')).chromium;

/** The address of a run's browser, in the environment of its tests. */
const sharedAddress = 'SVC_TEST_BROWSER';

/** Starts one Chromium for all tests that this process starts. */
export async function shareBrowser(): Promise<AsyncDisposable> {
  const server = await (await loadChromium()).launchServer(options());
  process.env[sharedAddress] = server.wsEndpoint();
  return { [Symbol.asyncDispose]: () => server.close() };
}

/** Opens the run's browser, where nothing of another test is seen; Debian's Chromium, started for this test, without one. */
export async function launchBrowser(): Promise<Browser> {
  const chromium = await loadChromium();
  const address = process.env[sharedAddress];
  return await (address ? chromium.connect(address) : chromium.launch(options()));
}
