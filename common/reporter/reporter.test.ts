import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReporter } from './index.ts';

test('a field whose name says secret is never written, in text or JSON', () => {
  for (const format of ['text', 'json'] as const) {
    const lines: string[] = [];
    const reporter = createReporter({ program: 'x', format, write: (line) => lines.push(line) });
    const secrets = ['root-secret-of-a-server', 'api-secret-of-a-server', 'bearer-secret-of-a-server'];
    const [password, key, token] = secrets;
    reporter
      .with({ root_password: password })
      .info('server made', { api_key: key, Authorization: `Bearer ${token}`, server: 'server-number-seven' });
    assert.equal(lines.length, 1);
    for (const secret of secrets) assert.ok(!lines[0]!.includes(secret), lines[0]);
    assert.match(lines[0]!, /server made.*server-number-seven/);
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

test('in the journal each line begins with its priority, so that journalctl can be asked for errors', () => {
  for (const format of ['text', 'json'] as const) {
    const lines: string[] = [];
    const write = (line: string) => lines.push(line);
    const reporter = createReporter({ program: 'x', format, level: 'debug', isJournal: true, write });
    for (const level of ['debug', 'info', 'warn', 'error'] as const) reporter[level]('said');
    assert.deepEqual(
      lines.map((line) => line.slice(0, 3)),
      ['<7>', '<6>', '<4>', '<3>'],
    );
  }
});
