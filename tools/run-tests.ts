/** Runs test files in processes, a bounded number at once, prints what happens and tells what came of each file. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type FileResult, type TestMessage, TestReport } from './test-report.ts';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** A process that tells nothing for so long hangs. No test has a limit of its own: how long one takes is the machine's affair. */
const hangsAfterMs = 900_000;
/** No link is under node_modules but in .bin (`with-node`): the real path of each module need not be looked up. */
const execArgv = ['--disable-warning=ExperimentalWarning', '--preserve-symlinks', '--preserve-symlinks-main'];
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

export interface RunOptions {
  /** A file that fails runs once more, alone, when all others have ended: if it passes then, it is flaky. */
  retries?: boolean;
  silentMs?: number;
}

/** Runs the lanes beside one another. The results are in the order in which the files ended. */
export async function runTests(
  lanes: readonly Lane[],
  { retries = false, silentMs = hangsAfterMs }: RunOptions = {},
): Promise<FileResult[]> {
  const report = new TestReport((text) => void process.stdout.write(text));
  const first = await Promise.allSettled(lanes.map((lane) => runLane(lane, report, silentMs)));
  for (const lane of first) if (lane.status === 'rejected') throw lane.reason;
  const results = report.results();
  if (!retries) return results;
  for (const [at, result] of results.entries()) {
    if (result.failed === 0) continue;
    const { file } = result;
    console.log(`once more, alone: ${file}`);
    const again = new TestReport((text) => void process.stdout.write(text));
    await runBatch([file], again, silentMs);
    const second = again.results().find((one) => one.file === file);
    if (second?.failed === 0) results[at] = { ...second, isFlaky: true };
  }
  return results;
}

async function runLane({ batches, concurrency, after }: Lane, report: TestReport, silentMs: number) {
  await after;
  const waiting = [...batches];
  const work = async () => {
    for (let batch = waiting.shift(); batch; batch = waiting.shift()) await runBatch(batch, report, silentMs);
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

/** Each process has a folder of its own for coverage, which it divides by file (`tools/mutations/divide-coverage.ts`). */
function coverageOf([first]: Batch): Record<string, string> {
  const { NODE_V8_COVERAGE: folder } = process.env;
  return folder ? { NODE_V8_COVERAGE: join(folder, first!.replaceAll('/', '+')) } : {};
}

/** A file that told nothing, because it has no test or its process died, fails. */
async function runBatch(batch: Batch, report: TestReport, silentMs: number): Promise<void> {
  const files = batch.map((file) => resolve(root, file));
  const silent = new Set(files);
  const child = fork(`${root}/tools/test-batch.ts`, files, {
    serialization: 'advanced',
    execArgv: files.length > 1 ? sharedExecArgv : execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, ...coverageOf(batch) },
  });
  const hanging = setTimeout(() => child.kill(), silentMs);
  child.on('message', (message: TestMessage) => {
    hanging.refresh();
    if (message.kind === 'passed' || message.kind === 'failed') silent.delete(message.file);
    report.take({ ...message, file: relative(root, message.file) });
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  clearTimeout(hanging);
  for (const file of silent) report.take(failureOf(file, 'The file ran no test.'));
  if (code !== 0)
    report.take(failureOf(files.at(-1)!, `The process of ${batch.join(', ')} ended with ${signal ?? code}.`));
}

function failureOf(path: string, error: string): TestMessage {
  const file = relative(root, path);
  return { kind: 'failed', file, name: file, nesting: 0, ms: 0, isSuite: false, isLeftOut: false, error };
}
