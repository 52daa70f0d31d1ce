/**
 * Explores the traffic of what an actor reaches: one look is opened with a range and filters, and answers charts, tables and flows
 * that all count the same.
 *
 * What addresses did is known of every kept minute; applications of the last 24 hours alone (NET-2.4.4), so that a filter or a
 * table of them begins there at the earliest and says so. A customer reaches servers of the own workspaces whose protection
 * views are on (NET-1.6); every statement names the owners beside the servers.
 */
import { type Actor, forbidden } from '#operations/accounts/index.ts';
import { listTrafficServers } from '#operations/views/traffic-server-store.ts';
import {
  type Answer,
  type Course,
  type Measure,
  minus,
  percentile95,
  type Row,
  restRates,
  seriesOf,
  sidesOf,
  sizeOf,
  sumOf,
} from '#service-kit/explorer/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { createApplicationReader } from './application-reader.ts';
import {
  type ExplorationAsk,
  isOfApplications,
  namesApplications,
  type Opened,
  type RankedDimension,
  type RankOptions,
  type Steps,
  type TrafficReader,
} from './exploration.ts';
import { addressFilters, createNames, passingServers } from './traffic-names.ts';
import { createUsageReader } from './usage-reader.ts';

export type Exploration = Awaited<ReturnType<typeof openExploration>>;

export async function openExploration(db: Queryable, actor: Actor, ask: ExplorationAsk) {
  if (actor.kind === 'project') throw forbidden('Admin projects read no traffic.');
  const tenantIds = actor.kind === 'customer' ? actor.tenantIds : 'all';
  // A destroyed server is still who used the traffic; its owner has no page of it any more.
  const destroyedSince = tenantIds === 'all' ? new Date(2 * ask.fromMs - ask.toMs) : null;
  const [all, nowMs] = await Promise.all([listTrafficServers(db, tenantIds, destroyedSince), readNowMs(db)]);
  const reached = tenantIds === 'all' ? all : all.filter((server) => server.isShown);
  const servers = passingServers(ask.filters, reached);
  const isEveryServer = tenantIds === 'all' && servers.length === all.length;
  const opened: Opened = {
    ...{ db, ask, servers, nowMs, names: createNames(reached), sides: sidesOf(ask.filters) },
    scope: {
      tenantIds,
      serverIds: isEveryServer ? null : servers.map(({ id }) => id),
      addresses: addressFilters(ask.filters),
    },
  };
  return {
    nowMs,
    /** Servers that pass the filters, and all that the actor reaches. */
    servers,
    reached,
    /** Servers whose owner turned the protection views off: not counted. */
    hiddenCount: all.length - reached.length,
    ...createAnswers(opened),
  };
}

export interface ChartOptions {
  /** Rows of the answer; the others are its rest. */
  top: number;
  /** Rows whose rates are read: a table beside the chart may have more of them. */
  read: number;
  /** With the period before, where its steps are those of everything. */
  isCompared: boolean;
}

/** Each question goes to what can answer it: applications where they are named or asked for, addresses otherwise. */
function createAnswers(opened: Opened) {
  const { ask } = opened;
  const usage = createUsageReader(opened);
  const applications = createApplicationReader(opened, usage);
  const isFiltered = namesApplications(ask.filters);
  const main: TrafficReader = isFiltered ? applications : usage;
  const readerOf = (dimension: RankedDimension | null) => (isOfApplications(dimension) ? applications : main);
  const withRates = async (dimension: RankedDimension, rows: readonly Row[]) => {
    const rates = await readerOf(dimension).rates(dimension, rows);
    return rows.map((row, place): Row => ({ ...row, rates: rates[place]! }));
  };
  /** What charts draw, which their tables have too. */
  const drawn = new Map<RankedDimension, Promise<Row[]>>();
  const rank = (dimension: RankedDimension, options: RankOptions) =>
    readerOf(dimension).rank(dimension, options);
  return {
    /** True where the filters name applications: everything is of applications then. */
    isOfApplications: isFiltered,
    /** When applications begin, where that is later than the range. */
    applicationsFromMs: applications.beginMs,
    /** Applications of servers, largest first. */
    flows: applications.flows,
    /** Values of a dimension in the wanted order, without rates. */
    rank,

    /** Everything over time, and its largest parts by a dimension. */
    async chart(by: RankedDimension | null, { top, read, isCompared }: ChartOptions) {
      const ranking = by && rank(by, { limit: read });
      const drawing = by && ranking?.then(({ rows }) => withRates(by, rows));
      if (by && drawing) drawn.set(by, drawing);
      const reader = readerOf(by);
      const ofNamed =
        (by === 'application' || by === 'service') && !isFiltered ? applications.course() : null;
      const [course, previous, { arePacketsPartial, ...total }, ranked, lines, all, named] =
        await Promise.all([
          main.course(),
          isCompared && reader.stepSeconds === main.stepSeconds ? main.previousCourse() : null,
          ...([main.total(), ranking, drawing, by && reader.all(), ofNamed] as const),
        ]);
      const { measure = 'bytes' } = ask;
      const whole: Answer = {
        ...{ from: ask.fromMs / 1000, to: ask.toMs / 1000, stepSeconds: main.stepSeconds, measure, by: [] },
        ...{ rows: [], rest: null, apart: [], limits: [], ...total },
        ...atTheirTimes(measure, course, previous),
      };
      if (!by || !ranked || !lines || !all) return { whole, answer: whole, lines: null, arePacketsPartial };
      const steps = atTheirTimes(measure, all, previous);
      const places = placesOf(all);
      const rows = lines.map((row) => ({ ...row, rates: pick(row.rates, places, steps.timesMs) }));
      const shown = rows.slice(0, top);
      const ratesOf = (of: Steps) => pick(of.rates, places, steps.timesMs);
      const answer: Answer = {
        ...{ ...whole, ...steps, by: [by], stepSeconds: reader.stepSeconds, rows: shown },
        rest: {
          groups: (ranked.rest?.groups ?? 0) + rows.length - shown.length,
          amount: minus(
            ranked.total,
            ...[...shown, ...(named ? ranked.apart : [])].map(({ amount }) => amount),
          ),
          ...{ share: null, previous: null, rates: restRates(ratesOf(named ?? all), shown) },
        },
        apart: named
          ? [
              {
                ...{ label: 'Unclassified', amount: sumOf(ranked.apart.map(({ amount }) => amount)) },
                ...{
                  share: null,
                  previous: null,
                  rates: restRates(ratesOf(all), [{ rates: ratesOf(named) }]),
                },
              },
            ]
          : [],
        percentile95: percentile95(course.rates),
      };
      // Without others each value has a line.
      return { whole, answer, lines: ranked.rest === null ? rows : null, arePacketsPartial };
    },

    /** The same as a table; `hasRates`: with the rates of its rows. */
    async table(dimension: RankedDimension, { hasRates, ...options }: RankOptions & { hasRates: boolean }) {
      const [ranked, ofAll, known] = await Promise.all([
        ...([rank(dimension, options), main.amounts(), drawn.get(dimension) ?? []] as const),
      ]);
      const isOfAll = sizeOf(ranked.total, 'bytes') === sizeOf(ofAll.total, 'bytes');
      // Known of everything, which a table of applications alone is not.
      const answer: Answer = { ...ranked, previousTotal: isOfAll ? ofAll.previousTotal : null };
      if (!hasRates) return answer;
      const ratesOf = new Map(known.map((row) => [textOf(row), row.rates]));
      const rows = ranked.rows.every((row) => ratesOf.has(textOf(row)))
        ? ranked.rows.map((row) => ({ ...row, rates: ratesOf.get(textOf(row))! }))
        : await withRates(dimension, ranked.rows);
      return { ...answer, rows, timesMs: (await readerOf(dimension).all()).timesMs };
    },
  };
}

const textOf = ({ key, details }: Row) => JSON.stringify([key, details?.service]);

const placesOf = ({ timesMs }: Steps) => new Map(timesMs.map((ms, place) => [ms, place]));

/** What stands at these times; null: nothing. */
const pick = <T>(
  values: readonly T[],
  places: ReadonlyMap<number, number>,
  timesMs: readonly number[],
): (T | null)[] => timesMs.map((ms) => values[places.get(ms) ?? -1] ?? null);

/** At the times at which something was observed, now or in the period before. */
function atTheirTimes(
  measure: Measure,
  now: Steps,
  previous: Steps | null,
): Pick<Answer, 'timesMs' | 'series'> {
  const timesMs = [...new Set([...now.timesMs, ...(previous?.timesMs ?? [])])].sort((a, b) => a - b);
  const courseOf = (steps: Steps): Course => {
    const places = placesOf(steps);
    return {
      ...{ inBps: pick(steps.inBps, places, timesMs), outBps: pick(steps.outBps, places, timesMs) },
      rates: pick(steps.rates, places, timesMs),
      minutes: pick(steps.minutes, places, timesMs).map((minutes) => minutes ?? 0),
    };
  };
  return { timesMs, series: seriesOf(measure, courseOf(now), previous && courseOf(previous)) };
}
