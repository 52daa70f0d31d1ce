/**
 * Retention, the hourly `maintain_metrics`: what is older than its time goes, to the minute.
 *
 * Whole partitions are dropped, and the boundary's expired rows deleted, so that nothing outlives its time by more than
 * the hour between two runs and no table is rewritten for it. All times are the database's.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Feeds } from '#monitor/feeds/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import type { Live } from '#monitor/live/index.ts';
import { deleteExpiredEntries } from '#service-kit/audit/index.ts';
import { createLeasedLoop, holdsTerm, type Lease, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { keptTables } from './kept.ts';
import {
  deleteExpired,
  dropPartition,
  listExpiredPartitions,
  type MaintenanceState,
  readNowMs,
  readState,
  writeState,
} from './store.ts';

export type { MaintenanceState } from './store.ts';

/** What one run removed, by table; partitions under `<table> partitions`. */
export type RetentionCounts = Record<string, number>;

export interface Retention {
  readonly loop: LeasedLoop;
  /** One run now; null when another process holds the lease. */
  runOnce(): Promise<RetentionCounts | null>;
  /** How the last run went, whoever made it. */
  state(): Promise<MaintenanceState>;
}

export interface RetentionDeps {
  db: () => Queryable;
  feeds: Pick<Feeds, 'forgetCursors'>;
  inbox: Pick<Inbox, 'prune'>;
  live: Pick<Live, 'prune'>;
  clock: Clock;
  reporter: Reporter;
}

const intervalMs = 3_600_000;
const leaseSeconds = 120;
/** Entries of the audit trail that one run deletes; they are older than a year. */
const auditRowsMax = 100_000;
/** Cursors that nothing visited for this long (NET-2.9). */
const cursorsKeptMs = 2 * 86_400_000;

export function createRetention(deps: RetentionDeps): Retention {
  let lastCounts: RetentionCounts = {};
  const loop = createLeasedLoop({
    name: 'maintain_metrics',
    intervalMs,
    ttlSeconds: leaseSeconds,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(lease, renew) {
      const counts: RetentionCounts = {};
      const beganAtMs = deps.clock.monotonicMs();
      const note = (error: string | null) =>
        writeState(deps.db(), { error, counts, seconds: (deps.clock.monotonicMs() - beganAtMs) / 1000 });
      try {
        if (!(await removeExpired(lease, renew, counts))) return;
        await note(null);
      } catch (error) {
        await note(describeError(error).slice(0, 500)).catch(() => {});
        throw error;
      }
      lastCounts = counts;
      if (Object.keys(counts).length > 0) deps.reporter.info('expired data removed', counts);
    },
  });

  /** False when the lease was lost on the way; what is left is the follower's. */
  async function removeExpired(
    lease: Lease,
    renew: () => Promise<boolean>,
    counts: RetentionCounts,
  ): Promise<boolean> {
    const fenced = (work: (trx: Queryable) => Promise<void>) =>
      deps
        .db()
        .transaction()
        .execute(async (trx) => {
          if (await holdsTerm(trx, lease.name, lease.term)) await work(trx);
        });
    const count = (name: string, added: number) => {
      if (added > 0) counts[name] = (counts[name] ?? 0) + added;
    };
    for (const kept of keptTables) {
      if (!(await renew())) return false;
      for (const name of kept.isPartitioned ? await listExpiredPartitions(deps.db(), kept) : []) {
        await fenced((trx) => dropPartition(trx, name));
        count(`${kept.table} partitions`, 1);
      }
      await fenced(async (trx) => count(kept.table, await deleteExpired(trx, kept)));
    }
    await fenced(async (trx) => count('audit_entries', await deleteExpiredEntries(trx, auditRowsMax)));
    const cutoffMs = (await readNowMs(deps.db())) - cursorsKeptMs;
    count('feed_cursors', await deps.feeds.forgetCursors(cutoffMs));
    count('inbox_uploads', await deps.inbox.prune());
    count('live_windows', await deps.live.prune());
    return true;
  }

  return {
    loop,
    async runOnce() {
      lastCounts = {};
      return (await loop.runOnce()) ? lastCounts : null;
    },
    state: () => readState(deps.db()),
  };
}
