/**
 * Explores the traffic of what an actor reaches: one look is opened with a range and filters, and answers tables, lines, totals
 * and flows that all count the same.
 *
 * What addresses did is known of every kept minute; applications of the last 24 hours alone (NET-2.4.4), so that a filter or a
 * table of them begins there at the earliest and says so. A customer reaches servers of the own workspaces whose protection
 * views are on (NET-1.6); every statement names the owners beside the servers.
 */
import { type Actor, forbidden } from '#operations/accounts/index.ts';
import { sidesOf } from '#service-kit/explorer/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { type ApplicationReader, createApplicationReader } from './application-reader.ts';
import { windowOf } from './application-reading.ts';
import type {
  ExplorationAsk,
  ExploredCourse,
  ExploredLines,
  ExploredTotal,
  Flow,
  RankedDimension,
  Ranking,
} from './exploration.ts';
import { namesApplications } from './explore.ts';
import { listTrafficServers, type TrafficServer } from './explorer-store.ts';
import type { Opened } from './opened.ts';
import { addressFilters, createNames, passingServers } from './traffic-names.ts';
import type { RankOptions } from './usage-rank.ts';
import { createUsageReader, type UsageReader } from './usage-reader.ts';
import type { LineOptions } from './usage-reading.ts';

export interface Exploration {
  nowMs: number;
  /** Servers that pass the filters, and all that the actor reaches. */
  servers: readonly TrafficServer[];
  reached: readonly TrafficServer[];
  /** Servers whose owner turned the protection views off: not counted. */
  hiddenCount: number;
  /** True where the filters name applications: everything is of applications then. */
  isOfApplications: boolean;
  /** When applications begin, where that is later than the range. */
  applicationsFromMs: number | null;
  total(): Promise<ExploredTotal>;
  course(): Promise<ExploredCourse>;
  /** The course of the same length of time before, moved to the times of the range; null where it is not kept. */
  previousCourse(): Promise<ExploredCourse | null>;
  rank(dimension: RankedDimension, options: RankOptions): Promise<Ranking>;
  /** The course of the first rows of a ranking; with `hasRest` one line more for everything else. */
  lines(ranking: Ranking, options: LineOptions): Promise<ExploredLines>;
  /** Applications of servers, largest first. */
  flows(limit: number): Promise<Flow[]>;
  /** The length of a step of the lines. */
  stepSeconds: number;
  stepSecondsOf(dimension: RankedDimension | null): number;
}

export async function openExploration(
  db: Queryable,
  actor: Actor,
  ask: ExplorationAsk,
): Promise<Exploration> {
  if (actor.kind === 'project') throw forbidden('Admin projects read no traffic.');
  const tenantIds = actor.kind === 'customer' ? actor.tenantIds : 'all';
  // A destroyed server is still who used the traffic; its owner has no page of it any more.
  const destroyedSince = tenantIds === 'all' ? new Date(2 * ask.fromMs - ask.toMs) : null;
  const [all, nowMs] = await Promise.all([listTrafficServers(db, tenantIds, destroyedSince), readNowMs(db)]);
  const reached = tenantIds === 'all' ? all : all.filter((server) => server.isShown);
  const servers = passingServers(ask.filters, reached);
  const isEveryServer = tenantIds === 'all' && servers.length === all.length;
  const opened: Opened = {
    db,
    ask,
    scope: {
      tenantIds,
      serverIds: isEveryServer ? null : servers.map(({ id }) => id),
      addresses: addressFilters(ask.filters),
    },
    servers,
    names: createNames(reached),
    directions: sidesOf(ask.filters),
    nowMs,
  };
  const applications = createApplicationReader(opened);
  const usage = createUsageReader(opened);
  return {
    ...{ nowMs, servers, reached, hiddenCount: all.length - reached.length },
    applicationsFromMs: windowOf(opened).isShorter ? windowOf(opened).fromMs : null,
    ...readersOf(ask, usage, applications),
  };
}

const applicationDimensions: readonly (RankedDimension | null)[] = [
  'application',
  'service',
  'port',
  'transport',
];

/** Each question goes to what can answer it: applications where they are named or asked for, addresses otherwise. */
function readersOf(ask: ExplorationAsk, usage: UsageReader, applications: ApplicationReader) {
  const isOfApplications = namesApplications(ask.filters);
  const isOf = (dimension: RankedDimension | null) =>
    isOfApplications || applicationDimensions.includes(dimension);
  return {
    isOfApplications,
    stepSeconds: isOfApplications ? applications.stepSeconds : usage.stepSeconds,
    stepSecondsOf: (dimension: RankedDimension | null) =>
      isOf(dimension) ? applications.stepSeconds : usage.stepSeconds,
    total: () => (isOfApplications ? applications.total(usage) : usage.total()),
    course: () => (isOfApplications ? applications.course(usage) : usage.course(usage.stepSeconds)),
    previousCourse: () => (isOfApplications ? Promise.resolve(null) : usage.previousCourse()),
    rank: ((dimension, options) =>
      isOf(dimension)
        ? applications.rank(dimension, options, usage)
        : usage.rank(dimension, options)) satisfies Exploration['rank'],
    lines: ((ranking, options) =>
      isOf(ranking.dimension)
        ? applications.lines(ranking, options, usage)
        : usage.lines(ranking, options)) satisfies Exploration['lines'],
    flows: applications.flows,
  };
}
