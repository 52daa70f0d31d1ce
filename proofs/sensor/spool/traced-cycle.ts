/**
 * Runs a cycle of the sensor under strace, which can kill it or fail its system calls at a chosen call. Linux, root.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CallPoint, countPoints, startTraced, type TraceOptions } from '../traced-process.ts';
import type { CycleSensorInput } from './cycle-sensor.ts';

const childPath = fileURLToPath(new URL('./cycle-sensor.ts', import.meta.url));

/** Every system call of a cycle that writes, syncs, uses file names or talks to the monitor. */
export const cycleCalls = [
  'openat',
  'pwrite64',
  'fsync',
  'fdatasync',
  'ftruncate',
  'rename',
  'unlink',
  'write',
  'writev',
  'connect',
  'sendto',
  'read',
  'recvfrom',
  'close',
] as const;

export interface TracedCycle {
  /** Exit code; null for a killed process. */
  code: number | null;
  /** Minutes that it reported as committed. */
  committed: number[];
  /** strace's lines. */
  trace: string[];
}

/** Runs one cycle; `traceFile` is overwritten. */
export async function traceCycle(
  input: CycleSensorInput,
  options: TraceOptions,
  traceFile: string,
): Promise<TracedCycle> {
  const { child, ended } = await startTraced(childPath, input, options, traceFile);
  child.stdin!.end('go\n');
  const { said, ...end } = await ended;
  const committed = said
    .split('\n')
    .filter((line) => /^\d+$/.test(line))
    .map(Number);
  return { ...end, committed };
}

/** How often the cycle makes each of these calls in its busiest thread: the points for kills and failures. */
export async function countCalls(
  input: CycleSensorInput,
  calls: readonly string[],
  folder: string,
): Promise<CallPoint[]> {
  const { trace } = await traceCycle(input, { calls }, join(folder, 'count.trace'));
  return countPoints(trace);
}
