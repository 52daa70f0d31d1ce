/** The thread of `countBlocks`: starts the coverage, loads the module, counts, and posts the counts. */
import { parentPort, workerData } from 'node:worker_threads';
import { startBlockCoverage } from './block-coverage.ts';
import type { CountedWork } from './count-blocks.ts';

const coverage = startBlockCoverage();
const { module, exportName, data } = workerData as CountedWork;
const loaded = (await import(module)) as Record<string, (data: unknown) => Iterable<() => void>>;
const counts: number[] = [];
for (const work of loaded[exportName]!(data)) {
  coverage.takeBlocks();
  work();
  counts.push(coverage.takeBlocks());
}
coverage.stop();
parentPort!.postMessage(counts);
