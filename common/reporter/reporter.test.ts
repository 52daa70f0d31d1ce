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
