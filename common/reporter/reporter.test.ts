import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReporter } from './index.ts';

test('a field whose name says secret is never written, in text or JSON', () => {
  for (const format of ['text', 'json'] as const) {
    const lines: string[] = [];
    const reporter = createReporter({ program: 'x', format, write: (line) => lines.push(line) });
    reporter
      .with({ root_password: 'hunter2' })
      .info('server made', { api_key: 'svc_a_b', Authorization: 'Bearer t0p', server: 7 });
    assert.equal(lines.length, 1);
    assert.doesNotMatch(lines[0]!, /hunter2|svc_a_b|t0p/);
    assert.match(lines[0]!, /server made/);
    assert.match(lines[0]!, /7/);
  }
});

test('lines below the level are left out', () => {
  const lines: string[] = [];
  const reporter = createReporter({ program: 'x', level: 'warn', write: (line) => lines.push(line) });
  reporter.info('quiet');
  reporter.warn('loud');
  assert.equal(lines.length, 1);
});

test('escape sequences, line breaks and direction marks of a value are shown, not obeyed', () => {
  const lines: string[] = [];
  const reporter = createReporter({ program: 'test', write: (line) => lines.push(line) });
  reporter.info('named', { host: 'a\u001b[31mred\u202eevil', other: 'two\nlines' });
  assert.equal(lines.length, 1);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  assert.doesNotMatch(lines[0]!, /[\u0000-\u001f\u202e]/);
  assert.match(lines[0]!, /a\\u001b\[31mred\\u202eevil/);
});
