/** Formats times of frames. */

export interface InstantOfFrame {
  seconds: number;
  nanoseconds: number;
}

/** RFC 3339 in UTC, with microseconds, or nanoseconds if any. */
export function formatInstant(instant: InstantOfFrame | null): string | null {
  if (!instant) return null;
  const digits = String(instant.nanoseconds).padStart(9, '0');
  const fraction = digits.endsWith('000') ? digits.slice(0, 6) : digits;
  return `${new Date(instant.seconds * 1000).toISOString().slice(0, -5)}.${fraction}Z`;
}

/** Start of a UTC minute, unix seconds, as `2026-01-31T12:00:00Z`. */
export function formatMinute(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}

/** Unix milliseconds, with microseconds as a fraction, as text. */
export function formatMs(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const micros = Math.min(999_999, Math.round((ms - seconds * 1000) * 1000));
  return formatInstant({ seconds, nanoseconds: micros * 1000 })!;
}
