/** Detector minutes of one address, without those of sensors that may not speak for it. */
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import { countingRule, type Metric, metrics, type ThresholdSet } from '#contracts/sensor-api/detection.ts';
import { checkAddresses } from '#monitor/placements/index.ts';
import {
  countMaxima,
  listLoudMaxima,
  listSpeakers,
  type MaximaRange,
  readPercentilesOf,
  type SpokenPeriod,
} from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Percentiles } from './learn.ts';
import type { Floors, MinuteMaxima } from './replay.ts';

const minuteMs = 60_000;

/** The range, with the periods in which each sensor of the site may speak for the address. */
export async function rangeOf(
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
  for (const { id: sensorId, ruleSince } of sensors) {
    // Of the minute in which the sensor began to count by it, a part was counted by the rule before.
    const ruleFrom = Math.ceil((ruleSince ?? Number.POSITIVE_INFINITY) / 60) * minuteMs;
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
export function countOlder(db: Queryable, range: MaximaRange): Promise<number> {
  return countMaxima(db, { ...range, periods: range.periods.filter(({ isOlderRule }) => isOlderRule) });
}

/** Minutes that can matter to thresholds with these floors, in order, and how many minutes have traffic. */
export async function readLoud(
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
export async function readPercentiles(
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
