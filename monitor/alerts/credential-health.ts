/** State of a sensor's credential, for alerts and pages. */
import type { SensorHealth } from '#monitor/sensors/index.ts';
import type { SubjectStatus } from './episode.ts';

/** Last part of a credential's life: the sensor should have renewed it at two thirds. */
const endingShare = 1 / 6;
/** How long a detected copy is worth an alert. */
const copiedSeconds = 3600;

/** Bad: it expires soon or has expired. */
export function endingVerdict({ leftSeconds, lifeSeconds }: SensorHealth['credential']): SubjectStatus {
  if (leftSeconds === null || lifeSeconds === null) return 'good';
  return leftSeconds <= lifeSeconds * endingShare ? 'bad' : 'good';
}

/** Bad: a host still uses a replaced credential of this sensor. */
export function copiedVerdict({ misusedAgeSeconds }: SensorHealth['credential']): SubjectStatus {
  return misusedAgeSeconds !== null && misusedAgeSeconds < copiedSeconds ? 'bad' : 'good';
}

/** `its credential expires in 14 days`. */
export function endingText(leftSeconds: number): string {
  if (leftSeconds <= 0) return 'its credential has expired';
  const days = Math.floor(leftSeconds / 86_400);
  return days >= 2
    ? `its credential expires in ${days} days`
    : `its credential expires in ${Math.ceil(leftSeconds / 3600)} h`;
}
