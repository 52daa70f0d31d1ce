/**
 * Which observations are of one incident, and what they make of it.
 *
 * Both follow from the observations alone, so the order in which they arrive, and how often, changes nothing. Two
 * observations of one key are of one incident when their times overlap, also with different classes: captures see different parts
 * of an attack. With the same class they are also when one began within five minutes of the other's end. An incident's
 * rates and totals are those of the strongest capture and never the sum of captures that saw the same traffic.
 */
import type { IncidentView, Observation, ReportedIncident } from './incident.ts';

/** An observation older than this says nothing of now (NET-3.2). */
export const staleMs = 90_000;
/** The same attack within this time after its end is the same incident. */
export const reopenMs = 300_000;
/** Heartbeats are ten seconds apart, and clocks of hosts differ a little: so much may lie between what overlaps. */
const overlapMs = 30_000;

const endOf = ({ said }: Observation) => Math.max(said.lastObservedAtMs, said.recoveredAtMs ?? 0);

/** Observations of one key, divided into incidents; each in the order of their starts. */
export function divide(observations: readonly Observation[]): Observation[][] {
  const sorted = observations.toSorted(byStart);
  const groups = new Map(sorted.map((one): [Observation, Observation[]] => [one, [one]]));
  const join = (a: Observation, b: Observation) => {
    const [into, from] = [groups.get(a)!, groups.get(b)!];
    if (into === from) return;
    into.push(...from);
    for (const one of from) groups.set(one, into);
  };
  joinRuns(sorted, overlapMs, join);
  for (const ofClass of Map.groupBy(sorted, ({ said }) => said.class).values())
    joinRuns(ofClass, reopenMs, join);
  return [...new Set(groups.values())]
    .map((group) => group.toSorted(byStart))
    .sort((a, b) => byStart(a[0]!, b[0]!));
}

/** Joins neighbours with at most `gapMs` between the end of all before and the next start. */
function joinRuns(
  sorted: readonly Observation[],
  gapMs: number,
  join: (a: Observation, b: Observation) => void,
): void {
  let last: Observation | null = null;
  for (const one of sorted) {
    if (last && one.said.startedAtMs - endOf(last) <= gapMs) join(last, one);
    if (!last || endOf(one) > endOf(last)) last = one;
  }
}

/** What the observations of one incident make of it. `isReleased`: the target has left the sensor's node. */
export function combine(
  observations: readonly Observation[],
  nowMs: number,
  isReleased: (one: Observation) => boolean,
): IncidentView {
  const all = observations.map(({ said }) => said);
  const recoveredAtMs = recoveryOf(observations, isReleased);
  const lastObservedAtMs = Math.max(...all.map((said) => said.lastObservedAtMs));
  const isFresh = lastObservedAtMs >= nowMs - staleMs;
  const state = recoveredAtMs !== null ? 'recovered' : isFresh ? 'active' : 'stale';
  const strongest = strongestOf(observations);
  return {
    class: strongest.class,
    state,
    startedAtMs: Math.min(...all.map((said) => said.startedAtMs)),
    detectedAtMs: Math.min(...all.map((said) => said.detectedAtMs)),
    lastObservedAtMs,
    recoveredAtMs,
    measured: {
      vectors: strongest.vectors,
      current: state === 'active' ? currentOf(all, lastObservedAtMs) : null,
      peak: peakOf(all),
      totals: totalsOf(observations),
      coverage: state === 'stale' ? 'unknown' : strongest.coverage,
      threshold: strongest.threshold,
      deviceKey: strongest.deviceKey,
      ...(strongest.isSpoofed && { isSpoofed: true }),
      ...filterOf(all),
      observations: observations.length,
      hasEvidence: all.some(({ hasEvidence }) => hasEvidence),
    },
  };
}

/**
 * The last recovery, once every live observation has been recovered by its sensor; else null. One whose target has left its
 * node can't be recovered any more: it counts as long as no other sensor has.
 */
function recoveryOf(observations: readonly Observation[], isReleased: (one: Observation) => boolean) {
  let last: number | null = null;
  for (const one of observations) {
    const { recoveredAtMs } = one.said;
    if (recoveredAtMs !== null) last = Math.max(last ?? 0, recoveredAtMs);
    else if (!isReleased(one)) return null;
  }
  if (last === null) return null;
  // What was still observed after that is not over.
  return observations.every(({ said }) => said.recoveredAtMs !== null || said.lastObservedAtMs <= last)
    ? last
    : null;
}

/** The capture with the highest peak; one with a class of its own before one that could not tell. */
function strongestOf(observations: readonly Observation[]): ReportedIncident {
  const named = observations.filter(({ said }) => said.class !== 'other');
  const sorted = (named.length > 0 ? named : observations).toSorted(
    (a, b) => b.said.peak.bps - a.said.peak.bps || b.said.peak.pps - a.said.peak.pps || byIdentity(a, b),
  );
  return sorted[0]!.said;
}

/** The highest present rates of one capture, of those that were heard lately. */
function currentOf(all: readonly ReportedIncident[], lastObservedAtMs: number): ReportedIncident['current'] {
  const rates = all.flatMap(({ current, lastObservedAtMs: at }) =>
    current !== null && at >= lastObservedAtMs - staleMs ? [current] : [],
  );
  return rates.toSorted((a, b) => b.bps - a.bps || b.pps - a.pps)[0] ?? null;
}

/** Each uplink drops packets of its own, so what several did adds up. */
function filterOf(all: readonly ReportedIncident[]): Pick<ReportedIncident, 'filter'> {
  const told = all.flatMap(({ filter, state }) =>
    filter ? [{ ...filter, isOver: state === 'recovered' }] : [],
  );
  if (told.length === 0) return {};
  const amount = (name: 'matched' | 'dropped' | 'passed') => ({
    packets: told.reduce((sum, one) => sum + one[name].packets, 0),
    bytes: told.reduce((sum, one) => sum + one[name].bytes, 0),
  });
  const going = told.filter(({ isOver }) => !isOver);
  const current = {
    bps: going.reduce((sum, one) => sum + one.current.bps, 0),
    pps: going.reduce((sum, one) => sum + one.current.pps, 0),
  };
  return {
    filter: {
      ...{ matched: amount('matched'), dropped: amount('dropped'), passed: amount('passed'), current },
      isDropping: going.some(({ isDropping }) => isDropping),
      problem: going.find(({ problem }) => problem !== '')?.problem ?? '',
    },
  };
}

function peakOf(all: readonly ReportedIncident[]): ReportedIncident['peak'] {
  const bps = all.toSorted((a, b) => b.peak.bps - a.peak.bps || a.peak.bpsAtMs - b.peak.bpsAtMs)[0]!.peak;
  const pps = all.toSorted((a, b) => b.peak.pps - a.peak.pps || a.peak.ppsAtMs - b.peak.ppsAtMs)[0]!.peak;
  return { bps: bps.bps, bpsAtMs: bps.bpsAtMs, pps: pps.pps, ppsAtMs: pps.ppsAtMs };
}

/** Of observations one after the other the sum, as of both nodes of a server that moved; of simultaneous ones the largest. */
function totalsOf(observations: readonly Observation[]): Amount {
  return heaviest(
    observations.map(({ said }) => ({
      fromMs: said.startedAtMs,
      toMs: Math.max(said.lastObservedAtMs, said.startedAtMs),
      amount: said.totals,
    })),
  );
}

function byStart(a: Observation, b: Observation): number {
  return a.said.startedAtMs - b.said.startedAtMs || byIdentity(a, b);
}

function byIdentity(a: Observation, b: Observation): number {
  return a.sensorId - b.sensorId || (a.said.id < b.said.id ? -1 : a.said.id > b.said.id ? 1 : 0);
}

interface Amount {
  bytes: number;
  packets: number;
}

interface Span {
  fromMs: number;
  toMs: number;
  amount: Amount;
}

/** True when the first has more bytes, or as many and more packets. */
function isHeavier(a: Amount, b: Amount): boolean {
  return a.bytes > b.bytes || (a.bytes === b.bytes && a.packets > b.packets);
}

/**
 * The largest sum of amounts whose spans don't overlap (weighted interval scheduling). Simultaneous spans are views of the
 * same traffic and never add.
 */
function heaviest(spans: readonly Span[]): Amount {
  const sorted = spans.toSorted((a, b) => a.toMs - b.toMs || a.fromMs - b.fromMs);
  const best: Amount[] = [{ bytes: 0, packets: 0 }];
  for (const [i, { fromMs, amount }] of sorted.entries()) {
    // How many of those before end no later than this one starts.
    let before = i;
    while (before > 0 && sorted[before - 1]!.toMs > fromMs) before -= 1;
    const earlier = best[before]!;
    const taken = { bytes: earlier.bytes + amount.bytes, packets: earlier.packets + amount.packets };
    best.push(isHeavier(taken, best[i]!) ? taken : best[i]!);
  }
  const sum = best.at(-1)!;
  return {
    bytes: Math.min(sum.bytes, Number.MAX_SAFE_INTEGER),
    packets: Math.min(sum.packets, Number.MAX_SAFE_INTEGER),
  };
}
