/**
 * The part of an exploration that is of addresses: exact bytes of every kept minute, and its packets where they are the measure.
 *
 * The sums of all servers are read once; servers, customers, nodes and clusters are added up from them.
 */
import { percentile95, type Sides } from '#service-kit/explorer/index.ts';
import type {
  ExploredCourse,
  ExploredLines,
  ExploredTotal,
  RankedDimension,
  Ranking,
} from './exploration.ts';
import * as store from './explorer-store.ts';
import type { Opened } from './opened.ts';
import { sumOf } from './rank-values.ts';
import { grainOfStep } from './split-range.ts';
import { readUsageLines } from './usage-lines.ts';
import { hasFewMinutes, type RankOptions, rankUsage, rowsMax } from './usage-rank.ts';
import { addressesOfServer, hasPackets, type LineOptions, type UsageReading } from './usage-reading.ts';
import type { UsageRange } from './usage-store.ts';
import { addUp, besideBefore, previousOf } from './usage-sums.ts';

export interface UsageReader {
  stepSeconds: number;
  /** All that the filters let pass. */
  bytes(): Promise<{ inboundBytes: number; outboundBytes: number }>;
  /** What the provider's own port scans caused of it in this part of the range. */
  ownScans(range: UsageRange): Promise<{ inboundBytes: number; outboundBytes: number }>;
  total(): Promise<ExploredTotal>;
  course(stepSeconds: number): Promise<ExploredCourse>;
  previousCourse(): Promise<ExploredCourse>;
  rank(dimension: RankedDimension, options: RankOptions): Promise<Ranking>;
  lines(ranking: Ranking, options: LineOptions): Promise<ExploredLines>;
}

/** The finest step of a range that so many servers can have: its own, whole tens of minutes, or whole hours. */
export function stepFor(servers: number, { fromMs, toMs, stepSeconds }: Opened['ask']): number {
  const series = Math.max(1, servers) * addressesOfServer;
  const seconds = (toMs - fromMs) / 1000;
  const ceil = (grain: number) => Math.ceil(stepSeconds / grain) * grain;
  if (stepSeconds % 600 !== 0 && (series * seconds) / 60 <= rowsMax) return stepSeconds;
  // Two hours have too few hours for a chart.
  if ((series * seconds) / 600 <= rowsMax || seconds <= 2 * 3600) return ceil(600);
  return ceil(3600);
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => {
    made ??= read();
    return made;
  };
}

export function createUsageReader(opened: Opened): UsageReader {
  const { db, ask, scope, servers, directions } = opened;
  const { fromMs, toMs } = ask;
  const stepSeconds = stepFor(servers.length, ask);
  const measure = ask.measure ?? 'bytes';
  const hasPackets = measure === 'packets';
  const stepsOf = (seconds: number) =>
    store.listLineSteps(db, scope, { fromMs, toMs, stepSeconds: seconds, hasPackets }, 'all');
  const sumsOf = (range: UsageRange) => store.listAddressSums(db, scope, range, { hasPackets });
  // Steps of hours are of the same rows as the sums: one statement reads them for both.
  const withSteps =
    grainOfStep(stepSeconds) === 'hours'
      ? once(() => store.listSumsWithSteps(db, scope, { fromMs, toMs, stepSeconds, hasPackets }))
      : null;
  // Two statements, so that the larger part of what a page waits for is read at the same time.
  const known = once(async () => {
    const before = { fromMs: 2 * fromMs - toMs, toMs: fromMs };
    const now = withSteps?.().then(({ sums }) => sums) ?? sumsOf({ fromMs, toMs });
    return besideBefore(...(await Promise.all([now, sumsOf(before)])));
  });
  const reading: UsageReading = {
    ...opened,
    ...{ stepSeconds, measure },
    sums: {
      server: once(async () => addUp(await known(), ({ serverId }) => serverId)),
      address: once(async () => addUp(await known(), ({ serverId, address }) => `${serverId} ${address}`)),
    },
    steps: once(() => withSteps?.().then(({ steps }) => steps) ?? stepsOf(stepSeconds)),
    rankables: new Map(),
  };
  return {
    stepSeconds,
    bytes: () => readBytes(reading),
    async ownScans(range) {
      const { inboundBytes, outboundBytes } = await store.sumOwnScans(db, scope, range);
      return {
        inboundBytes: directions.in ? inboundBytes : 0,
        outboundBytes: directions.out ? outboundBytes : 0,
      };
    },
    total: () => readTotal(reading),
    rank: (dimension, options) => rankUsage(reading, dimension, options),
    lines: (ranking, options) => readUsageLines(reading, ranking, options),
    course: async (seconds) =>
      courseOf(await (seconds === stepSeconds ? reading.steps() : stepsOf(seconds)), directions),
    previousCourse: () => readPrevious(reading),
  };
}

async function readBytes(reading: UsageReading) {
  const { directions } = reading;
  const rows = await reading.sums.server();
  return {
    inboundBytes: directions.in ? sumOf(rows, (row) => row.inboundBytes) : 0,
    outboundBytes: directions.out ? sumOf(rows, (row) => row.outboundBytes) : 0,
  };
}

async function readTotal(reading: UsageReading): Promise<ExploredTotal> {
  const { db, scope, ask, directions, servers, stepSeconds } = reading;
  const [rows, course] = await Promise.all([reading.sums.server(), reading.steps()]);
  const whole = addUp(rows, () => 'all')[0];
  const hasMinutes = hasFewMinutes(reading, servers.length, rowsMax);
  const range = { ...ask, hasPackets: hasPackets(reading) };
  const [p95] = hasMinutes ? await store.listMinutePercentiles(db, scope, range, 'all') : [];
  const percentile = (of: 'inbound' | 'outbound', isCounted: boolean) => {
    if (!isCounted) return null;
    return hasMinutes ? (p95?.[`${of}P95`] ?? null) : percentile95(course.map((step) => step[`${of}Bps`]));
  };
  return {
    ...(await readBytes(reading)),
    previous: whole === undefined ? null : previousOf(reading, whole),
    inboundP95: percentile('inbound', directions.in),
    outboundP95: percentile('outbound', directions.out),
    packets: whole?.packets ?? null,
    packetsP95: hasMinutes ? (p95?.packetsP95 ?? null) : percentile95(course.map((step) => step.pps)),
    arePacketsPartial: whole?.arePacketsPartial ?? false,
    percentileSeconds: hasMinutes ? 60 : stepSeconds,
  };
}

async function readPrevious(reading: UsageReading): Promise<ExploredCourse> {
  const { db, scope, ask, directions, stepSeconds } = reading;
  const { fromMs, toMs } = ask;
  const length = toMs - fromMs;
  const earlier = { fromMs: fromMs - length, toMs: fromMs, stepSeconds, hasPackets: hasPackets(reading) };
  const read = await store.listLineSteps(db, scope, earlier, 'all');
  const moved = read.map((step) => ({ ...step, at: new Date(step.at.getTime() + length) }));
  return courseOf(moved, directions);
}

function courseOf(steps: readonly store.LineStep[], directions: Sides): ExploredCourse {
  return {
    times: steps.map((step) => step.at),
    inboundBps: steps.map((step) => (directions.in ? step.inboundBps : null)),
    outboundBps: steps.map((step) => (directions.out ? step.outboundBps : null)),
    pps: steps.map((step) => step.pps),
    inboundBytes: steps.map((step) => step.inboundBytes ?? 0),
    outboundBytes: steps.map((step) => step.outboundBytes ?? 0),
    minutes: steps.map((step) => step.minutes),
  };
}
