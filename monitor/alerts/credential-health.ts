/** What is known of a sensor's credential, judged alike by alerts and pages. */
import type { SensorHealth } from '#monitor/sensors/index.ts';
import type { Verdict } from './episode.ts';

/** The last part of a credential's life: its sensor should have renewed it long before, at two thirds. */
const endingShare = 1 / 6;
/** For how long a copy that was seen is worth an alert. */
const copiedSeconds = 3600;

/** Bad: it ends soon, or has ended. */
export function endingVerdict({ leftSeconds, lifeSeconds }: SensorHealth['credential']): Verdict {
  if (leftSeconds === null || lifeSeconds === null) return 'good';
  return leftSeconds <= lifeSeconds * endingShare ? 'bad' : 'good';
}

/** Bad: a credential of this sensor that was replaced is still shown by a host. */
export function copiedVerdict({ misusedAgeSeconds }: SensorHealth['credential']): Verdict {
  return misusedAgeSeconds !== null && misusedAgeSeconds < copiedSeconds ? 'bad' : 'good';
}

/** `its credential ends in 14 days`. */
export function endingText(leftSeconds: number): string {
  if (leftSeconds <= 0) return 'its credential has ended';
  const days = Math.floor(leftSeconds / 86_400);
  return days >= 2
    ? `its credential ends in ${days} days`
    : `its credential ends in ${Math.ceil(leftSeconds / 3600)} h`;
}
