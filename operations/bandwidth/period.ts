/** Months and days of UTC as texts and moments. */

export type Granularity = 'month' | 'day';

export interface Period {
  /** `2025-11` or `2025-11-03`. */
  name: string;
  startMs: number;
  endMs: number;
}

export function periodOf(name: string): Period {
  const [year, month, day] = name.split('-').map(Number) as [number, number, number | undefined];
  const startMs = Date.UTC(year, month - 1, day ?? 1);
  const endMs = day === undefined ? Date.UTC(year, month, 1) : startMs + 86_400_000;
  return { name, startMs, endMs };
}

/** The period that holds this moment. */
export function periodAt(ms: number, granularity: Granularity): Period {
  return periodOf(new Date(ms).toISOString().slice(0, granularity === 'month' ? 7 : 10));
}

/** The periods that touch the time from `fromMs` up to `toMs`, newest first. */
export function periodsBetween(fromMs: number, toMs: number, granularity: Granularity): Period[] {
  const periods: Period[] = [];
  for (let period = periodAt(toMs - 1, granularity); period.endMs > fromMs; ) {
    periods.push(period);
    period = periodAt(period.startMs - 1, granularity);
  }
  return periods;
}

/** True for a text that names a real month or day. */
export function isPeriodName(text: string): boolean {
  const match = /^(20\d{2})-(0[1-9]|1[0-2])(?:-(\d{2}))?$/.exec(text);
  if (match === null) return false;
  return new Date(periodOf(text).startMs).toISOString().startsWith(text);
}
