/** The thread of `countBlocks`: starts the coverage, loads the module, counts, and posts the counts. */
import { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';
import type { CountedWork } from './count-blocks.ts';

interface Coverage {
  result: { url: string; functions: { ranges: { count: number }[] }[] }[];
}

const session = new Session();
session.connect();

function ask<T>(method: string, parameters: object = {}): T {
  let answer: T | undefined;
  // A session of the own thread answers before `post` returns.
  session.post(method, parameters, (error, result) => {
    if (error) throw error;
    answer = result as T;
  });
  return answer as T;
}

function takeBlocks(): number {
  const { result } = ask<Coverage>('Profiler.takePreciseCoverage');
  let blocks = 0;
  for (const { url, functions } of result) {
    if (!url.startsWith('file:') || url.includes('/node_modules/')) continue;
    for (const { ranges } of functions) for (const { count } of ranges) blocks += count;
  }
  return blocks;
}

ask('Profiler.enable');
ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
const { module, exportName, data } = workerData as CountedWork;
const loaded = (await import(module)) as Record<string, (data: unknown) => Iterable<() => void>>;
const counts: number[] = [];
for (const work of loaded[exportName]!(data)) {
  takeBlocks();
  work();
  counts.push(takeBlocks());
}
session.disconnect();
parentPort!.postMessage(counts);
