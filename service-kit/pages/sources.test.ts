/**
 * What escaping can't catch is caught in the sources: every file that writes markup, in both servers, keeps its
 * attributes quoted, its addresses checked, and its scripts and styles in files of their own.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

const rules: { name: string; pattern: RegExp; planted: string }[] = [
  {
    name: 'an attribute without quotes',
    pattern: /<[a-z][^<>`]*\s[a-z-]+=\$\{/,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what the rule looks for
    planted: 'html`<a title=${title}>`',
  },
  {
    name: 'an address that neither safeHref nor assetUrl has checked',
    pattern: /\s(href|src|action|formaction|hx-get|hx-post)="\$\{(?!safeHref\(|assetUrl\()/,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what the rule looks for
    planted: 'html`<a href="${url}">`',
  },
  {
    name: 'an inline style or handler',
    pattern: /<[a-z][^<>`]*\s(style|on[a-z]+)="/,
    planted: '<p class="x" onclick="y()">',
  },
  {
    name: 'an inline script or style element',
    pattern: /<(script|style)>/,
    planted: 'html`<script>x</script>`',
  },
  {
    name: 'markup that escapes nothing',
    pattern: /from 'hono|(?<!\.)\braw\(|trustedHtml\(/,
    planted: "import { raw } from 'hono/html';",
  },
];

/** The one file that may use what the last rule forbids. */
const htmlFile = 'service-kit/pages/html.ts';

function sources(): string[] {
  return ['operations', 'monitor', 'service-kit'].flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
      // Test doubles of other products are not checked.
      .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.includes('/testing/'))
      .map((path) => `${folder}/${path}`),
  );
}

describe('sources of pages', () => {
  const texts = sources().map((path) => ({ path, text: readFileSync(`${root}${path}`, 'utf8') }));

  test('files that write markup are found in both servers', () => {
    for (const folder of ['operations/', 'monitor/', 'service-kit/pages/']) {
      assert.ok(
        texts.some(({ path, text }) => path.startsWith(folder) && text.includes('html`')),
        folder,
      );
    }
  });

  for (const { name, pattern, planted } of rules) {
    test(`no source writes ${name}`, () => {
      assert.match(planted, pattern, 'the rule misses its planted offender');
      const offenders = texts.filter(({ path, text }) => path !== htmlFile && pattern.test(text));
      assert.deepEqual(
        offenders.map(({ path }) => path),
        [],
      );
    });
  }
});
