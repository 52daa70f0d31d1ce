import type { AttackDirection } from '#contracts/incidents.ts';
import { attackDirections } from '#contracts/incidents.ts';
import {
  countingRule,
  type Metric,
  metrics,
  type ThresholdSet,
  thresholdDefaults,
} from '#contracts/sensor-api/detection.ts';
import { checkAddresses } from '#monitor/placements/index.ts';
import {
  countMaxima,
  listLoudMaxima,
  listSpeakers,
  type MaximaRange,
  readPercentilesOf,
  type SpokenPeriod,
} from '#monitor/views/detector-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { explainAddress } from './explain-address.ts';
import type { ProtectionDeps } from './index.ts';
import type { Floors, MinuteMaxima } from './replay.ts';
import { type ComparedIncident, compare, type Finding, floorsOf, replay } from './replay.ts';
import { parseChoices, resolveChoices, type ThresholdChoices, type ThresholdTexts } from './thresholds.ts';

/** How far back detector minutes are kept. */
export const whatIfDays = 90;
const dayMs = 86_400_000;

export interface WhatIf {
  fromMs: number;
  toMs: number;
  /** Minutes with traffic of the address that a detector reported. */
  minutes: number;
  /** Those that were counted by flows, the rule of older sensors. */
  olderMinutes: number;
  /** The thresholds that were asked about. */
  thresholds: ThresholdSet;
  findings: Finding[];
  /** What the present thresholds find in the same minutes. */
  present: Finding[];
  /** Both, incident by incident. */
  compared: ComparedIncident[];
}

/** Blank texts stand for the present thresholds. Throws `protection.invalid`. */
export async function askWhatIf(
  deps: ProtectionDeps,
  siteId: number,
  address: string,
  texts: ThresholdTexts,
  nowMs: number,
): Promise<WhatIf> {
  const asked = parseChoices(texts);
  const { address: canonical, thresholds: present } = await explainAddress(deps, siteId, address);
  return replayThresholds(deps, siteId, canonical, resolveChoices(present, asked), present, nowMs);
}

/** What these thresholds would have found of an address, beside those that sensors judge by. */
export async function replayThresholds(
  deps: Pick<ProtectionDeps, 'reader'>,
  siteId: number,
  address: string,
  thresholds: ThresholdSet,
  present: ThresholdSet,
  nowMs: number,
): Promise<WhatIf> {
  const [fromMs, toMs] = [nowMs - whatIfDays * dayMs, nowMs];
  const range = await rangeOf(deps.reader(), siteId, address, fromMs, toMs);
  const [{ minutes, maxima }, olderMinutes] = await Promise.all([
    readLoud(deps.reader(), range, floorsOf(thresholds, present)),
    countOlder(deps.reader(), range),
  ]);
  return {
    ...{ fromMs, toMs, minutes, olderMinutes, thresholds },
    findings: replay(maxima, thresholds, present),
    present: replay(maxima, present, present),
    compared: compare(maxima, thresholds, present),
  };
}

export interface Learned {
  /** Minutes with traffic, and those among them that older sensors counted by flows. */
  minutes: number;
  olderMinutes: number;
  /** False: too few minutes to propose anything. */
  isEnough: boolean;
  proposals: Proposal[];
}

/** Thresholds from the 99.9th percentile of the minutes with traffic. Nothing is changed. */
export async function learnThresholds(
  deps: ProtectionDeps,
  siteId: number,
  address: string,
  nowMs: number,
): Promise<Learned> {
  const { address: canonical, thresholds } = await explainAddress(deps, siteId, address);
  const range = await rangeOf(deps.reader(), siteId, canonical, nowMs - whatIfDays * dayMs, nowMs);
  const { minutes, percentiles } = await readPercentiles(deps.reader(), range, thresholds);
  const olderMinutes = await countOlder(deps.reader(), range);
  const isEnough = minutes >= learnMinutesMin;
  return {
    ...{ minutes, olderMinutes, isEnough },
    proposals: isEnough ? propose(percentiles, thresholds, thresholdDefaults) : [],
  };
}

/** Proposals as what an address sets, on top of what it sets already. */
export function withProposals(
  choices: ThresholdChoices,
  proposals: readonly Pick<Proposal, 'direction' | 'metric' | 'proposed'>[],
): ThresholdChoices {
  const of = (direction: AttackDirection): Partial<Record<Metric, number | null>> => ({
    ...choices[direction],
    ...Object.fromEntries(
      proposals.filter((one) => one.direction === direction).map((one) => [one.metric, one.proposed]),
    ),
  });
  return Object.fromEntries(
    attackDirections.map((direction) => [direction, of(direction)]),
  ) as unknown as ThresholdChoices;
}

// Detector minutes of one address, without those of sensors that may not speak for it.

const minuteMs = 60_000;

/** The range, with the periods in which each sensor of the site may speak for the address. */
async function rangeOf(
  db: Queryable,
  siteId: number,
  address: string,
  fromMs: number,
  toMs: number,
): Promise<MaximaRange> {
  const { sensors, changesAt } = await listSpeakers(db, siteId, address, countingRule);
  const isForeign = await checkAddresses(
    db,
    sensors.map(({ id }) => ({ sensorId: id, subject: address })),
  );
  // A placement concerns every minute that it overlaps, so who may speak changes only at these minutes.
  const first = Math.floor(fromMs / minuteMs) * minuteMs;
  const edges = new Set([first]);
  for (const at of changesAt) {
    const minute = Math.floor((at * 1000) / minuteMs) * minuteMs;
    for (const edge of [minute, minute + minuteMs]) if (edge > first && edge < toMs) edges.add(edge);
  }
  const periods: SpokenPeriod[] = [];
  for (const { id: sensorId, ruleSince, hasOlderRule } of sensors) {
    // A part of the minute in which the sensor began to count by it may have been counted by the rule before.
    const round = hasOlderRule ? Math.ceil : Math.floor;
    const ruleFrom = round((ruleSince ?? Number.POSITIVE_INFINITY) / 60) * minuteMs;
    const own = ruleFrom > first && ruleFrom < toMs ? [...edges, ruleFrom] : [...edges];
    const starts = own.sort((a, b) => a - b);
    for (const [i, from] of starts.entries()) {
      if (isForeign(sensorId, address, from / 1000)) continue;
      const [last, to] = [periods.at(-1), starts[i + 1] ?? toMs];
      const isOlderRule = from < ruleFrom;
      if (last?.sensorId === sensorId && last.toMs === from && last.isOlderRule === isOlderRule)
        last.toMs = to;
      else periods.push({ sensorId, fromMs: from, toMs: to, isOlderRule });
    }
  }
  return { siteId, address, periods };
}

/** Minutes with traffic that were counted by the rule of before. */
function countOlder(db: Queryable, range: MaximaRange): Promise<number> {
  return countMaxima(db, { ...range, periods: range.periods.filter(({ isOlderRule }) => isOlderRule) });
}

/** Minutes that can matter to thresholds with these floors, in order, and how many minutes have traffic. */
async function readLoud(
  db: Queryable,
  range: MaximaRange,
  floors: Floors,
): Promise<{ minutes: number; maxima: MinuteMaxima[] }> {
  const [minutes, rows] = await Promise.all([countMaxima(db, range), listLoudMaxima(db, range, floors)]);
  const maxima = rows.map(({ minute, isOutbound, isOlderRule, rates }): MinuteMaxima => {
    const values = rates.split(' ').map(Number);
    const half = values.length / 2;
    return {
      minuteMs: minute * 1000,
      direction: isOutbound ? 'outbound' : 'inbound',
      isOlderRule,
      oneSecond: values.slice(0, half),
      tenSeconds: values.slice(half),
    };
  });
  return { minutes, maxima };
}

/** The 99.9th percentile of the strongest second of each metric that is judged, and of how many minutes with traffic. */
async function readPercentiles(
  db: Queryable,
  range: MaximaRange,
  judged: ThresholdSet,
): Promise<{ minutes: number; percentiles: Percentiles }> {
  const minutes = await countMaxima(db, range);
  const of = async (direction: AttackDirection) => {
    const positions = metrics.flatMap((metric, i) => (judged[direction][metric] === null ? [] : [i]));
    const values = await readPercentilesOf(db, range, direction === 'outbound', positions);
    return Object.fromEntries(
      metrics.map((metric, i) => [metric, values[positions.indexOf(i)] ?? null]),
    ) as Record<Metric, number | null>;
  };
  const [inbound, outbound] = await Promise.all(attackDirections.map(of));
  return { minutes, percentiles: { inbound: inbound!, outbound: outbound! } };
}

// Thresholds that fit the traffic that an address has had ("learn"). Pure; a person reviews them before they apply.

/** What the 99.9th percentile is multiplied by. */
const learnFactor = 2;
/** Minutes with traffic from which a percentile says anything: one day. */
const learnMinutesMin = 1440;

/** The 99.9th percentile of what may decide, over the minutes with traffic; null: none. */
type Percentiles = Readonly<Record<AttackDirection, Readonly<Record<Metric, number | null>>>>;

interface Proposal {
  metric: Metric;
  direction: AttackDirection;
  percentile: number;
  now: number | null;
  proposed: number;
}

/**
 * A proposal for each judged metric with traffic that differs by more than a tenth. Thresholds that are not judged stay so.
 * None is lower than a tenth of the default: an address that is quiet now must not be attacked by its first visitors.
 */
export function propose(percentiles: Percentiles, now: ThresholdSet, defaults: ThresholdSet): Proposal[] {
  return (['inbound', 'outbound'] as const).flatMap((direction) =>
    metrics.flatMap((metric): Proposal[] => {
      const percentile = percentiles[direction][metric];
      const current = now[direction][metric];
      // Without traffic there is nothing to learn from.
      if (percentile === null || percentile === 0 || current === null) return [];
      const least = (defaults[direction][metric] ?? current) / 10;
      const proposed = twoDigits(Math.max(percentile * learnFactor, least));
      if (Math.abs(proposed - current) <= current / 10) return [];
      return [{ metric, direction, percentile, now: current, proposed }];
    }),
  );
}

/** Rounded up to two digits: 12,345 becomes 13,000. */
function twoDigits(value: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / step) * step;
}
