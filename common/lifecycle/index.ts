/**
 * How a program runs: start its parts in order, wait for SIGTERM or Ctrl-C, stop them in reverse order.
 *
 * A part's constructor does nothing; `start` may fail with a `CodedError`, whose one sentence is what the operator
 * reads before a non-zero exit. A second signal ends the process at once, and so does, after ten seconds, a part that has
 * stopped and still holds something open: a supervisor would wait for it without an end. Under a supervisor that sets
 * `SVC_SUPERVISED=1`, the end of standard input means that the supervisor is gone, and stops the program too.
 */
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

/** What is open when every part has stopped gets this time to close. */
const closesWithinMs = 10_000;

export interface Part {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts `parts` in order. When one fails, those already started are stopped again and its error is thrown. */
export async function startParts(parts: readonly Part[], reporter: Reporter): Promise<() => Promise<void>> {
  const started: Part[] = [];
  const stopAll = async () => {
    for (const part of started.splice(0).reverse()) {
      try {
        await part.stop();
      } catch (error) {
        reporter.error('part did not stop cleanly', { part: part.name, error: describeError(error) });
      }
    }
  };
  for (const part of parts) {
    try {
      await part.start();
      started.push(part);
    } catch (error) {
      await stopAll();
      throw error;
    }
  }
  return stopAll;
}

/**
 * Runs a long-lived program until a signal. Resolves with the process's exit code; never throws.
 * `ready` is called once everything has started.
 */
export async function runUntilSignal(
  parts: readonly Part[],
  reporter: Reporter,
  ready: () => void = () => {},
): Promise<number> {
  const signalled = new Promise<string>((resolve) => {
    let count = 0;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        count += 1;
        if (count > 1) process.exit(130);
        resolve(signal);
      });
    }
    if (process.env.SVC_SUPERVISED === '1') {
      // An open stream keeps the process alive, so every return below destroys it.
      process.stdin.once('end', () => resolve('end of the supervisor'));
      process.stdin.once('error', () => resolve('end of the supervisor'));
      process.stdin.resume();
    }
  });
  let stopAll: () => Promise<void>;
  try {
    stopAll = await startParts(parts, reporter);
  } catch (error) {
    sayFatal(error);
    return leave(1, reporter);
  }
  ready();
  const signal = await signalled;
  reporter.info('stopping', { signal });
  await stopAll();
  reporter.info('stopped');
  return leave(0, reporter);
}

/** The process ends by itself when nothing is open any more; the timer does not keep it alive. */
function leave(code: number, reporter: Reporter): number {
  process.stdin.destroy();
  const end = () => {
    reporter.error('the program has stopped and is still held, ending it', {
      by: process.getActiveResourcesInfo().join(', '),
    });
    process.exit(code);
  };
  setTimeout(end, closesWithinMs).unref();
  return code;
}

/**
 * Says on standard error why the program can't go on: one sentence for what was foreseen and for what the system
 * refused, the stack of anything else.
 */
export function sayFatal(error: unknown): void {
  const isSaid = error instanceof CodedError || (error instanceof Error && 'syscall' in error);
  const text = isSaid ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`svc: ${text}\n`);
}
