/** The state of a sensor's captures and clock from its newest report, for alerts and pages. */
import type { CaptureOutage } from '#monitor/facts/index.ts';
import type { SensorHealth } from '#monitor/sensors/index.ts';

/** A sensor has contact at least once a minute. */
export const heardSeconds = 120;
/** An older report of clock and captures is not used; sensors report twice a minute. */
const toldSeconds = 90;
/** Allowed error of a sensor's clock. */
export const skewSeconds = { goodBelow: 20, badFrom: 30 };
/** Minutes arrive once a minute; with one late minute, this means that the second is missing. */
export const missingSeconds = { goodBelow: 120, badFrom: 150 };
/** A sensor retries a refused upload, or skips it, at least this often. */
export const refusedSeconds = 180;
/** Number of minutes in which captures are looked up. */
export const outageMinutes = 5;

export interface CaptureHealth {
  name: string;
  role: 'uplink' | 'bridge';
  /** Null: unknown. */
  isListening: boolean | null;
}

/** How far the sensor's clock is ahead; negative: behind; null: no recent report. */
export function skewSecondsOf({ condition }: Pick<SensorHealth, 'condition'>): number | null {
  return condition && condition.ageSeconds <= toldSeconds ? condition.skewSeconds : null;
}

/**
 * The sensor's captures: from its report, or for an older sensor from its minutes and gaps. A capture that is no longer
 * reported was removed.
 */
export function captureStates(sensor: SensorHealth, outages: readonly CaptureOutage[]): CaptureHealth[] {
  const { condition } = sensor;
  if (condition?.captures && condition.ageSeconds <= toldSeconds) return condition.captures;
  const known = outages.filter((one) => one.sensorId === sensor.id);
  const isHeard = sensor.minuteAgeSeconds !== null && sensor.minuteAgeSeconds <= heardSeconds;
  return known.flatMap<CaptureHealth>(({ name, role, newestMinute, failedThrough }) => {
    // The minute of a failure may also be the minute in which the capture began to listen again.
    if (failedThrough !== null && failedThrough > (newestMinute ?? 0))
      return [{ name, role, isListening: false }];
    if (newestMinute !== null) return [{ name, role, isListening: true }];
    return isHeard ? [] : [{ name, role, isListening: null }];
  });
}
