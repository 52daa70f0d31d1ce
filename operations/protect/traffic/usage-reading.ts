/** What the readers of addresses' traffic share while one look is answered. */
import type { Measure, RankedDimension, RankedValue } from './exploration.ts';
import type { LineStep } from './explorer-store.ts';
import type { Opened } from './opened.ts';
import type { UsageSum } from './usage-sums.ts';

/** One look's reading: what several of its answers stand on is read once. */
export interface UsageReading extends Opened {
  stepSeconds: number;
  measure: Measure;
  sums: Readonly<Record<'server' | 'address', () => Promise<UsageSum[]>>>;
  steps(): Promise<LineStep[]>;
  /** Those that were made. */
  values: Map<RankedDimension, Promise<readonly RankedValue[]>>;
}

export const hasPackets = ({ measure }: Pick<UsageReading, 'measure'>) => measure === 'packets';

/** Which lines of a ranking are wanted. */
export interface LineOptions {
  count: number;
  hasRest: boolean;
}

/** Addresses of a server, for estimates. */
export const addressesOfServer = 2;
