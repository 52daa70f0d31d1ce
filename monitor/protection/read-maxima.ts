/** Detector minutes of one address, without those of sensors that may not speak for it. */
import {
  type AttackDirection,
  attackDirections,
  type Metric,
  metrics,
  type ThresholdSet,
} from '#contracts/sensor-api/detection.ts';
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
  const { sensorIds, changesAt } = await listSpeakers(db, siteId, address);
  const isForeign = await checkAddresses(
    db,
    sensorIds.map((sensorId) => ({ sensorId, subject: address })),
  );
  // A placement concerns every minute that it overlaps, so who may speak changes only at these minutes.
  const first = Math.floor(fromMs / minuteMs) * minuteMs;
  const edges = new Set([first]);
  for (const at of changesAt) {
    const minute = Math.floor((at * 1000) / minuteMs) * minuteMs;
    for (const edge of [minute, minute + minuteMs]) if (edge > first && edge < toMs) edges.add(edge);
  }
  const starts = [...edges].sort((a, b) => a - b);
  const periods: SpokenPeriod[] = [];
  for (const sensorId of sensorIds) {
    for (const [i, from] of starts.entries()) {
      if (isForeign(sensorId, address, from / 1000)) continue;
      const [last, to] = [periods.at(-1), starts[i + 1] ?? toMs];
      if (last?.sensorId === sensorId && last.toMs === from) last.toMs = to;
      else periods.push({ sensorId, fromMs: from, toMs: to });
    }
  }
  return { siteId, address, periods };
}

/** Minutes that can matter to thresholds with these floors, in order, and how many minutes have traffic. */
export async function readLoud(
  db: Queryable,
  range: MaximaRange,
  floors: Floors,
): Promise<{ minutes: number; maxima: MinuteMaxima[] }> {
  const [minutes, rows] = await Promise.all([countMaxima(db, range), listLoudMaxima(db, range, floors)]);
  const maxima = rows.map(({ minute, isOutbound, rates }): MinuteMaxima => {
    const values = rates.split(' ').map(Number);
    const half = values.length / 2;
    return {
      minuteMs: minute * 1000,
      direction: isOutbound ? 'outbound' : 'inbound',
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
