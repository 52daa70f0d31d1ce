/** `kill -9` of one program or database server after the other, at random times. */

import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import type { ProgramName, RunningDemo } from './run-demo.ts';
import { type DeafTime, type Death, findDeafTimes, killSensor } from './sensor-deaths.ts';

interface Victim {
  program: ProgramName;
  what: 'program' | 'postgres';
}

const victims: readonly Victim[] = [
  { program: 'monitor', what: 'program' },
  { program: 'monitor', what: 'postgres' },
  { program: 'operations', what: 'program' },
  { program: 'operations', what: 'postgres' },
  { program: 'sensor', what: 'program' },
];
/** In odd minutes, so that there are minutes without a sensor kill, which must be complete. */
const withoutSensor = victims.filter(({ program }) => program !== 'sensor');

export interface KillOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
  /** The pause before a kill, of a random number from 0 to 1; around the ends of minutes by default. */
  pauseMs?: (random: number) => number;
}

/** Kills `n` times. Returns when the sensor did not listen. */
export async function killAtRandom(demo: RunningDemo, options: KillOptions): Promise<DeafTime[]> {
  const { n, seed, report, pauseMs: choose = (random) => choosePauseMs(Date.now(), random) } = options;
  const random = seededRandom(seed);
  const deaths: Death[] = [];
  const unkilled = new Set(victims);
  for (let kill = 1; kill <= n; kill += 1) {
    const pauseMs = choose(random());
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    // With five kills or more, each victim is killed at least once.
    const isOwed = n - kill < unkilled.size;
    const victim = await killOne(demo, random(), deaths, isOwed ? unkilled : null);
    unkilled.delete(victim);
    const { program, what } = victim;
    report(`${new Date().toISOString()} kill ${kill} of ${n}: ${program} ${what}`);
  }
  return demo.until('the sensor listens again', 120_000, () => findDeafTimes(demo.readLog('sensor'), deaths));
}

/**
 * Kills are frequent from two seconds before to twelve after the end of a minute; no pause skips the end of a minute.
 */
function choosePauseMs(nowMs: number, random: number): number {
  const sinceHotMs = (nowMs + 2_000) % 60_000;
  if (sinceHotMs < 14_000) return 500 + 4_000 * random;
  return Math.min(8_000 + 16_000 * random, 60_000 - sinceHotMs + 2_000 * random);
}

/** Kills a program, one of `owed` if given, when it runs; waits for one that is restarting, and for the sensor's minute. */
async function killOne(
  demo: RunningDemo,
  random: number,
  deaths: Death[],
  owed: ReadonlySet<Victim> | null,
): Promise<Victim> {
  for (;;) {
    const { victim, pid } = await demo.until('a program to kill lives', 120_000, () => {
      const isOdd = Math.floor(Date.now() / 60_000) % 2 === 1;
      const allowed = isOdd ? withoutSensor : victims;
      const choice = owed === null ? allowed : allowed.filter((one) => owed.has(one));
      const victim = choice[Math.floor(random * choice.length)];
      if (!victim) return null;
      const pid = demo.pidOf(victim.program, victim.what);
      return pid !== null && { victim, pid };
    });
    try {
      if (victim.program !== 'sensor') {
        process.kill(pid, 'SIGKILL');
        return victim;
      }
      const stateDirectory = join(demo.dataDir, 'sensor');
      const death = await killSensor({ pid, stateDirectory, readLog: () => demo.readLog('sensor') });
      if (!death) continue;
      deaths.push(death);
      return victim;
    } catch (error) {
      // It ended between the check and the kill.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
