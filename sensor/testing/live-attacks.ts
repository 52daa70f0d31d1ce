/** Attacks on a detecting sensor: floods against divided thresholds, and how soon each is decided. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import {
  createFlood,
  createLookups,
  dividedThresholds,
  type FloodShape,
  floodClasses,
  packetsAtThreshold,
  type Stream,
  startSecond,
} from './attack-traffic.ts';
import { createDetectingSensor, type DetectingSensor, detectionPlan } from './detecting-sensor.ts';
import { temporaryFolder } from './sample-minutes.ts';

/** Defaults divided, so that a test needs few packets. */
export const divided = dividedThresholds(200);
const finite = (values: Record<string, number>) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, Number.isFinite(value) ? value : null]),
  );
export const thresholds = {
  inbound: finite({ ...divided.inbound }),
  outbound: finite({ ...divided.outbound }),
};
export const plan = detectionPlan(thresholds);

export function flood(shape: Partial<FloodShape>, from: number, to: number): Stream {
  const full: FloodShape = { class: 'syn_flood', version: 4, direction: 'inbound', ratio: 2, ...shape };
  return {
    step: createFlood(full, 1),
    perSecond: packetsAtThreshold(full, divided) * full.ratio,
    from,
    to,
  };
}

export const background = (to: number): Stream => ({ step: createLookups(9), perSecond: 5, from: 0, to });

export const seconds = (ms: number) => ms / 1000 - startSecond;

/** The first revision of each incident of severity attack. */
export function detected(one: DetectingSensor): IncidentObservation[] {
  return one.incidents().filter(({ revision, severity }) => revision === 1 && severity === 'attack');
}

/** A flood of each class begins at each of these parts of a second: each is one attack of its class, decided in time. */
export async function requireTimely(
  t: TestContext,
  members: number,
  ratio: 1.1 | 2,
  starts: readonly number[],
): Promise<void> {
  for (const name of floodClasses.filter((one) => one !== 'connection_flood')) {
    for (const start of starts) {
      const one = await createDetectingSensor(temporaryFolder(t), { members });
      one.follow(plan);
      const from = 3 + start;
      await one.play([background(12), flood({ class: name, ratio }, from, 12)], ratio === 2 ? 7 : 11);
      const attacks = detected(one);
      assert.deepEqual(
        attacks.map(({ class: found, target }) => [found, target.value]),
        [[name, '192.0.2.7']],
        `${name} at ${ratio}, from ${start}`,
      );
      const took = seconds(attacks[0]!.detectedAtMs) - from;
      assert.ok(took <= (ratio === 2 ? 3 : 6), `${name} at ${ratio} from ${start}: ${took} s`);
      await one.stop();
    }
  }
}
