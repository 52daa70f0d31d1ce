/** Checks of the spool's proofs: compares arrived uploads with the bytes of each minute and the reported commits. */
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';

export interface Truth {
  /** The proof's first minute, for messages. */
  startMinute: number;
  /** Bytes of a complete minute. */
  bytesOfMinute(minute: number): number;
  /** Minutes that the sensor reported as committed. */
  committed: ReadonlySet<number>;
}

/** The errors in the arrived uploads, as sentences. */
export function judgeMinutes(uploads: readonly TelemetryUpload[], truth: Truth): string[] {
  const offences: string[] = [];
  const arrived = new Map<number, { count: number; observedMs: number; bytes: number }>();
  const gaps = new Set<number>();
  const refused = new Set<number>();
  for (const upload of uploads) {
    for (const one of upload.minutes) {
      const before = arrived.get(one.minute)?.count ?? 0;
      arrived.set(one.minute, { count: before + 1, observedMs: one.observedMs, bytes: one.totals.ipBytes });
    }
    for (const gap of upload.gaps) {
      for (let minute = gap.fromMinute; minute <= gap.toMinute; minute += 60) {
        gaps.add(minute);
        if (gap.reason === 'refused') refused.add(minute);
      }
    }
  }
  if (arrived.size + gaps.size === 0) return ['nothing arrived at all'];
  const known = [...arrived.keys(), ...gaps, ...truth.committed].sort((a, b) => a - b);
  for (let minute = known[0]!; minute <= known.at(-1)!; minute += 60) {
    const at = `minute ${(minute - truth.startMinute) / 60}`;
    const one = arrived.get(minute);
    if (!one && !gaps.has(minute)) offences.push(`${at} is missing without a gap`);
    if (one && one.count > 1) offences.push(`${at} arrived ${one.count} times`);
    if (one?.observedMs === 60_000 && one.bytes !== truth.bytesOfMinute(minute))
      offences.push(`${at} has wrong bytes`);
    if (one && one.observedMs < 60_000 && !gaps.has(minute)) offences.push(`${at} is partial without a gap`);
    if (one && one.observedMs === 60_000 && gaps.has(minute)) offences.push(`${at} is whole and a gap`);
    if (truth.committed.has(minute) && !one && !refused.has(minute))
      offences.push(`${at} was committed and is lost`);
  }
  return offences;
}
