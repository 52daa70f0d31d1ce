/** The browser of tests. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Debian's headless shell: the same engine, for a third of the processor time of the whole Chromium. */
const shell = '/usr/lib/chromium/chromium-headless-shell';

/** Starts Debian's Chromium without a window and without requests of its own; the shell where it is installed. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: existsSync(shell) ? shell : '/usr/bin/chromium',
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
}
