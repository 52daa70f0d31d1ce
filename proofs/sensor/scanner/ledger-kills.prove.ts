/**
 * Proof by killing at every system call: a whole cycle of the scan service over its ledger (a customer's request and the
 * daily scan of another target: attempt, positives, result, report, receipt, removal) is ended with SIGKILL at its k-th
 * `pwrite64`, `fsync`, `clone`, `write`, … for every call and every k. The next life is killed again, at a call of the
 * recovery that the seed deals: each of those is dealt at least once where all points are run. The third life ends in order.
 *
 * nmap is a stand-in that writes nmap's output within a second, because what is proved is the ledger; the children, their
 * pipes and the HTTP requests are real. Kills hit the sensor's first thread, which does all of that.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '#common/random/index.ts';
import { type CallPoint, countPoints, startTraced } from '../traced-process.ts';
import { judgeScans, type LifeSaid } from './judge-scans.ts';
import { type LedgerFault, ledgerFaults } from './ledger-faults.ts';
import { ScanCase, startScanMonitor } from './scan-case.ts';
import type { ScanningSensorInput } from './scanning-sensor.ts';

export const name = 'scan-ledger-kills';

const speed = 100;
const casesAtOnce = 3;
/** A life takes a second; one that lasts longer never ends. */
const lifeMaxMs = 120_000;
/** Cases of each run with a planted fault; it ends with the first find. */
const plantedCases = 150;
/** Every system call that writes, syncs, uses file names, talks to the monitor or starts a process. */
const calls = [
  ...['openat', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'rename', 'unlink', 'symlink', 'mkdir'],
  ...['write', 'writev', 'connect', 'sendto', 'sendmsg', 'clone', 'clone3', 'vfork', 'pipe2', 'kill'],
];
const childPath = fileURLToPath(new URL('./scanning-sensor.ts', import.meta.url));

export interface LedgerKillOptions {
  /** Cases, chosen by the seed; 0 for all. */
  n: number;
  seed: number;
  report(line: string): void;
}

/** Kills at `n` points and again in the recovery, then shows that each planted fault is found. */
export async function prove(options: LedgerKillOptions) {
  const { seed, report } = options;
  const result = await killLedger(options, null);
  for (const offence of new Set(result.offences)) report(offence);
  let caught = 0;
  for (const fault of ledgerFaults) {
    const found = await killLedger({ n: plantedCases, seed, report: () => {} }, fault);
    report(`planted ${fault}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  return {
    claim: `scans killed at each of ${result.points} system calls of a cycle, and again at ${result.recoveryPoints} of the recovery: a scan id runs once and is reported once, with all that was stored (${result.kills} kills)`,
    tried: result.cases,
    failures: result.offences.length,
    plantedBugsCaught: `${caught} of ${ledgerFaults.length}`,
  };
}

export interface LedgerKillResult {
  points: number;
  recoveryPoints: number;
  cases: number;
  /** Lives that died at their call. */
  kills: number;
  offences: string[];
}

/** Runs cases and judges each. With a fault, it ends at the first offence. */
export async function killLedger(
  { n, seed, report }: LedgerKillOptions,
  fault: LedgerFault | null,
): Promise<LedgerKillResult> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-scan-kills-'));
  const cases = new Map<string, ScanCase>();
  const monitor = await startScanMonitor(cases);
  const world: World = { folder, cases, urlOf: monitor.urlOf, fault };
  try {
    const random = seededRandom(seed);
    const { cycle, recovery } = await countCycle({ ...world, fault: null });
    report(
      `${cycle.length} system calls of a cycle, ${recovery.length} of the recovery from a kill in its middle`,
    );
    const pairs = deal(cycle, recovery, n, random);
    const result: LedgerKillResult = {
      ...{ points: cycle.length, recoveryPoints: new Set(pairs.map(({ second }) => second)).size },
      ...{ cases: 0, kills: 0, offences: [] },
    };
    const work = async () => {
      for (let pair = pairs.shift(); pair; pair = pairs.shift()) {
        const number = result.cases;
        result.cases += 1;
        const { kills, offences } = await runCase(world, `case-${number}`, [pair.first, pair.second, null]);
        result.kills += kills;
        result.offences.push(
          ...offences.map((what) => `${textOf(pair.first)}, then ${textOf(pair.second)}: ${what}`),
        );
        if (fault && offences.length > 0) pairs.length = 0;
        if (result.cases % 100 === 0) report(`${result.cases} cases, ${result.kills} kills`);
      }
    };
    await Promise.all(Array.from({ length: casesAtOnce }, work));
    report(`${result.kills} of ${2 * result.cases} lives died at their call`);
    return result;
  } finally {
    monitor.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface World {
  folder: string;
  cases: Map<string, ScanCase>;
  urlOf(name: string): string;
  fault: LedgerFault | null;
}

/** The calls of a whole cycle, and those of a life that follows a kill in the middle of one. */
async function countCycle(world: World): Promise<{ cycle: CallPoint[]; recovery: CallPoint[] }> {
  const counted = async (name: string, middle: CallPoint | null) => {
    const one = addCase(world, name);
    if (middle) await live(world, name, one, { inject: injectionAt(middle) });
    const { trace } = await live(world, name, one, {});
    world.cases.delete(name);
    return countPoints(trace);
  };
  const cycle = await counted('counted', null);
  const syncs = cycle.filter(({ call }) => call === 'fsync' || call === 'fdatasync');
  const recovery = await counted('recovered', syncs[Math.floor(syncs.length / 2)]!);
  return { cycle, recovery };
}

async function runCase(world: World, name: string, kills: readonly (CallPoint | null)[]) {
  const one = addCase(world, name);
  const lives: LifeSaid[] = [];
  const offences: string[] = [];
  for (const point of kills) {
    const { code, said } = await live(world, name, one, point && { inject: injectionAt(point) });
    lives.push({ life: one.life, isKilled: code === null, said });
    if (code !== null && code !== 0) offences.push(`a life ended with ${code}`);
    if (code === null && !point) offences.push('a life that was not killed did not end');
  }
  offences.push(...judgeScans(one, lives));
  world.cases.delete(name);
  rmSync(one.directory, { recursive: true, force: true });
  return { kills: lives.filter(({ isKilled }) => isKilled).length, offences };
}

function addCase({ folder, cases }: World, name: string): ScanCase {
  const one = new ScanCase(join(folder, name));
  cases.set(name, one);
  return one;
}

/** One life, which ends at its call, or in order when everything that was started is reported. */
async function live(world: World, name: string, one: ScanCase, trace: { inject?: string } | null) {
  const { directory } = one;
  const { fault } = world;
  const input: ScanningSensorInput = {
    ...{ directory, fault, speed, url: world.urlOf(name), startMs: one.beginLife() },
  };
  const options = trace && { calls, isFirstThreadOnly: true, ...trace };
  const { child, ended } = await startTraced(childPath, input, options, join(world.folder, `${name}.trace`));
  const timer = setTimeout(() => child.kill('SIGKILL'), lifeMaxMs);
  child.stdin!.write('go\n');
  await Promise.race([one.over(), ended]);
  child.stdin!.end('stop\n');
  const life = await ended;
  clearTimeout(timer);
  return life;
}

/** Pairs of a call of the cycle and one of the recovery: all of both at least once, or `n` of those. */
function deal(cycle: readonly CallPoint[], recovery: readonly CallPoint[], n: number, random: () => number) {
  const [first, second] = [shuffle(cycle, random), shuffle(recovery, random)];
  const all = Math.max(first.length, second.length);
  return Array.from({ length: n === 0 ? all : Math.min(n, all) }, (_, i) => ({
    ...{ first: first[i % first.length]!, second: second[i % second.length]! },
  }));
}

function shuffle<T>(values: readonly T[], random: () => number): T[] {
  const left = [...values];
  return values.map(() => left.splice(Math.floor(random() * left.length), 1)[0]!);
}

const injectionAt = ({ call, nth }: CallPoint) => `${call}:signal=KILL:when=${nth}`;
const textOf = (point: CallPoint) => `${point.call} ${point.nth}`;
