// Own process: sets whom the process works for.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readSettings } from '#common/config/index.ts';
import { hasCode } from '#common/errors/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createHttpServer } from '#service-kit/http/index.ts';
import { alonePage, assetUrl, registerAssets } from './index.ts';
import { providerSettings, readProvider, senderOf, useProvider } from './provider.ts';

const folder = mkdtempSync(join(tmpdir(), 'svc-provider-'));
after(() => rmSync(folder, { recursive: true }));
const read = (environment: Record<string, string>) => readSettings(providerSettings, environment);
const file = (name: string, content: string | Buffer) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const svg =
  '<?xml version="1.0"?>\n<!-- ours -->\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';

test('a setting of the provider that does not serve is refused with what to do', () => {
  for (const [name, value, expected] of [
    ['SVC_PROVIDER_NAME', 'Ex"ample', /1 to 60 characters/],
    ['SVC_PROVIDER_NAME', 'x'.repeat(61), /1 to 60 characters/],
    ['SVC_PROVIDER_ACCENT', 'red', /a color such as #b3261e, not "red"/],
    ['SVC_PROVIDER_SUPPORT', 'javascript:alert(1)', /mailto:support@example\.com/],
    ['SVC_PROVIDER_SUPPORT', '/help', /mailto:support@example\.com/],
    ['SVC_PROVIDER_SUPPORT', 'https://', /mailto:support@example\.com/],
    ['SVC_PROVIDER_SUPPORT', 'support@example.com', /mailto:support@example\.com/],
    ['SVC_PROVIDER_TERMS_URL', 'ftp://example.com', /http or https URL/],
  ] as const)
    assert.throws(() => read({ [name]: value }), expected, `${name}=${value}`);
  assert.equal(
    senderOf({ smtpFrom: null, ...read({ SVC_PROVIDER_NAME: ' Ünïted, Ltd ' }) }),
    '"Ünïted, Ltd" <no-reply@localhost>',
  );
});

test('a logo that is none, or too large, is refused with its path', () => {
  for (const [path, expected] of [
    [join(folder, 'missing.svg'), /can't be read/],
    [file('page.svg', '<html><svg></svg></html>'), /neither an SVG nor a PNG/],
    [file('empty.png', ''), /neither an SVG nor a PNG/],
    [file('large.svg', `<svg>${' '.repeat(100_000)}</svg>`), /100011 bytes; at most 100000/],
  ] as const)
    assert.throws(
      () => readProvider(read({ SVC_PROVIDER_LOGO_FILE: path })),
      (error) =>
        hasCode(error, 'config.invalid') && String(error).includes(path) && expected.test(String(error)),
      path,
    );
});

test('the logo stands in place of the name, in the browser’s tab too, and runs no script when it is opened by itself', async () => {
  const logo = file('logo.svg', svg);
  useProvider(readProvider(read({ SVC_PROVIDER_NAME: 'Kestrel', SVC_PROVIDER_LOGO_FILE: logo })));
  const server = await createHttpServer({
    ...{ host: '127.0.0.1', port: 0, portSetting: 'none', reporter: silentReporter },
    routes: registerAssets,
  });
  await server.start();
  try {
    const url = assetUrl('logo');
    const page = String(alonePage({ area: 'Customer portal', title: 'Sign in' }, ''));
    assert.ok(page.includes(`<img class="brand-logo" src="${url}" alt="Kestrel">`), page);
    assert.ok(page.includes(`<link rel="icon" href="${url}">`), page);
    assert.ok(!page.includes('brand-name'), 'the logo says it');
    const answer = await fetch(server.url + url);
    assert.equal(await answer.text(), svg);
    assert.match(answer.headers.get('content-type')!, /^image\/svg\+xml/);
    assert.match(answer.headers.get('content-security-policy')!, /default-src 'none'.*sandbox/);
  } finally {
    await server.stop();
  }
});
