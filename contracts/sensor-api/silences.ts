/**
 * Gaps that tell of a silence, and what takes them back. A clock that was minutes ahead names minutes as silent that are
 * heard once it is set: what was heard from end to end was not silent.
 *
 * What was heard and lost (`refused`, `spool_damaged`) and a minute that is more or less than one (`clock_step`) stays named.
 */
import type { GapReason, TelemetryGap, TelemetryMinute } from './telemetry.ts';

const silences: ReadonlySet<string> = new Set<GapReason>(['sensor_down', 'capture_failed', 'storage_full']);

/** A minute of one capture. */
export interface HeardMinute {
  capture: string;
  minute: number;
}

type Gap = Omit<TelemetryGap, 'reason'> & { reason: string };

/** The minutes of an upload that were heard from end to end, and that no gap beside them names. */
export function wholeMinutes(upload: {
  minutes: readonly Pick<TelemetryMinute, 'minute' | 'capture' | 'observedMs'>[];
  gaps: readonly Gap[];
}): HeardMinute[] {
  return upload.minutes
    .filter((one) => one.observedMs >= 60_000 && !upload.gaps.some((gap) => names(gap, one)))
    .map(({ capture, minute }) => ({ capture, minute }));
}

/** True when the gap tells that nothing was heard, or nothing kept of it. */
export function isSilence(gap: Gap): boolean {
  return silences.has(gap.reason);
}

/** True when the gap tells of a silence in this minute of this capture; a blank name means every capture. */
export function tellsSilence(gap: Gap, heard: HeardMinute): boolean {
  return isSilence(gap) && names(gap, heard);
}

/**
 * What is left of a gap after these minutes of its sensor were heard whole. Where it is of every capture and some of them
 * heard a minute, it goes on there for the others of `captures`.
 */
export function withoutHeard<G extends Gap>(
  gap: G,
  heard: readonly HeardMinute[],
  captures: readonly string[],
): G[] {
  const denied = Map.groupBy(
    heard.filter((one) => tellsSilence(gap, one)),
    (one) => one.minute,
  );
  if (denied.size === 0) return [gap];
  const left: G[] = [];
  let fromMinute = gap.fromMinute;
  const keepUntil = (end: number) => {
    if (fromMinute < end) left.push({ ...gap, fromMinute, toMinute: end - 60 });
  };
  for (const [minute, hearers] of [...denied].sort(([a], [b]) => a - b)) {
    keepUntil(minute);
    fromMinute = minute + 60;
    if (gap.capture !== '') continue;
    const others = captures.filter((name) => !hearers.some((one) => one.capture === name));
    for (const capture of others) left.push({ ...gap, fromMinute: minute, toMinute: minute, capture });
  }
  keepUntil(gap.toMinute + 60);
  return left;
}

function names(gap: Gap, { capture, minute }: HeardMinute): boolean {
  return (
    (gap.capture === '' || gap.capture === capture) && gap.fromMinute <= minute && minute <= gap.toMinute
  );
}
