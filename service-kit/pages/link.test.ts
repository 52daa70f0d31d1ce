import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '#common/errors/index.ts';
import { isSafeHref, link, withQuery } from './link.ts';
import { isLocalPath } from './sign-in.page.ts';

describe('link', () => {
  test('addresses that a browser might execute or that leave unseen are refused', () => {
    const refused = [
      'javascript:alert(1)',
      'JaVaScRiPt:alert(1)',
      ' javascript:alert(1)',
      'java\tscript:alert(1)',
      '\u0001javascript:alert(1)',
      'data:text/html,<script>alert(1)</script>',
      'vbscript:x',
      'blob:https://x',
      'file:///etc/passwd',
      '//evil.example/',
      '/\\evil.example',
      '\\\\evil.example',
      '/a\nb',
      '',
      'servers',
      'https:',
      'https:///x',
      'http:evil',
    ];
    for (const href of refused) {
      assert.throws(
        () => link(href, 'x'),
        (error) => hasCode(error, 'pages.unsafe_link'),
        JSON.stringify(href),
      );
    }
  });

  test('paths, queries, fragments, web and mail addresses pass', () => {
    for (const href of [
      '/',
      '/client/servers/3?a=1&b=2#x',
      '?range=1h',
      '#content',
      'https://example.net/a',
      'mailto:a@example.net',
    ]) {
      assert.equal(isSafeHref(href), true, href);
    }
  });

  test('every accepted link is http, https, mailto or this server to a browser', () => {
    const part = fc.constantFrom(
      'javascript',
      ':',
      '/',
      '\\',
      '\t',
      '\n',
      ' ',
      'data',
      'http',
      's',
      '//',
      '?',
      '#',
      'a',
      '@',
      '\u0000',
      '&colon;',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const href = parts.join('');
        if (!isSafeHref(href)) return;
        const seen = new URL(href, 'https://svc.example/page');
        assert.ok(['http:', 'https:', 'mailto:'].includes(seen.protocol), href);
        if (!/^[a-z]+:/i.test(href)) assert.equal(seen.host, 'svc.example', href);
      }),
      { numRuns: 3000, seed: 1 },
    );
  });

  test('the address and the text are escaped inside quotes', () => {
    const made = String(link('/a?x="><b>', '<i>', { label: '"' }));
    assert.equal(made, '<a href="/a?x=&quot;&gt;&lt;b&gt;" class="link" aria-label="&quot;">&lt;i&gt;</a>');
  });

  test('withQuery changes what it names and keeps the rest', () => {
    assert.equal(withQuery('/a?x=1&y=%20z#f', { x: 2, w: 'a&b' }), '/a?x=2&y=+z&w=a%26b');
    assert.equal(withQuery('/a?x=1', { x: undefined }), '/a');
    assert.equal(withQuery('/a?x=1?2', {}), '/a?x=1%3F2');
  });

  test('the way on after sign-in stays on this server', () => {
    for (const path of [
      '//evil.example',
      'https://evil.example',
      '/\\evil.example',
      '/a\tb',
      '/client/\u2028',
      '/client/é',
      '',
      undefined,
      3,
    ]) {
      assert.equal(isLocalPath(path), false, String(path));
    }
    assert.equal(isLocalPath('/client/?a=1'), true);
  });
});
