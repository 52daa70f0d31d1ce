import assert from 'node:assert/strict';
import { test } from 'node:test';
import { follow } from './follow.ts';

const origin = 'http://127.0.0.1:1';

test('one page of each kind is opened, none of another server, none that ends the session', () => {
  const pages = follow([`${origin}/client/`], /\/sign-out/);
  const opened: string[] = [];
  const links: Record<string, string[]> = {
    '/client/': [
      '/client/servers/1',
      '/client/servers/2#top',
      '/client/servers?sort=name',
      '/sign-out',
      'http://other.test/',
    ],
    '/client/servers/1': [
      '/client/',
      '/client/servers/1/traffic?range=1h',
      '/client/servers/2/traffic?range=2h',
    ],
    // What a page with a query leads to is another order or range of it.
    '/client/servers/1/traffic?range=1h': ['/client/servers/1/traffic?range=1h&top=5'],
  };
  for (let url = pages.next(); url !== null; url = pages.next()) {
    const path = url.slice(origin.length);
    opened.push(path);
    pages.found(
      (links[path] ?? []).map((href) => new URL(href, url!).href),
      url,
    );
  }
  assert.deepEqual(opened, [
    '/client/',
    '/client/servers/1',
    '/client/servers?sort=name',
    '/client/servers/1/traffic?range=1h',
  ]);
});
