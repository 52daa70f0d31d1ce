/**
 * Bandwidth: which server used how much of the account's pool. It is attribution, not a cap: no server has an allowance
 * of its own.
 *
 * Use comes from the hypervisors' counters or from the monitor's minutes, as the settings say; the two are never added. What the
 * provider's own port scans caused is in the use and does not count against the pool.
 * Every figure says when it was last sampled, and one that never was is told apart from a real zero. Days are UTC days.
 */
import type { Actor } from '#operations/accounts/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { BandwidthDeps } from './deps.ts';
import {
  type AccountBandwidth,
  type BandwidthHistory,
  type HistoryQuery,
  readAccount,
  readHistory,
} from './read-bandwidth.ts';
import { createReadingLoop } from './record-readings.ts';
import { createRollupLoop } from './roll-telemetry.ts';
import type { Source } from './store.ts';

export type { BandwidthDeps } from './deps.ts';

export type { AccountBandwidth, BandwidthHistory, BandwidthRow } from './read-bandwidth.ts';

export interface Bandwidth {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  readonly source: Source;
  readonly poolCounts: BandwidthDeps['poolCounts'];
  /** Null for a server that is not there or another's. Throws `bandwidth.invalid` (details.fields). */
  readHistory(
    actor: Actor,
    tenantId: number | null,
    serverId: number,
    query: HistoryQuery,
  ): Promise<BandwidthHistory | null>;
  /** Throws `accounts.forbidden`. */
  readAccount(actor: Actor, account: { tenantId: number; openedAt: Date }): Promise<AccountBandwidth>;
}

export function createBandwidth(deps: BandwidthDeps): Bandwidth {
  // Use comes from one source alone: counters are not read where minutes say it.
  const readings = deps.source === 'hypervisor' ? [createReadingLoop(deps)] : [];
  return {
    work: { parts: [...readings, createRollupLoop(deps)] },
    source: deps.source,
    poolCounts: deps.poolCounts,
    readHistory: (actor, tenantId, serverId, query) => readHistory(deps, actor, tenantId, serverId, query),
    readAccount: (actor, account) => readAccount(deps, actor, account),
  };
}
