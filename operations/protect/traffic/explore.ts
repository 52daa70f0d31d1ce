/**
 * One look at the traffic of servers: rates by a dimension, and what used the most in the range.
 *
 * Servers, addresses and directions are known of every minute that is kept; applications and ports of the last 24 hours
 * alone (NET-2.4.4), so a view that names them begins there at the earliest and says so.
 */
import { type Dimension, type Filter, noPort, passes, type Sides } from '#service-kit/explorer/index.ts';
import type { IdentityStep, IdentityUse, UsageStep } from './usage-store.ts';

/** Bytes of one value of a dimension. */
export interface Rank {
  value: string;
  inboundBytes: number;
  outboundBytes: number;
  /** Of all bytes of the view, both directions; null when there are none. */
  share: number | null;
  /** Bytes of the time before; null when it was not observed. */
  previousBytes: number | null;
  lastSentAt: Date | null;
}

/** One line of the chart, a value for each step. */
export interface ExploredSeries {
  value: string;
  /** Bits per second; null where nothing was observed. */
  rates: (number | null)[];
}

/** What is left when the largest are named: other values, and bytes of which no application is known. */
export const restValue = 'Rest';

/** Known of applications alone. */
const ofApplications: readonly Dimension[] = ['application', 'port', 'transport'];

/** True when the view can only be answered from applications. */
export function namesApplications(filters: readonly Filter[]): boolean {
  return filters.some(({ dimension }) => ofApplications.includes(dimension));
}

/** `tcp/443`, or what is known of it. */
export function serviceOf(of: { transport: string | null; serverPort: number | null }): string {
  if (of.transport === null) return of.serverPort === null ? 'unknown' : String(of.serverPort);
  return of.serverPort === null ? of.transport : `${of.transport}/${of.serverPort}`;
}

/** Whether an application passes the filters; names are compared without regard to case. */
export function passesIdentity(
  filters: readonly Filter[],
  of: { name: string; transport: string | null; serverPort: number | null },
): boolean {
  const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
  return (
    passes(filters, 'application', (value) => same(value, of.name)) &&
    passes(filters, 'port', (value) =>
      [serviceOf(of), String(of.serverPort ?? noPort)].some((one) => same(value, one)),
    ) &&
    passes(filters, 'transport', (value) => same(value, of.transport ?? ''))
  );
}

/** Applications added up by what `nameOf` says, most bytes first. */
export function rankIdentities(
  rows: readonly IdentityUse[],
  nameOf: (row: IdentityUse) => string,
  view: { allBytes: number; isPreviousKnown: boolean; directions: Sides },
): Rank[] {
  const ranks = [...Map.groupBy(rows, nameOf)].map(([value, of]) => {
    const sum = (pick: (row: IdentityUse) => number) => of.reduce((total, row) => total + pick(row), 0);
    return {
      value,
      inboundBytes: view.directions.in ? sum((row) => row.inboundBytes) : 0,
      outboundBytes: view.directions.out ? sum((row) => row.outboundBytes) : 0,
      previousBytes:
        view.isPreviousKnown && view.directions.in && view.directions.out
          ? sum((row) => row.previousBytes)
          : null,
      lastSentAt: new Date(Math.max(...of.map((row) => row.lastSentAt.getTime()))),
    };
  });
  return ranks
    .map((rank) => ({ ...rank, share: shareOf(bytesOf(rank), view.allBytes) }))
    .sort((a, b) => bytesOf(b) - bytesOf(a) || a.value.localeCompare(b.value));
}

export function bytesOf({
  inboundBytes,
  outboundBytes,
}: Pick<Rank, 'inboundBytes' | 'outboundBytes'>): number {
  return inboundBytes + outboundBytes;
}

const shareOf = (bytes: number, all: number) => (all === 0 ? null : bytes / all);

/**
 * Rates of the largest values and of the rest. A step's bytes are spread over its observed minutes, as the rates of servers
 * are; a step without an observation is a gap.
 */
export function seriesOfIdentities(
  steps: readonly IdentityStep[],
  observed: readonly UsageStep[],
  view: {
    /** The values in their order, and how many of them get a line. */
    values: readonly string[];
    top: number;
    valueOf: (step: IdentityStep) => string | null;
    directions: Sides;
    /** Whether bytes of no application belong to the rest. */
    hasUnnamed: boolean;
    /** Applications of steps before it are not known. */
    sinceMs: number;
  },
): ExploredSeries[] {
  const { in: hasIn, out: hasOut } = view.directions;
  const count = (inbound: number, outbound: number) => (hasIn ? inbound : 0) + (hasOut ? outbound : 0);
  const named = new Set(view.values.slice(0, view.top));
  const sums = new Map<string, Map<number, number>>();
  for (const step of steps) {
    const value = view.valueOf(step);
    if (value === null) continue;
    const key = named.has(value) ? value : restValue;
    const of = sums.get(key) ?? new Map<number, number>();
    const at = step.at.getTime();
    of.set(at, (of.get(at) ?? 0) + count(step.inboundBytes, step.outboundBytes));
    sums.set(key, of);
  }
  const rate = (bytes: number, minutes: number) => (bytes * 8) / (minutes * 60);
  const ratesOf = (value: string) =>
    observed.map(({ at, minutes }) =>
      at.getTime() < view.sinceMs || minutes === 0
        ? null
        : rate(sums.get(value)?.get(at.getTime()) ?? 0, minutes),
    );
  const series = [...named].map((value) => ({ value, rates: ratesOf(value) }));
  if (view.hasUnnamed)
    return [...series, { value: restValue, rates: restOf(series, observed, view.sinceMs, count) }];
  return sums.has(restValue) ? [...series, { value: restValue, rates: ratesOf(restValue) }] : series;
}

/** What of the whole traffic is in none of the lines. */
function restOf(
  series: readonly ExploredSeries[],
  observed: readonly UsageStep[],
  sinceMs: number,
  count: (inbound: number, outbound: number) => number,
): (number | null)[] {
  return observed.map((step, index) => {
    if (step.at.getTime() < sinceMs || step.minutes === 0) return null;
    const all = (count(step.inboundBytes ?? 0, step.outboundBytes ?? 0) * 8) / (step.minutes * 60);
    return Math.max(0, all - series.reduce((sum, each) => sum + (each.rates[index] ?? 0), 0));
  });
}
