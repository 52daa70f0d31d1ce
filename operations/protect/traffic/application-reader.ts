/** The part of an exploration that is of applications, as far back as they are shown (NET-2.4.4). */
import { percentile95 } from '#service-kit/explorer/index.ts';
import { readLines } from './application-lines.ts';
import {
  groupOf,
  inOf,
  listCourse,
  listSums,
  nameOf,
  outOf,
  previousOf,
  type Reading,
  ratesOf,
  windowOf,
} from './application-reading.ts';
import type * as store from './application-store.ts';
import type {
  ExplorationAsk,
  ExploredCourse,
  ExploredLines,
  ExploredTotal,
  Flow,
  RankedDimension,
  RankedValue,
  Ranking,
} from './exploration.ts';
import { namesApplications } from './explore.ts';
import type { Opened } from './opened.ts';
import { rowOrder, sumOf } from './rank-values.ts';
import type { RankOptions } from './usage-rank.ts';
import type { UsageReader } from './usage-reader.ts';
import type { LineOptions } from './usage-reading.ts';

const hourMs = 3_600_000;
/** Minutes with applications that one statement of a page may read before it takes hours. */
const minutesMax = 60_000;
const addressesOfServer = 2;
/** Rows of which others are added up: as many as there can be servers. */
const unlimited = 1_000_000;

export interface ApplicationReader {
  stepSeconds: number;
  total(usage: UsageReader): Promise<ExploredTotal>;
  course(usage: UsageReader): Promise<ExploredCourse>;
  rank(dimension: RankedDimension, options: RankOptions, usage: UsageReader): Promise<Ranking>;
  lines(ranking: Ranking, options: LineOptions, usage: UsageReader): Promise<ExploredLines>;
  /** Applications of servers, largest first. */
  flows(limit: number): Promise<Flow[]>;
}

/** A step that holds whole hours where minutes would be too many. */
function applicationStep(servers: number, { fromMs, toMs, stepSeconds }: ExplorationAsk): number {
  const minutes = (Math.max(1, servers) * addressesOfServer * (toMs - fromMs)) / 60_000;
  if (minutes <= minutesMax || toMs - fromMs <= 2 * hourMs) return stepSeconds;
  return Math.ceil(stepSeconds / 3600) * 3600;
}

export function createApplicationReader(opened: Opened): ApplicationReader {
  const { ask, servers } = opened;
  const reading: Reading = {
    ...opened,
    window: windowOf(opened),
    stepSeconds: applicationStep(servers.length, ask),
    isFiltered: namesApplications(ask.filters),
    ...{ known: new Map(), ranked: new WeakMap(), course: null },
  };
  return {
    stepSeconds: reading.stepSeconds,
    total: (usage) => readTotal(reading, usage),
    course: (usage) => readCourse(reading, usage),
    rank: (dimension, options, usage) => rankApplications(reading, dimension, options, usage),
    lines: (ranking, options, usage) => readLines(reading, ranking, options, usage),
    flows: (limit) => readFlows(reading, limit),
  };
}

async function rankApplications(
  reading: Reading,
  dimension: RankedDimension,
  options: RankOptions,
  usage: UsageReader,
): Promise<Ranking> {
  const isByServer = groupOf[dimension] === 'server';
  const { isFiltered, window } = reading;
  const [rows, whole, ownScans] = await Promise.all([
    listSums(reading, groupOf[dimension], isByServer ? unlimited : options.limit, options),
    isFiltered || window.isShorter ? null : usage.bytes(),
    isFiltered ? null : usage.ownScans(window),
  ]);
  const all = {
    inboundBytes: inOf(reading, rows[0]?.allInbound ?? 0),
    outboundBytes: outOf(reading, rows[0]?.allOutbound ?? 0),
  };
  const groups = Map.groupBy(rows, (row) => JSON.stringify(nameOf(reading, row, dimension)));
  const known = {
    inboundBytes: all.inboundBytes + (ownScans?.inboundBytes ?? 0),
    outboundBytes: all.outboundBytes + (ownScans?.outboundBytes ?? 0),
  };
  const values = [...groups.values()].map((of) => toValue(reading, dimension, of, whole ?? known));
  if (isByServer) values.sort(rowOrder(options.order ?? 'share', options.isAscending ?? false, 'bytes'));
  const shown = values.slice(0, options.limit);
  const count = isByServer ? values.length : (rows[0]?.groups ?? 0);
  const ranking: Ranking = {
    dimension,
    rows: shown,
    others: {
      count: count - shown.length,
      inboundBytes: all.inboundBytes - sumOf(shown, (row) => row.inboundBytes),
      outboundBytes: all.outboundBytes - sumOf(shown, (row) => row.outboundBytes),
      packets: null,
    },
    unnamed: whole && {
      inboundBytes: Math.max(0, whole.inboundBytes - known.inboundBytes),
      outboundBytes: Math.max(0, whole.outboundBytes - known.outboundBytes),
    },
    ownScans,
  };
  reading.ranked.set(ranking, rows);
  return ranking;
}

function toValue(
  reading: Reading,
  dimension: RankedDimension,
  of: readonly store.ApplicationSum[],
  all: { inboundBytes: number; outboundBytes: number },
): RankedValue {
  const inboundBytes = inOf(
    reading,
    sumOf(of, (row) => row.inboundBytes),
  );
  const outboundBytes = outOf(
    reading,
    sumOf(of, (row) => row.outboundBytes),
  );
  const bytes = all.inboundBytes + all.outboundBytes;
  return {
    ...nameOf(reading, of[0]!, dimension),
    // Packets are not known by application.
    ...{ inboundBytes, outboundBytes, inboundP95: null, outboundP95: null, packets: null },
    share: bytes === 0 ? null : (inboundBytes + outboundBytes) / bytes,
    previous: previousOf(reading, of),
    lastSentAt: new Date(Math.max(...of.map((row) => row.lastSentAt.getTime()))),
  };
}

async function readCourse(reading: Reading, usage: UsageReader): Promise<ExploredCourse> {
  const { directions, stepSeconds } = reading;
  const [observed, steps] = await Promise.all([usage.course(stepSeconds), listCourse(reading)]);
  const byTime = new Map(steps.map((step) => [step.at.getTime(), step]));
  const bytes = (of: 'inboundBytes' | 'outboundBytes') =>
    observed.times.map((at) => byTime.get(at.getTime())?.[of] ?? 0);
  const [inboundBytes, outboundBytes] = [bytes('inboundBytes'), bytes('outboundBytes')];
  const side = (of: number[], isCounted: boolean) =>
    isCounted ? ratesOf(reading, observed, (index) => of[index]!) : observed.times.map(() => null);
  return {
    ...{ times: observed.times, minutes: observed.minutes, inboundBytes, outboundBytes },
    inboundBps: side(inboundBytes, directions.in),
    outboundBps: side(outboundBytes, directions.out),
    pps: observed.times.map(() => null),
  };
}

async function readTotal(reading: Reading, usage: UsageReader): Promise<ExploredTotal> {
  const [[row], of] = await Promise.all([listSums(reading, 'all', 1), readCourse(reading, usage)]);
  return {
    inboundBytes: inOf(reading, row?.inboundBytes ?? 0),
    outboundBytes: outOf(reading, row?.outboundBytes ?? 0),
    previous: previousOf(reading, row === undefined ? [] : [row]),
    inboundP95: percentile95(of.inboundBps),
    outboundP95: percentile95(of.outboundBps),
    ...{ packets: null, packetsP95: null, arePacketsPartial: false },
    percentileSeconds: reading.stepSeconds,
  };
}

async function readFlows(reading: Reading, limit: number): Promise<Flow[]> {
  const rows = await listSums(reading, 'flow', limit);
  return rows.map((row) => ({
    customer: reading.names.of('customer', row.serverId!),
    server: reading.names.of('server', row.serverId!),
    application: { value: row.name!, label: row.name! },
    bytes: inOf(reading, row.inboundBytes) + outOf(reading, row.outboundBytes),
  }));
}
