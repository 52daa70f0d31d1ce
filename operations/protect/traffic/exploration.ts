/** What an exploration of traffic asks, and what its two readers have in common. */
import type { TrafficServer } from '#operations/views/traffic-server-store.ts';
import type {
  Amount,
  Answer,
  Course,
  Dimension,
  ExplorerBox,
  Filter,
  Measure,
  Row,
  Sides,
} from '#service-kit/explorer/index.ts';
import type { Sort } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ExplorerScope } from './explorer-store.ts';
import type { Names } from './traffic-names.ts';

/** What traffic is grouped by, in the order in which it is offered; `service` is an application with its port. */
const rankedDimensions = [
  'server',
  'customer',
  'address',
  'application',
  'service',
  'port',
  'transport',
  'node',
  'cluster',
] as const satisfies readonly Dimension[];
export type RankedDimension = (typeof rankedDimensions)[number];

/** What operators can ask. */
export const staffBox: ExplorerBox = {
  groups: rankedDimensions,
  filters: [...rankedDimensions.filter((one) => one !== 'service'), 'side'],
  ...{ hasSegments: false, topMax: 50 },
};
/** Whose servers they are is the customer; who else is on a node, and where, is not theirs to know. */
const ofStaff: readonly Dimension[] = ['customer', 'node', 'cluster'];
export const customerBox: ExplorerBox = {
  ...staffBox,
  groups: staffBox.groups.filter((one) => !ofStaff.includes(one)),
  filters: staffBox.filters.filter((one) => !ofStaff.includes(one)),
};

/** Known of applications alone: their bytes, of the last 24 hours (NET-2.4.4). */
export const isOfApplications = (dimension: Dimension | null): boolean =>
  dimension !== null && ['application', 'service', 'port', 'transport'].includes(dimension);

/** True when the view can only be answered from applications. */
export const namesApplications = (filters: readonly Filter[]): boolean =>
  filters.some(({ dimension }) => isOfApplications(dimension));

export interface ExplorationAsk {
  fromMs: number;
  toMs: number;
  /** The step that a chart of one server has; with many servers it is longer. */
  stepSeconds: number;
  filters: readonly Filter[];
  /**
   * Default: bytes. A minute has the packets of an address, both directions together (NET-2.4.2): nothing is known of them by
   * application or by direction, so that answers of applications stay those of bytes.
   */
  measure?: Measure;
}

/** What both readers of an exploration stand on. */
export interface Opened {
  db: Queryable;
  ask: ExplorationAsk;
  scope: ExplorerScope;
  servers: readonly TrafficServer[];
  names: Names;
  sides: Sides;
  nowMs: number;
}

export interface RankOptions {
  limit: number;
  /** Default: the largest first. */
  sort?: Sort;
  /** Of servers, where they and the range are small enough. */
  hasPercentiles?: boolean;
}

export const largestFirst: Sort = { by: 'share', direction: 'desc' };

/** Everything in the steps in which something was observed. */
export interface Steps extends Course {
  /** Starts, unix milliseconds. */
  timesMs: readonly number[];
  inBytes: readonly number[];
  outBytes: readonly number[];
}

/** All that the filters let pass. */
export type Total = Pick<
  Answer,
  'total' | 'previousTotal' | 'percentile95' | 'percentile95In' | 'percentile95Out' | 'percentileSeconds'
> & {
  /** Some observed minutes have no packets: the figures are those of the others. */
  arePacketsPartial: boolean;
};

/** Answers of addresses, or of applications. */
export interface TrafficReader {
  stepSeconds: number;
  /** All of it in the range and in the time before; null: that was not observed, or is not kept. */
  amounts(): Promise<{ total: Amount; previousTotal: Amount | null }>;
  total(): Promise<Total>;
  course(): Promise<Steps>;
  /** The period before, moved to the times of the range; null: not kept. */
  previousCourse(): Promise<Steps | null>;
  /** Values of a dimension in the wanted order, without their rates. */
  rank(dimension: RankedDimension, options: RankOptions): Promise<Answer>;
  /** Rates of rows that were ranked. */
  rates(dimension: RankedDimension, rows: readonly Row[]): Promise<(number | null)[][]>;
  /** Everything that these rows are a part of, at the same times. */
  all(): Promise<Steps>;
}

/** What is asked for more than once is read once. */
export function once<T>(read: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => {
    made ??= read();
    return made;
  };
}
