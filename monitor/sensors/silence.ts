import type { SensorState } from './store.ts';

/** A sensor has contact at least once a minute, and a few minutes may be under way; after this time it is silent. */
export const silentAfterSeconds = 180;

/** Null: it never had contact. */
export function isSilentFor(seconds: number | null): boolean {
  return seconds === null || seconds > silentAfterSeconds;
}

export function isSilent({ lastContactAtMs }: SensorState, nowMs: number): boolean {
  return isSilentFor(lastContactAtMs === null ? null : (nowMs - lastContactAtMs) / 1000);
}
