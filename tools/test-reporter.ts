/**
 * Reports a test run for people: a line for each file, each failure in full, and the closing `N passed, N failed`.
 *
 * Counts tests (not files or suites). A skipped or todo test fails the run where `CI` is set.
 */
import { relative } from 'node:path';
import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

interface FileTally {
  passed: number;
  failed: number;
  ms: number;
}

/** `failedBefore`: failures that are not of tests, and are told already; they count in the closing line. */
export default async function* report(
  events: AsyncIterable<TestEvent>,
  failedBefore: Promise<number> | number = 0,
): AsyncGenerator<string> {
  const files = new Map<string, FileTally>();
  let passed = 0;
  let failed = 0;
  let leftOut = 0;
  for await (const event of events) {
    if (event.type === 'test:diagnostic' && event.data.nesting > 0) {
      yield `      ${event.data.message}\n`;
    }
    if (event.type === 'test:stderr') yield event.data.message;
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    const { data } = event;
    const isFile = data.name === data.file || data.name.endsWith('.test.ts');
    const file = data.file ? relative(process.cwd(), data.file) : '(unknown file)';
    const tally = files.get(file) ?? { passed: 0, failed: 0, ms: 0 };
    files.set(file, tally);
    if (isFile && event.type === 'test:pass') continue;
    tally.ms += data.nesting === 0 ? data.details.duration_ms : 0;
    if (data.details.type === 'suite') continue;
    if (data.skip || data.todo) {
      leftOut += 1;
      yield `left out  ${file}: ${data.name}\n`;
    } else if (event.type === 'test:pass') {
      passed += 1;
      tally.passed += 1;
    } else {
      failed += 1;
      tally.failed += 1;
      yield `FAIL  ${file}\n      ${data.name}\n${indent(textOf(event.data.details.error))}\n`;
    }
  }
  for (const [file, tally] of [...files].sort((a, b) => b[1].ms - a[1].ms)) {
    if (tally.passed + tally.failed === 0) continue;
    const verdict = tally.failed > 0 ? 'FAIL' : 'ok  ';
    yield `${verdict}  ${file}  ${tally.passed + tally.failed} tests, ${(tally.ms / 1000).toFixed(1)} s\n`;
  }
  if (leftOut > 0 && process.env.CI) {
    failed += leftOut;
    yield `${leftOut} tests were left out, and nothing may be left out here\n`;
  }
  if (passed + failed === 0) {
    failed = 1;
    yield 'no test was run\n';
  }
  failed += await failedBefore;
  if (failed > 0) process.exitCode = 1;
  yield `\n${passed} passed, ${failed} failed\n`;
}

/** The text of a failure. */
export function describeFailure(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause : error;
  return inspect(cause, { depth: 4, colors: false });
}

/** Of a test in a shared process the text was made there. */
function textOf(error: Error | string): string {
  return typeof error === 'string' ? error : describeFailure(error);
}

function indent(text: string): string {
  return text
    .split('\n')
    .slice(0, 40)
    .map((line) => `      ${line}`)
    .join('\n');
}
