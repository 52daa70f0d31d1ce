/**
 * Proof by killing: a sensor that collects and uploads is ended with SIGKILL at random moments, again and again.
 *
 * The oracle knows what every minute held and what the sensor said it had committed. In the end every minute must
 * have arrived as it was, or be named by a gap; none twice; and none that was committed may be missing. The monitor's
 * place is taken by a server that fails, refuses and loses answers now and then. The same run with a fault planted
 * in the sensor must fail, or the proof shows nothing.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '#common/random/index.ts';
import { bytesOfMinute } from '#sensor/testing/sample-minutes.ts';
import { startProofMonitor } from '../proof-monitor.ts';
import { judgeMinutes } from './judge-minutes.ts';
import type { KilledSensorInput } from './killed-sensor.ts';
import { type PlantedFault, plantedFaults } from './planted-faults.ts';

export const name = 'sensor-spool-kills';

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

export interface ProveResult {
  claim: string;
  tried: number;
  failures: number;
  plantedBugsCaught: string;
}

const startMinute = 1_764_000_000;
/** A minute of the sensor takes 40 ms. */
const speed = 1500;
/** Most kills come within this time after the sensor runs; some come while it starts. */
const killWithinMs = 500;
const startKillShare = 0.15;
/** Kills of each run with a planted fault. */
const plantedKills = 12;
const childPath = fileURLToPath(new URL('./killed-sensor.ts', import.meta.url));

/** Runs `n` kills without a fault and a few with each planted one. */
export async function prove(options: ProveOptions): Promise<ProveResult> {
  const offences = await runKills(options.n, options.seed, null, options.report);
  for (const offence of offences) options.report(offence);
  let caught = 0;
  for (const fault of plantedFaults) {
    const found = await runKills(plantedKills, options.seed, fault, () => {});
    options.report(`planted ${fault}: ${found.length > 0 ? found[0] : 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim: 'every minute is the truth or an exact gap, none is doubled, nothing committed is lost',
    tried: options.n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
  };
}

/** Kills a sensor `n` times, lets it finish, and returns what is wrong, one sentence each. */
export async function runKills(
  n: number,
  seed: number,
  fault: PlantedFault | null,
  report: (line: string) => void,
): Promise<string[]> {
  const random = seededRandom(seed);
  const directory = mkdtempSync(join(tmpdir(), 'svc-kill-'));
  const monitor = await startProofMonitor(random);
  const committed = new Set<number>();
  const input: KilledSensorInput = {
    directory,
    url: monitor.url,
    epochMs: Date.now(),
    startMinute,
    speed,
    fault,
    drainAfterMinutes: null,
  };
  try {
    for (let kill = 1; kill <= n; kill += 1) {
      const { child, runs } = startSensor(input, committed);
      const gone = ended(child);
      // Waiting for the sensor to run keeps the proof as strong on a busy machine.
      if (random() >= startKillShare) await Promise.race([runs, gone]);
      await new Promise((resolve) => setTimeout(resolve, random() * killWithinMs));
      child.kill('SIGKILL');
      await gone;
      if (kill % 50 === 0) report(`${kill} kills, ${committed.size} minutes committed`);
    }
    const last = startSensor({ ...input, drainAfterMinutes: 5 }, committed);
    const code = await ended(last.child);
    if (code !== 0) return [`the sensor ended with ${code} after ${n} kills`];
    report(`${n} kills, ${committed.size} minutes committed, ${monitor.stored.size} uploads stored`);
    return judgeMinutes([...monitor.stored.values()], { startMinute, bytesOfMinute, committed });
  } finally {
    monitor.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

interface StartedSensor {
  child: ChildProcess;
  runs: Promise<void>;
}

function startSensor(input: KilledSensorInput, committed: Set<number>): StartedSensor {
  const child = spawn(process.execPath, [childPath, JSON.stringify(input)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_NO_WARNINGS: '1' },
  });
  let rest = '';
  const runs = new Promise<void>((resolve) => {
    child.stdout!.on('data', (piece: Buffer) => {
      const lines = (rest + piece.toString()).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        if (line === 'runs') resolve();
        else committed.add(Number(line));
      }
    });
  });
  return { child, runs };
}

/** Resolves with the exit code once the process is gone and all it wrote was read. */
function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('close', (code) => resolve(code)));
}
