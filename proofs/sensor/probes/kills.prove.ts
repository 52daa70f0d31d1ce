/**
 * Proof by killing: a sensor that measures and uploads is ended with SIGKILL at random moments, repeatedly.
 *
 * Uses the real prober, collector, spool and uplink, on a clock that runs many times as fast. The answer of a target
 * follows from the probe, so that the expected result is known. Every result that the sensor reported as committed must
 * arrive once and unchanged. The same run with a planted fault must fail.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '#common/random/index.ts';
import { startToKill } from '../killed-process.ts';
import { startProofMonitor } from '../proof-monitor.ts';
import type { ProbingSensorInput } from './probing-sensor.ts';

export const name = 'sensor-probe-kills';

export interface KillsOptions {
  n: number;
  seed: number;
  report(line: string): void;
}

const startMinute = 1_764_000_000;
/** A minute of the sensor takes 80 ms. */
const speed = 750;
const killWithinMs = 600;
const childPath = fileURLToPath(new URL('./probing-sensor.ts', import.meta.url));

export async function prove(options: KillsOptions) {
  const offences = await killProbers(options, null);
  for (const offence of offences) options.report(offence);
  let caught = 0;
  for (const fault of ['kept_in_memory', 'sent_twice'] as const) {
    const found = await killProbers({ ...options, n: 8, report: () => {} }, fault);
    options.report(`planted ${fault}: ${found[0] ?? 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim: 'every committed probe result arrives once and unchanged',
    tried: options.n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of 2`,
  };
}

/** Kills a sensor `n` times, lets it finish, and returns the errors as sentences. */
export async function killProbers(
  { n, seed, report }: KillsOptions,
  fault: ProbingSensorInput['fault'],
): Promise<string[]> {
  const random = seededRandom(seed);
  const directory = mkdtempSync(join(tmpdir(), 'svc-probe-kill-'));
  // A refused upload loses its results by design; no other failure may.
  const monitor = await startProofMonitor(() => {
    const luck = random();
    return luck >= 0.1 && luck < 0.13 ? 0.5 : luck;
  });
  const committed = new Set<string>();
  const input = { directory, url: monitor.url, epochMs: Date.now(), startMinute, speed, fault };
  const startSensor = (drainAfterMinutes: number | null) => {
    const options: ProbingSensorInput = { ...input, drainAfterMinutes };
    return startToKill(childPath, options, (result) => committed.add(result));
  };
  try {
    for (let kill = 1; kill <= n; kill += 1) {
      const sensor = startSensor(null);
      await Promise.race([sensor.runs, sensor.gone]);
      await new Promise((resolve) => setTimeout(resolve, random() * killWithinMs));
      sensor.kill();
      await sensor.gone;
      if (kill % 50 === 0) report(`${kill} kills, ${committed.size} results committed`);
    }
    const code = await startSensor(4).gone;
    if (code !== 0) return [`the sensor ended with ${code} after ${n} kills`];
    report(`${n} kills, ${committed.size} results committed`);
    return judge([...monitor.stored.values()], committed);
  } finally {
    monitor.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

function judge(
  uploads: readonly { probes?: object[]; gaps: { reason: string }[] }[],
  committed: ReadonlySet<string>,
) {
  const arrived = new Map<string, number>();
  for (const upload of uploads) {
    for (const result of upload.probes ?? []) {
      const text = JSON.stringify(result);
      arrived.set(text, (arrived.get(text) ?? 0) + 1);
    }
  }
  if (arrived.size === 0) return ['nothing arrived at all'];
  const offences: string[] = [];
  for (const text of committed) if (!arrived.has(text)) offences.push(`lost: ${text}`);
  for (const [text, count] of arrived) {
    if (count > 1) offences.push(`${count} times: ${text}`);
    const { probe, sent, lost, rtt } = JSON.parse(text);
    const wanted = 1000 * probe;
    if (lost !== 0 || sent < 1 || rtt.minUs !== wanted || rtt.maxUs !== wanted)
      offences.push(`wrong: ${text}`);
  }
  return offences;
}
