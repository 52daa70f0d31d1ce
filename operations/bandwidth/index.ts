import { keptMs } from '#contracts/retention.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import {
  type BandwidthSource,
  listUnsettledAccounts,
  type BandwidthSource as Source,
  type UsingAccount,
} from '#operations/views/bandwidth-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createLeasedLoop, ifHeld, type LeasedLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { chooseWhenUsedUp, createLimitLoop, speedJobs } from './limit-used-up.ts';
import { type BandwidthTerms, computeMonth, type MonthFigures } from './overage.ts';
import { arrivalDays, type PoolRules } from './pool.ts';
import { type HistoryQuery, readAccount, readHistory } from './read-bandwidth.ts';
import { createReadingLoop } from './record-readings.ts';
import * as store from './store.ts';
import { createThresholdLoop, mailJobs } from './tell-thresholds.ts';

export type { BandwidthTerms, MonthFigures } from './overage.ts';
export type { AccountBandwidth, BandwidthHistory, BandwidthRow } from './read-bandwidth.ts';

export type Bandwidth = ReturnType<typeof createBandwidth>;

export function createBandwidth(deps: BandwidthDeps) {
  // Use comes from one source alone: counters are not read where minutes say it.
  const readings = deps.source === 'hypervisor' ? [createReadingLoop(deps)] : [];
  return {
    /** What it does beside the calls. */
    work: {
      jobHandlers: { ...mailJobs(deps), ...speedJobs(deps) },
      parts: [...readings, createRollupLoop(deps), createThresholdLoop(deps), createLimitLoop(deps)],
    } satisfies FeatureWork,
    source: deps.source,
    poolCounts: deps.poolCounts,
    rules: deps.rules,
    /** The price of 10^12 bytes beyond the pool, by the settings; 0: nothing is charged. */
    tbQuanta: deps.tbQuanta,
    /** Null for a server that is not there or another's. Throws `bandwidth.invalid` (details.fields). */
    readHistory: (actor: Actor, tenantId: number | null, serverId: number, query: HistoryQuery) =>
      readHistory(deps, actor, tenantId, serverId, query),
    /** Throws `accounts.forbidden`. */
    readAccount: (actor: Actor, account: { tenantId: number; openedAt: Date }) =>
      readAccount(deps, actor, account),
    /**
     * What happens once the pool of a month is used up, from now on; where servers are limited, that ends at once. Throws
     * `accounts.forbidden`, `bandwidth.invalid`.
     */
    chooseWhenUsedUp: (actor: Actor, account: UsingAccount, whenUsedUp: store.WhenUsedUp) =>
      chooseWhenUsedUp(deps, actor, account, whenUsedUp),
    /** Notes by what the present month will be charged. For the tick that charges it, as all below. */
    noteTerms: () => store.noteTerms(deps.db(), deps),
    /** Months that are over, and for which what was delayed has had its time to arrive. */
    listDueMonths: () => store.listDueMonths(deps.db(), arrivalDays),
    listUnsettledAccounts: (period: string) => listUnsettledAccounts(deps.db(), period),
    /** Computes an account's month and writes it down, in the transaction that enters the charge; null when it was written before. */
    async settleAccount(
      tx: Queryable,
      terms: BandwidthTerms,
      account: UsingAccount,
    ): Promise<MonthFigures | null> {
      const figures = await computeMonth(tx, terms, account);
      return (await store.settleAccount(tx, account.tenantId, terms.period, figures)) ? figures : null;
    },
    settleMonth: (period: string) => store.settleMonth(deps.db(), period),
  };
}

/** What bandwidth needs from the rest of the program. */
export interface BandwidthDeps extends LoopDeps {
  clusters: Clusters;
  hypervisors: Hypervisors;
  /** What speaks for a day that both know of. */
  source: Source;
  /** What counts against the pool. */
  poolCounts: 'outbound' | 'total';
  rules: PoolRules;
  /** The price of 10^12 bytes beyond the pool; 0: nothing is charged. */
  tbQuanta: number;
  /** The speed of servers of accounts that chose a limit, in Mbit/s; 0: there is no such choice. */
  limitMbit: number;
  /** Mails accounts that near the end of their pool. */
  post: Post;
}

const dayMs = 86_400_000;
/** As long as minutes are kept: some come late, after an outage. */
const wholeDays = keptMs('traffic') / dayMs + 1;
const recentDays = 2;
/** Every so many rounds all days are computed anew. */
const roundsPerWhole = 60;

/**
 * Adds the monitor's minutes up to days, every minute, on one of the replicas: all of them where they say what a server used, and always
 * the parts that our own port scans caused and that attacks were, which no counter of a hypervisor tells.
 */
export function createRollupLoop(deps: LoopDeps & { source: BandwidthSource }): LeasedLoop {
  let round = 0;
  return createLeasedLoop({
    name: 'operations.bandwidth_rollup',
    intervalMs: 60_000,
    ttlSeconds: 300,
    ...deps,
    async run(lease) {
      const days = round % roundsPerWhole === 0 ? wholeDays : recentDays;
      await ifHeld(deps.db(), lease, async (tx) => {
        const today = Math.floor((await readNowMs(tx)) / dayMs) * dayMs;
        const fromMs = today - (days - 1) * dayMs;
        if (deps.source === 'telemetry') await store.rollMinutes(tx, fromMs);
        await store.rollOwnScans(tx, fromMs);
        await store.rollAttacks(tx, fromMs);
      });
      round += 1;
    },
  });
}
