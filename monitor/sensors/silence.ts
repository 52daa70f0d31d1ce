import type { SensorState } from './store.ts';

/** A sensor has contact at least once a minute, and a few minutes may be under way; after this time it is silent. */
export const silentAfterSeconds = 180;

export function isSilentFor(seconds: number): boolean {
  return seconds > silentAfterSeconds;
}

/** One that never had contact has the same time from its enrolment on. */
export function isSilent({ lastContactAtMs, enrolledAtMs }: SensorState, nowMs: number): boolean {
  return isSilentFor((nowMs - (lastContactAtMs ?? enrolledAtMs)) / 1000);
}
