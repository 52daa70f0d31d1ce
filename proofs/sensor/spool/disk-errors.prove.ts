/**
 * Proof by failing system calls: the k-th call of a cycle that touches the disk fails with EIO, ENOSPC, EDQUOT or EINTR,
 * or writes nothing, for every k; once for one call, and once for that call and the three after it.
 *
 * The process must live, lose nothing and go on within 30 seconds of its clock after the last failure; and no log
 * whose sync failed may be believed.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import { bytesOfMinute } from '#sensor/testing/sample-minutes.ts';
import { type ProofMonitor, startProofMonitor } from '../proof-monitor.ts';
import type { CallPoint } from '../traced-process.ts';
import type { CycleSensorInput } from './cycle-sensor.ts';
import { judgeMinutes } from './judge-minutes.ts';
import type { PlantedFault } from './planted-faults.ts';
import { countCalls, type TracedCycle, traceCycle } from './traced-cycle.ts';
import { checkWriteOrder } from './write-order.ts';

export const name = 'sensor-disk-errors';

const startMinute = 1_764_000_000;
const patienceMs = 120_000;
const resumeWithinSeconds = 30;
const diskCalls = ['openat', 'pread64', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'rename', 'unlink'];
const failures = ['error=EIO', 'error=ENOSPC', 'error=EDQUOT', 'error=EINTR', 'retval=0'] as const;
const lengths = [1, 4] as const;
const faults = ['failed_append_ignored', 'failed_sync_believed'] as const;
const plantedPoints = 12;

export interface DiskErrorOptions {
  /** Failures to inject, chosen by the seed; 0 for all. */
  n: number;
  seed: number;
  report(line: string): void;
}

interface Failure extends CallPoint {
  how: (typeof failures)[number];
  length: number;
}

export async function prove(options: DiskErrorOptions) {
  const { n, seed, report } = options;
  const result = await failCalls(options, null);
  for (const offence of result.offences) report(offence);
  let caught = 0;
  for (const fault of faults) {
    // What a fault does with failed syncs and writes of the log shows at those.
    const planted = await failCalls(
      { n: Math.min(n || plantedPoints, plantedPoints), seed, report: () => {} },
      fault,
    );
    report(`planted ${fault}: ${planted.offences[0] ?? 'NOT NOTICED'}`);
    if (planted.offences.length > 0) caught += 1;
  }
  return {
    claim: `of ${result.points} failures of disk calls in a cycle: the sensor lives, loses nothing, goes on within 30 s (longest ${result.longestSeconds.toFixed(0)} s)`,
    tried: result.tried,
    failures: result.offences.length,
    plantedBugsCaught: `${caught} of ${faults.length}`,
  };
}

export interface DiskErrorResult {
  points: number;
  tried: number;
  longestSeconds: number;
  offences: string[];
}

/** Injects `n` of all failures, one in each cycle of a spool that goes on, and judges what arrived. */
export async function failCalls(
  options: DiskErrorOptions,
  fault: PlantedFault | null,
): Promise<DiskErrorResult> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-errors-'));
  const monitor = await startProofMonitor(() => 1);
  const directory = join(folder, 'state');
  const base = { directory, url: monitor.url, minute: startMinute, patienceMs, fault, saysTime: true };
  try {
    const counted = { ...base, directory: join(folder, 'counted') };
    await countCalls({ ...counted, fault: null }, diskCalls, folder);
    const points = await countCalls({ ...counted, fault: null, minute: startMinute + 60 }, diskCalls, folder);
    monitor.stored.clear();
    const all = allFailures(points, fault);
    const chosen = choose(all, options.n, seededRandom(options.seed));
    options.report(`${points.length} disk calls in a cycle, ${all.length} failures`);
    const { committed, offences, longestSeconds } = await runFailures(base, chosen, folder, options.report);
    return {
      points: all.length,
      tried: chosen.length,
      longestSeconds,
      offences: [...offences, ...judge(monitor, committed)],
    };
  } finally {
    monitor.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function allFailures(points: readonly CallPoint[], fault: PlantedFault | null): Failure[] {
  return points.flatMap((point) =>
    failures.flatMap((how) => {
      // "Nothing was written" is an answer of writes alone.
      if (how === 'retval=0' && point.call !== 'pwrite64') return [];
      // A planted fault about failed syncs is looked for where syncs fail.
      if (fault === 'failed_sync_believed' && point.call !== 'fsync') return [];
      if (fault === 'failed_append_ignored' && point.call !== 'pwrite64') return [];
      return lengths.map((length) => ({ ...point, how, length }));
    }),
  );
}

async function runFailures(
  base: CycleSensorInput,
  chosen: readonly Failure[],
  folder: string,
  report: (line: string) => void,
) {
  const committed: number[] = [];
  const offences: string[] = [];
  let longestSeconds = 0;
  let { minute } = base;
  for (const [i, failure] of [null, ...chosen].entries()) {
    const calls = [...diskCalls, 'write', 'writev', 'sendto'];
    const inject = failure ? { inject: injection(failure) } : {};
    const one = await traceCycle({ ...base, minute }, { calls, ...inject }, join(folder, 'errors.trace'));
    committed.push(...one.committed);
    minute += 60;
    if (!failure) continue;
    const at = `${failure.call} ${failure.nth} ${failure.how} for ${failure.length}`;
    if (one.code !== 0) offences.push(`${at}: the cycle ended with ${one.code}`);
    const resumedAfter = secondsAfterFailure(one);
    longestSeconds = Math.max(longestSeconds, resumedAfter);
    if (resumedAfter > resumeWithinSeconds)
      offences.push(`${at}: done ${resumedAfter.toFixed(0)} s after the last failure`);
    offences.push(...checkWriteOrder(one.trace).offences.map((what) => `${at}: ${what}`));
    if (i % 50 === 0) report(`${i} failures`);
  }
  return { committed, offences, longestSeconds };
}

const injection = ({ call, nth, how, length }: Failure) => `${call}:${how}:when=${nth}..${nth + length - 1}`;

/** Seconds of the sensor's clock from the last failed call to the end of the cycle. */
function secondsAfterFailure({ trace }: TracedCycle): number {
  const failed = trace.findLastIndex((line) => line.includes('(INJECTED)'));
  if (failed < 0) return 0;
  const timeOf = (lines: readonly string[]) =>
    Number(lines.findLast((line) => line.includes('"time '))?.match(/"time (\d+)/)?.[1] ?? 0);
  return (timeOf(trace) - timeOf(trace.slice(0, failed))) / 1000;
}

function judge(monitor: ProofMonitor, committed: readonly number[]): string[] {
  return judgeMinutes([...monitor.stored.values()], {
    startMinute,
    bytesOfMinute,
    committed: new Set(committed),
  });
}

function choose(all: readonly Failure[], count: number, random: () => number): Failure[] {
  if (count === 0 || count >= all.length) return [...all];
  const left = [...all];
  return Array.from({ length: count }, () => left.splice(Math.floor(random() * left.length), 1)[0]!);
}
