/**
 * When the daily full scan of a site begins: a local time in an IANA time zone, through daylight saving (NET-2.7.4).
 *
 * A time that a change of the clock leaves out counts as much later as the clock was put forward (02:30 becomes 03:30); of a
 * time that happens twice the first one counts.
 */
import { CodedError } from '#common/errors/index.ts';

export interface ScanSchedule {
  /** Local, such as `22:00`. */
  time: string;
  /** IANA name, such as `America/New_York`. */
  zone: string;
}

export const defaultSchedule: ScanSchedule = { time: '22:00', zone: 'America/New_York' };

const dayMs = 86_400_000;
const zoneLengthMax = 64;

/** Throws `scans.invalid` with what to correct. */
export function parseSchedule(given: ScanSchedule): ScanSchedule {
  const time = given.time.trim();
  if (!/^([01]\d|2[0-3]):[0-5]\d$/.test(time))
    throw new CodedError('scans.invalid', 'Enter the time as hours and minutes from 00:00 to 23:59.');
  const zone = given.zone.trim();
  // The engine also takes offsets such as +01:00, which know no daylight saving.
  const isName = /^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(zone) && zone.length <= zoneLengthMax;
  try {
    if (!isName) throw new RangeError(zone);
    createReader(zone);
  } catch {
    throw new CodedError(
      'scans.invalid',
      `There is no time zone "${zone.slice(0, zoneLengthMax)}". Enter an IANA name such as Europe/Berlin or UTC.`,
    );
  }
  return { time, zone };
}

/** The latest moment not after `nowMs` at which the daily scan was to begin, milliseconds since 1970. */
export function latestBoundary({ time, zone }: ScanSchedule, nowMs: number): number {
  const offsetAt = createReader(zone);
  const [hours, minutes] = time.split(':').map(Number) as [number, number];
  const localMs = nowMs + offsetAt(nowMs);
  const today = Math.floor(localMs / dayMs) * dayMs;
  // A zone that changed its side of the date line has no yesterday; two days before there is always one.
  for (const day of [1, 0, -1, -2, -3]) {
    const wallMs = today + day * dayMs + (hours * 60 + minutes) * 60_000;
    const boundary = toInstant(wallMs, offsetAt);
    if (boundary <= nowMs) return boundary;
  }
  throw new Error(`no boundary of ${time} in ${zone}`);
}

type OffsetReader = (atMs: number) => number;

function toInstant(wallMs: number, offsetAt: OffsetReader): number {
  const before = offsetAt(wallMs - dayMs);
  const after = offsetAt(wallMs + dayMs);
  // Of a time that happens twice, the first is the one with the offset from before the change.
  for (const offset of [before, after]) if (offsetAt(wallMs - offset) === offset) return wallMs - offset;
  return wallMs - before;
}

const readers = new Map<string, OffsetReader>();

/** How far a zone's clocks are ahead of UTC at a moment. Throws `RangeError` for an unknown zone. */
function createReader(zone: string): OffsetReader {
  const known = readers.get(zone);
  if (known) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: zone, calendar: 'gregory', numberingSystem: 'latn', hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' },
    second: 'numeric',
  });
  const reader = (atMs: number) => {
    const wholeMs = Math.floor(atMs / 1000) * 1000;
    const parts = Object.fromEntries(
      format.formatToParts(wholeMs).map(({ type, value }) => [type, Number(value)]),
    );
    const { year, month, day, hour, minute, second } = parts;
    return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!) - wholeMs;
  };
  readers.set(zone, reader);
  return reader;
}
