/**
 * Figures as people read them. Every function returns plain text; `null` and `undefined` read "unknown", never 0.
 *
 * Units are decimal (1 kB is 1,000 bytes), as in the specification. Three significant digits, thin grouping by
 * commas; the exact value belongs into a title or the CSV.
 */
const UNKNOWN = 'unknown';

/** A value that may not be known. */
export type Known<T> = T | null | undefined;

/** `12.4 MB`. */
export function formatBytes(bytes: Known<number>): string {
  return scaled(bytes, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
}

/** `12.4 Mbit/s`. */
export function formatBitRate(bitsPerSecond: Known<number>): string {
  return scaled(bitsPerSecond, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']);
}

/** `12.4 kpps`, packets per second. */
export function formatPacketRate(packetsPerSecond: Known<number>): string {
  return scaled(packetsPerSecond, ['pps', 'kpps', 'Mpps', 'Gpps']);
}

/** `1,234,567`, exact. */
export function formatCount(count: Known<number | bigint>): string {
  return count === null || count === undefined ? UNKNOWN : count.toLocaleString('en-US');
}

/** `99.95 %`, of a fraction between 0 and 1. What is short of the whole never reads 100, and what is there never 0. */
export function formatPercent(fraction: Known<number>, digits = 1): string {
  if (fraction === null || fraction === undefined) return UNKNOWN;
  const least = 10 ** -digits;
  const percent = fraction * 100;
  if (percent > 0 && percent < least / 2) return `< ${least.toFixed(digits)} %`;
  return `${(percent < 100 && percent > 100 - least ? 100 - least : percent).toFixed(digits)} %`;
}

/** Money from whole ledger quanta of 0.0001: `$12.34`, and four decimals where a quantum is left, `$0.0125`. */
export function formatMoney(quanta: Known<number | bigint>, currency = 'USD'): string {
  if (quanta === null || quanta === undefined) return UNKNOWN;
  const whole = BigInt(quanta);
  const size = whole < 0n ? -whole : whole;
  const fraction = String(size % 10_000n).padStart(4, '0');
  const digits = fraction.endsWith('00') ? fraction.slice(0, 2) : fraction;
  const amount = `${(size / 10_000n).toLocaleString('en-US')}.${digits}`;
  const sign = whole < 0n ? '−' : '';
  return currency === 'USD' ? `${sign}$${amount}` : `${sign}${amount} ${currency}`;
}

/** What is estimated anyway, to the cent: `$44.56`. */
export function formatMoneyAbout(quanta: Known<number>, currency = 'USD'): string {
  return quanta === null || quanta === undefined
    ? UNKNOWN
    : formatMoney(Math.round(quanta / 100) * 100, currency);
}

/** `November 2026`, of `2026-11`. */
export function formatMonth(period: string): string {
  const name = new Date(`${period}-01T00:00:00Z`).toLocaleString('en-GB', { month: 'long', timeZone: 'UTC' });
  return `${name} ${period.slice(0, 4)}`;
}

/** `2026-11-21 10:14 UTC`; with `seconds`, `2026-11-21 10:14:05 UTC`. */
export function formatTime(ms: Known<number>, precision: 'minutes' | 'seconds' | 'day' = 'minutes'): string {
  if (ms === null || ms === undefined) return UNKNOWN;
  const iso = new Date(ms).toISOString();
  if (precision === 'day') return iso.slice(0, 10);
  return `${iso.slice(0, 10)} ${iso.slice(11, precision === 'seconds' ? 19 : 16)} UTC`;
}

/** `20 s ago`, `3 min ago`, `2 h ago`, `5 days ago`, `3 months ago`, `in 1 year`; `never` for what has not happened. */
export function formatAge(ms: Known<number>, nowMs: number): string {
  if (ms === null || ms === undefined) return 'never';
  const seconds = Math.round((nowMs - ms) / 1000);
  if (Math.abs(seconds) < 2) return 'now';
  const span = formatSpan(Math.abs(seconds));
  return seconds > 0 ? `${span} ago` : `in ${span}`;
}

/** As `formatDuration`, and months and years from 60 days on. A page's script says the same. */
function formatSpan(seconds: number): string {
  const days = seconds / 86_400;
  if (days < 60) return formatDuration(seconds);
  if (days < 345) return `${Math.floor(days / 30.44)} months`;
  const years = Math.max(1, Math.round(days / 365.25));
  return years === 1 ? '1 year' : `${years} years`;
}

/** One unit, rounded down: `45 s`, `12 min`, `3 h`, `5 days`. */
export function formatDuration(seconds: Known<number>): string {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400 * 2) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} days`;
}

function scaled(value: Known<number>, units: readonly string[]): string {
  if (value === null || value === undefined) return UNKNOWN;
  let size = Math.abs(value);
  let step = 0;
  // 999.5 would round to "1000", which reads as the next unit's 1.
  while (size >= 999.5 && step < units.length - 1) {
    size /= 1000;
    step += 1;
  }
  const digits = step === 0 && Number.isInteger(size) ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return `${value < 0 ? '−' : ''}${size.toFixed(digits)} ${units[step]}`;
}
