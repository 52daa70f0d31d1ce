/** The course of applications: of the first rows of a ranking, and of what is left. */

import {
  groupOf,
  inOf,
  listCourse,
  listSteps,
  type Nameable,
  type Named,
  nameOf,
  outOf,
  type Reading,
  ratesOf,
} from './application-reading.ts';
import type * as store from './application-store.ts';
import type { ExploredCourse, ExploredLine, ExploredLines, RankedDimension, Ranking } from './exploration.ts';
import type { UsageReader } from './usage-reader.ts';
import type { LineOptions } from './usage-reading.ts';

const keyOf = ({ value, label, service }: Pick<Named, 'value' | 'label' | 'service'>) =>
  JSON.stringify([value, label, service]);

/** The course of what these rows of a ranking were made of. */
async function listStepsOf(
  reading: Reading,
  dimension: RankedDimension,
  rows: readonly store.ApplicationSum[],
): Promise<store.ApplicationStep[]> {
  if (rows.every(({ steps }) => steps !== null)) return rows.flatMap(({ steps }) => steps!);
  const isByName = dimension === 'application' || dimension === 'service';
  const serverIds = rows.flatMap(({ serverId }) => serverId ?? []);
  return listSteps(reading, groupOf[dimension], {
    names: isByName ? [...new Set(rows.map(({ name }) => name!))] : undefined,
    serverIds: serverIds.length > 0 ? serverIds : undefined,
  });
}

export async function readLines(
  reading: Reading,
  ranking: Ranking,
  { count, hasRest }: LineOptions,
  usage: UsageReader,
): Promise<ExploredLines> {
  const { dimension } = ranking;
  const top = ranking.rows.slice(0, count);
  const isTop = new Set(top.map(keyOf));
  const lineOf = (row: Nameable) => keyOf(nameOf(reading, row, dimension));
  const ranked = reading.ranked.get(ranking);
  if (ranked === undefined) throw new TypeError('the ranking is of another exploration');
  // What is left is the other applications where they alone count, and all other traffic otherwise.
  const needsOthers = hasRest && reading.isFiltered;
  const [course, steps, all] = await Promise.all([
    usage.course(reading.stepSeconds),
    listStepsOf(
      reading,
      dimension,
      ranked.filter((row) => isTop.has(lineOf(row))),
    ),
    needsOthers ? listCourse(reading) : [],
  ]);
  const byLine = new Map<string, Map<number, number>>();
  const others = bytesByTime(reading, all);
  for (const [line, of] of Map.groupBy(steps, lineOf)) {
    if (!isTop.has(line)) continue;
    const bytes = bytesByTime(reading, of);
    byLine.set(line, bytes);
    for (const [at, less] of bytes) others.set(at, (others.get(at) ?? 0) - less);
  }
  const ratesOfLine = (bytes: ReadonlyMap<number, number> | undefined) =>
    ratesOf(reading, course, (index) => bytes?.get(course.times[index]!.getTime()) ?? 0);
  const named = top.map((row) => ({
    ...{ value: row.value, label: row.service ? `${row.label} ${row.service}` : row.label, isRest: false },
    rates: ratesOfLine(byLine.get(keyOf(row))),
  }));
  const { times } = course;
  if (!hasRest) return { times, lines: named };
  const rest = needsOthers ? ratesOfLine(others) : restOf(reading, course, named);
  const isNothing = rest.every((rate) => rate === null || rate < 0.5);
  const last = { value: null, label: 'Rest', isRest: true, rates: rest };
  return { times, lines: isNothing ? named : [...named, last] };
}

/** Bytes of the directions that count. */
function bytesByTime(reading: Reading, steps: readonly store.ApplicationStep[]): Map<number, number> {
  const bytes = new Map<number, number>();
  for (const step of steps) {
    const at = step.at.getTime();
    const more = inOf(reading, step.inboundBytes) + outOf(reading, step.outboundBytes);
    bytes.set(at, (bytes.get(at) ?? 0) + more);
  }
  return bytes;
}

/** All traffic without these lines. */
function restOf(reading: Reading, course: ExploredCourse, named: readonly ExploredLine[]): (number | null)[] {
  const whole = ratesOf(
    reading,
    course,
    (index) => inOf(reading, course.inboundBytes[index]!) + outOf(reading, course.outboundBytes[index]!),
  );
  return whole.map((rate, index) => {
    if (rate === null) return null;
    return Math.max(
      0,
      named.reduce((left, each) => left - (each.rates[index] ?? 0), rate),
    );
  });
}
