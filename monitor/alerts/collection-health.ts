/** What a sensor's newest words say of its captures and of its clock; alerts and pages read the same. */
import type { SensorHealth } from '#monitor/sensors/index.ts';
import type { CaptureOutage } from '#monitor/traffic/index.ts';

/** A sensor is heard of at least once a minute. */
export const heardSeconds = 120;
/** What a sensor told of its clock and captures longer ago says nothing about now; it tells twice a minute. */
const toldSeconds = 90;
/** How far a sensor's clock may be off. */
export const skewSeconds = { goodBelow: 20, badFrom: 30 };
/** A minute arrives once a minute; with one that is late this is the second that is missing. */
export const missingSeconds = { goodBelow: 120, badFrom: 150 };
/** A sensor tries a refused upload again at least this often, or goes on without it. */
export const refusedSeconds = 180;
/** The last minutes in which captures are looked for. */
export const outageMinutes = 5;

export interface CaptureHealth {
  name: string;
  role: 'uplink' | 'bridge';
  /** Null: nothing is known. */
  isListening: boolean | null;
}

/** How far the sensor's clock is ahead; negative: behind; null: it did not tell of late. */
export function skewSecondsOf({ condition }: Pick<SensorHealth, 'condition'>): number | null {
  return condition && condition.ageSeconds <= toldSeconds ? condition.skewSeconds : null;
}

/**
 * The sensor's captures: as it tells, or for an older sensor as its minutes and gaps show. A capture that it does not tell
 * of any more was removed, and is not listed.
 */
export function captureStates(sensor: SensorHealth, outages: readonly CaptureOutage[]): CaptureHealth[] {
  const { condition } = sensor;
  if (condition?.captures && condition.ageSeconds <= toldSeconds) return condition.captures;
  const known = outages.filter((one) => one.sensorId === sensor.id);
  const isHeard = sensor.minuteAgeSeconds !== null && sensor.minuteAgeSeconds <= heardSeconds;
  return known.flatMap<CaptureHealth>(({ name, role, newestMinute, failedThrough }) => {
    // One minute is both: the one in which it failed, and the one in which it began to listen again.
    if (failedThrough !== null && failedThrough > (newestMinute ?? 0))
      return [{ name, role, isListening: false }];
    if (newestMinute !== null) return [{ name, role, isListening: true }];
    return isHeard ? [] : [{ name, role, isListening: null }];
  });
}
