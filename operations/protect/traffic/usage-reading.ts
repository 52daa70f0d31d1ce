/** What the readers of addresses' traffic share while one look is answered. */
import type { Measure } from '#service-kit/explorer/index.ts';
import type { RankedDimension } from './exploration.ts';
import type { LineStep } from './explorer-store.ts';
import type { Opened } from './opened.ts';
import type { Rankable } from './rank-values.ts';
import type { Name } from './traffic-names.ts';
import type { UsageSum } from './usage-sums.ts';

/** A value before it is known whether it is shown: most are not, so it is named when it is asked for. */
export interface RankableSum extends Rankable {
  readonly name: Name;
}

/** The values of a dimension, and what all of them are together. */
export interface Rankables {
  rows: readonly RankableSum[];
  inboundBytes: number;
  outboundBytes: number;
  /** Of those that have packets. */
  packets: number;
  /** Of the measure. */
  size: number;
}

/** One look's reading: what several of its answers stand on is read once. */
export interface UsageReading extends Opened {
  stepSeconds: number;
  measure: Measure;
  sums: Readonly<Record<'server' | 'address', () => Promise<UsageSum[]>>>;
  steps(): Promise<LineStep[]>;
  /** Those that were made: a chart and its table rank the same. */
  rankables: Map<RankedDimension, Promise<Rankables>>;
}

export const hasPackets = ({ measure }: Pick<UsageReading, 'measure'>) => measure === 'packets';

/** Which lines of a ranking are wanted. */
export interface LineOptions {
  count: number;
  hasRest: boolean;
}

/** Addresses of a server, for estimates. */
export const addressesOfServer = 2;
