/** Runs test files in processes, a bounded number at once, and reports what happens. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import type { TestEvent } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import report from './test-reporter.ts';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** A process that tells nothing for so long hangs. No test has a limit of its own: how long one takes is the machine's affair. */
const hangsAfterMs = 900_000;
const execArgv = ['--disable-warning=ExperimentalWarning'];
/**
 * Files that share a process make and drop many objects: with more room for young ones, a tenth of the processor time is
 * saved. Others may measure the memory of their process.
 */
const sharedExecArgv = [...execArgv, '--max-semi-space-size=32'];

/** Files that run in one process, in this order. */
export type Batch = readonly string[];

export interface Lane {
  batches: readonly Batch[];
  /** Processes at once. */
  concurrency: number;
  /** It begins when this has ended. */
  after?: Promise<unknown>;
}

/**
 * Runs the lanes beside one another, prints the report and returns the exit code. `failedBefore`: failures that are not of
 * tests, and are counted with theirs.
 */
export async function runTests(
  lanes: readonly Lane[],
  failedBefore: Promise<number> | number = 0,
  silentMs = hangsAfterMs,
): Promise<number> {
  const events = new PassThrough({ objectMode: true });
  void Promise.all(lanes.map((lane) => runLane(lane, events, silentMs))).then(
    () => events.end(),
    (error: Error) => events.destroy(error),
  );
  for await (const piece of report(events, failedBefore)) process.stdout.write(piece);
  return Number(process.exitCode ?? 0);
}

async function runLane(
  { batches, concurrency, after }: Lane,
  events: PassThrough,
  silentMs: number,
): Promise<void> {
  await after;
  const waiting = [...batches];
  const work = async () => {
    for (let batch = waiting.shift(); batch; batch = waiting.shift()) await runBatch(batch, events, silentMs);
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

/** A file that told nothing, because it has no test or its process died, fails. */
async function runBatch(batch: Batch, events: PassThrough, silentMs: number): Promise<void> {
  const files = batch.map((file) => resolve(root, file));
  const silent = new Set(files);
  const child = fork(`${root}/tools/test-batch.ts`, files, {
    serialization: 'advanced',
    execArgv: files.length > 1 ? sharedExecArgv : execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const hanging = setTimeout(() => child.kill(), silentMs);
  child.on('message', (event: TestEvent) => {
    hanging.refresh();
    // A file without a test passes by its own name.
    if (event.type === 'test:fail' || (event.type === 'test:pass' && event.data.name !== event.data.file))
      silent.delete(event.data.file!);
    events.write(event);
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  clearTimeout(hanging);
  for (const file of silent) events.write(failureOf(file, 'The file ran no test.'));
  if (code !== 0)
    events.write(
      failureOf(files.at(-1)!, `The process of ${batch.join(', ')} ended with ${signal ?? code}.`),
    );
}

function failureOf(file: string, error: string) {
  return {
    type: 'test:fail',
    data: { name: file, file, nesting: 0, testNumber: 0, details: { duration_ms: 0, error } },
  };
}
