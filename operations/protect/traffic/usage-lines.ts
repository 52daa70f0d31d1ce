/** Lines of addresses in a chart: the course of the first rows of a ranking, and of everything else. */
import type { Measure } from '#service-kit/explorer/index.ts';
import type { ExploredLines, RankedDimension, RankedValue, Ranking } from './exploration.ts';
import * as store from './explorer-store.ts';
import { lineOf } from './rank-values.ts';
import type { ServerDimension } from './traffic-names.ts';
import { hasPackets, type LineOptions, type UsageReading } from './usage-reading.ts';

/** A rest below it is what is left of adding up fractions. */
const least: Readonly<Record<Measure, number>> = { bytes: 0.5, packets: 0.0001 };

export async function readUsageLines(
  reading: UsageReading,
  { dimension, rows }: Ranking,
  { count, hasRest }: LineOptions,
): Promise<ExploredLines> {
  const top = rows.slice(0, count);
  const [all, read] = await Promise.all([
    reading.steps(),
    top.length === 0 ? [] : readLineSteps(reading, dimension, top),
  ]);
  const times = all.map((step) => step.at);
  const byLine = Map.groupBy(read, (step) => step.id!);
  const named = top.map((row, line) => {
    const of = new Map(
      byLine.get(line)?.map((step) => [step.at.getTime(), lineOf(step, reading.directions, reading.measure)]),
    );
    const rates = times.map((at) => of.get(at.getTime()) ?? null);
    return { value: row.value, label: row.label, isRest: false, rates };
  });
  if (!hasRest) return { times, lines: named };
  const rest = all.map((step, at) => {
    const whole = lineOf(step, reading.directions, reading.measure);
    if (whole === null) return null;
    return Math.max(
      0,
      named.reduce((left, each) => left - (each.rates[at] ?? 0), whole),
    );
  });
  const isNothing = rest.every((rate) => rate === null || rate < least[reading.measure]);
  const last = { value: null, label: 'Rest', isRest: true, rates: rest };
  return { times, lines: isNothing ? named : [...named, last] };
}

/** Steps of these rows; the id of a step is the place of its row. */
async function readLineSteps(
  reading: UsageReading,
  dimension: RankedDimension,
  top: readonly RankedValue[],
): Promise<store.LineStep[]> {
  const { db, ask, scope, stepSeconds } = reading;
  const range = { fromMs: ask.fromMs, toMs: ask.toMs, stepSeconds, hasPackets: hasPackets(reading) };
  if (dimension === 'address') {
    const of = top.map((row, line) => ({ address: row.value!, serverId: row.serverId!, line }));
    const serverIds = of.map(({ serverId }) => serverId);
    return store.listLineSteps(db, { ...scope, serverIds }, range, { addresses: of });
  }
  const of =
    dimension === 'server'
      ? top.map(({ serverId }, line) => ({ id: serverId!, line }))
      : await listServersOf(reading, dimension as ServerDimension, top);
  const serverIds = of.map(({ id }) => id);
  return store.listLineSteps(db, { ...scope, serverIds }, range, { servers: of });
}

/** The servers of these rows, with the place of their row. */
async function listServersOf(
  { names, sums }: UsageReading,
  dimension: ServerDimension,
  rows: readonly RankedValue[],
): Promise<{ id: number; line: number }[]> {
  const lines = new Map(rows.map((row, line) => [row.value, line]));
  return (await sums.server()).flatMap(({ serverId }) => {
    const line = lines.get(names.filterValueOf(dimension, serverId));
    return line === undefined ? [] : [{ id: serverId, line }];
  });
}
