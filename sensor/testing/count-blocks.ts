/**
 * Counts the JavaScript that a piece of work executes, by V8's block coverage: function bodies, branches and loop
 * iterations of our own modules. Unlike time, the number does not depend on the speed or load of the machine.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Input of the counting thread. */
export interface CountedWork {
  module: string;
  exportName: string;
  data: unknown;
}

/**
 * Loads `module` in its own thread, calls its export with `data`, and counts each function that it yields. Coverage
 * counts only code compiled after its start, so the module and its imports are loaded again there.
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
