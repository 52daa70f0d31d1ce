/**
 * Retention, the hourly `maintain_metrics`: deletes expired data, to the minute.
 *
 * `kept.ts` says which rows are kept for how long.
 * Whole partitions are dropped, and expired rows of the boundary partition are deleted, so that nothing is kept more
 * than an hour too long and no table is rewritten. All times are the database's.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { deleteExpiredEntries } from '#service-kit/audit/index.ts';
import { createLeasedLoop, ifHeld, type Lease } from '#service-kit/leases/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { KeptTable, Sweep } from './kept.ts';
import {
  deleteExpired,
  dropPartition,
  listExpiredPartitions,
  readCutoffMs,
  readState,
  writeState,
} from './store.ts';

export { type KeptTable, keptFacts, keptTables, type Sweep } from './kept.ts';
export type { MaintenanceState } from './store.ts';

/** Removed rows of one run, by table; partitions under `<table> partitions`. */
export type RetentionCounts = Record<string, number>;

export type Retention = ReturnType<typeof createRetention>;

export interface RetentionDeps {
  db: () => Queryable;
  /** The lines of all features, in the order in which they are worked off. */
  tables: readonly KeptTable[];
  sweeps: readonly Sweep[];
  clock: Clock;
  reporter: Reporter;
}

const intervalMs = 3_600_000;
const leaseSeconds = 120;
/** Maximum number of audit entries that one run deletes; they are older than a year. */
const auditRowsMax = 100_000;

export function createRetention(deps: RetentionDeps) {
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

  /** Returns false when the lease was lost meanwhile; the next holder continues. */
  async function removeExpired(
    lease: Lease,
    renew: () => Promise<boolean>,
    counts: RetentionCounts,
  ): Promise<boolean> {
    const fenced = (work: (trx: Queryable) => Promise<void>) => ifHeld(deps.db(), lease, work);
    const count = (name: string, added: number) => {
      if (added > 0) counts[name] = (counts[name] ?? 0) + added;
    };
    const failures: unknown[] = [];
    for (const kept of deps.tables) {
      if (!(await renew())) return false;
      const beforeMs = await readCutoffMs(deps.db(), kept.keptFor);
      try {
        await kept.beforeRemoval?.(beforeMs);
      } catch (error) {
        // Its rows stay for the next run; the other tables need not wait for it.
        failures.push(error);
        continue;
      }
      for (const name of kept.isPartitioned ? await listExpiredPartitions(deps.db(), kept, beforeMs) : []) {
        await fenced((trx) => dropPartition(trx, name));
        count(`${kept.table} partitions`, 1);
      }
      await fenced(async (trx) => count(kept.table, await deleteExpired(trx, kept, beforeMs)));
    }
    await fenced(async (trx) => count('audit_entries', await deleteExpiredEntries(trx, auditRowsMax)));
    const nowMs = await readNowMs(deps.db());
    for (const { name, run } of deps.sweeps) count(name, await run(nowMs));
    if (failures.length > 0) throw failures[0];
    return true;
  }

  return {
    loop,
    /** Runs once; null when another process holds the lease. */
    async runOnce(): Promise<RetentionCounts | null> {
      lastCounts = {};
      return (await loop.runOnce()) ? lastCounts : null;
    },
    /** Result of the last run of any process. */
    state: () => readState(deps.db()),
  };
}
