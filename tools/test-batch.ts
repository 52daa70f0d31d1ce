/**
 * Runs test files one after the other in this process, and tells the parent what happens: files that share a process load
 * and compile the program once.
 *
 * usage: forked by tools/test.ts with the files as arguments
 */
import { run } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import { describeFailure } from './test-reporter.ts';

for await (const event of run({
  files: process.argv.slice(2),
  isolation: 'none',
}) as AsyncIterable<TestEvent>) {
  if (event.type === 'test:pass' || event.type === 'test:diagnostic') process.send!(event);
  // An error may hold what can't be sent, so it goes as the text that is shown of it.
  if (event.type === 'test:fail') {
    const { error } = event.data.details;
    process.send!({
      ...event,
      data: { ...event.data, details: { ...event.data.details, error: describeFailure(error) } },
    });
  }
}
process.disconnect();
