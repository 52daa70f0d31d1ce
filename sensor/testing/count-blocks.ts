/**
 * How much JavaScript a piece of work runs, counted by V8's block coverage: function bodies, branches and loop rounds of
 * our own modules. The number is the same on a fast machine, a slow one and a busy one, which no time is.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** What the counting thread is given. */
export interface CountedWork {
  module: string;
  exportName: string;
  data: unknown;
}

/**
 * Loads `module` in a thread of its own, calls its export with `data`, and counts each function that it yields. Coverage
 * counts only what is compiled after it began, so the module and all it imports are loaded there anew.
 */
export async function countBlocks(
  module: URL | string,
  exportName: string,
  data: unknown,
): Promise<number[]> {
  const workerData: CountedWork = { module: String(module), exportName, data };
  const worker = new Worker(new URL('./count-blocks-thread.ts', import.meta.url), { workerData });
  const [counts] = (await once(worker, 'message')) as [number[]];
  await worker.terminate();
  return counts;
}
