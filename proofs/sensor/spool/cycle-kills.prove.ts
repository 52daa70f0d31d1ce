/**
 * Proof by killing at every system call: one cycle of collecting, storing, uploading, taking the receipt and pruning is
 * ended with SIGKILL at its k-th `write`, `fsync`, `rename`, … for every call and every k.
 *
 * Twice: on a new spool, each point in a folder of its own with one whole cycle after it; and on a spool that goes on,
 * where each killed cycle is followed by the next, so that what one death leaves is what the next one meets.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import { bytesOfMinute } from '#sensor/testing/sample-minutes.ts';
import { type ProofMonitor, startProofMonitor } from '../proof-monitor.ts';
import type { CallPoint } from '../traced-process.ts';
import type { CycleSensorInput } from './cycle-sensor.ts';
import { judgeMinutes } from './judge-minutes.ts';
import type { PlantedFault } from './planted-faults.ts';
import { countCalls, cycleCalls, traceCycle } from './traced-cycle.ts';

export const name = 'sensor-cycle-kills';

const startMinute = 1_764_000_000;
const patienceMs = 600_000;
const faults = [
  'numbers_kept_in_memory',
  'deleted_before_receipt',
  'announced_a_moment_early',
  'resent_under_a_new_number',
] as const;
/** Kills of each run with a planted fault when not all points are wanted; where all are, it ends with the first find. */
const plantedKills = 40;

export interface CycleKillOptions {
  /** Points to kill at, chosen by the seed; 0 for all. */
  n: number;
  seed: number;
  report(line: string): void;
}

/** Kills at `n` points of both kinds of cycle, then shows that each planted fault is found. */
export async function prove(options: CycleKillOptions) {
  const { n, seed, report } = options;
  const result = await killCycles(options, null);
  for (const offence of result.offences) report(offence);
  let caught = 0;
  for (const fault of faults) {
    const found = await killCycles({ n: Math.min(n, plantedKills), seed, report: () => {} }, fault);
    report(`planted ${fault}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  return {
    claim: `killed at each of ${result.points} system calls of a cycle: every minute is the truth or an exact gap, once`,
    tried: result.kills,
    failures: result.offences.length,
    plantedBugsCaught: `${caught} of ${faults.length}`,
  };
}

export interface CycleKillResult {
  /** Points there are, and points at which it was killed. */
  points: number;
  kills: number;
  offences: string[];
}

/** Kills at `n` of all points of a cycle and judges what arrived. */
export async function killCycles(
  options: CycleKillOptions,
  fault: PlantedFault | null,
): Promise<CycleKillResult> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-cycle-'));
  const [monitor, otherMonitor] = [await startProofMonitor(() => 1), await startProofMonitor(() => 1)];
  const base = { directory: '', url: monitor.url, minute: startMinute, patienceMs, fault };
  try {
    const random = seededRandom(options.seed);
    const counted = { ...base, fault: null, directory: join(folder, 'counted') };
    const onNew = await countCalls(counted, cycleCalls, folder);
    const goingOn = await countCalls({ ...counted, minute: startMinute + 60 }, cycleCalls, folder);
    const half = Math.ceil(options.n / 2);
    // A planted fault shows at a few points only; in no order it is found sooner.
    const chosen = (points: readonly CallPoint[]) =>
      choose(points, fault && half === 0 ? points.length : half, random, fault !== null);
    const ofNew = chosen(onNew);
    const ofGoingOn = chosen(goingOn);
    const search: Search = { isOver: false };
    options.report(`${onNew.length} system calls on a new spool, ${goingOn.length} on one that goes on`);
    const [first, second] = await Promise.all([
      killOnNewSpools(base, ofNew, monitor, folder, search),
      killOneAfterAnother({ ...base, url: otherMonitor.url }, ofGoingOn, otherMonitor, folder, search),
    ]);
    options.report(
      `${first.killed + second.killed} of ${ofNew.length + ofGoingOn.length} cycles died at their call`,
    );
    return {
      points: onNew.length + goingOn.length,
      kills: first.killed + second.killed,
      offences: [...first.offences, ...second.offences],
    };
  } finally {
    monitor.stop();
    otherMonitor.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What both kinds of cycle look at: a planted fault needs to be found once. */
interface Search {
  isOver: boolean;
}

interface Killed {
  killed: number;
  offences: string[];
}

async function killOnNewSpools(
  base: CycleSensorInput,
  points: readonly CallPoint[],
  monitor: ProofMonitor,
  folder: string,
  search: Search,
): Promise<Killed> {
  const offences: string[] = [];
  let killed = 0;
  for (const [i, point] of points.entries()) {
    monitor.stored.clear();
    const input = { ...base, directory: join(folder, `new-${i}`) };
    const one = await killAt(input, point, folder);
    if (one.isKilled) killed += 1;
    const two = await killAt({ ...input, minute: input.minute + 60 }, null, folder);
    const committed = [...one.committed, ...two.committed];
    offences.push(
      ...two.offences,
      ...judge(monitor, committed).map((what) => `${textOf(point)} on a new spool: ${what}`),
    );
    rmSync(input.directory, { recursive: true, force: true });
    if (base.fault && offences.length > 0) search.isOver = true;
    if (search.isOver) break;
  }
  return { killed, offences };
}

async function killOneAfterAnother(
  base: CycleSensorInput,
  points: readonly CallPoint[],
  monitor: ProofMonitor,
  folder: string,
  search: Search,
): Promise<Killed> {
  monitor.stored.clear();
  const committed: number[] = [];
  const offences: string[] = [];
  let killed = 0;
  let { minute } = base;
  for (const point of [null, ...points, null]) {
    const one = await killAt({ ...base, minute, directory: join(folder, 'going-on') }, point, folder);
    committed.push(...one.committed);
    offences.push(...one.offences);
    if (one.isKilled) killed += 1;
    minute += 60;
    if (search.isOver) break;
  }
  return { killed, offences: [...offences, ...judge(monitor, committed)] };
}

async function killAt(input: CycleSensorInput, point: CallPoint | null, folder: string) {
  const calls = point ? [point.call] : ['fsync'];
  const inject = point ? { inject: `${point.call}:signal=KILL:when=${point.nth}` } : {};
  const traceFile = join(folder, `${basename(input.directory)}.trace`);
  const { code, committed } = await traceCycle(input, { calls, ...inject }, traceFile);
  const isKilled = code === null;
  // With a planted fault a cycle may not end well; that it says so is as good as an offence.
  const offences =
    isKilled || code === 0 ? [] : [`a cycle ended with ${code}${point ? ` at ${textOf(point)}` : ''}`];
  return { committed, isKilled, offences };
}

function judge(monitor: ProofMonitor, committed: readonly number[]): string[] {
  return judgeMinutes([...monitor.stored.values()], {
    startMinute,
    bytesOfMinute,
    committed: new Set(committed),
  });
}

/** `count` of the points in an order that the seed decides; all of them when `count` is 0 or more than there are, in order unless `isShuffled`. */
function choose(
  points: readonly CallPoint[],
  count: number,
  random: () => number,
  isShuffled: boolean,
): CallPoint[] {
  if (!isShuffled && (count === 0 || count >= points.length)) return [...points];
  const left = [...points];
  return Array.from(
    { length: Math.min(count, left.length) },
    () => left.splice(Math.floor(random() * left.length), 1)[0]!,
  );
}

const textOf = (point: CallPoint) => `${point.call} ${point.nth}`;
