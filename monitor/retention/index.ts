/**
 * Retention, the hourly `maintain_metrics`: deletes expired data, to the minute.
 *
 * `keptTables` says which rows are kept for how long.
 * Whole partitions are dropped, and expired rows of the boundary partition are deleted, so that nothing is kept more
 * than an hour too long and no table is rewritten. All times are the database's.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type KeptData, kept, type Period } from '#contracts/retention.ts';
import { deleteExpiredEntries } from '#service-kit/audit/index.ts';
import { createLeasedLoop, ifHeld, type Lease } from '#service-kit/leases/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import {
  deleteExpired,
  dropPartition,
  listExpiredPartitions,
  readCutoffMs,
  readState,
  writeState,
} from './store.ts';

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

// What the monitor does not keep permanently, and for how long (NET-8, retention). Tables without a line stay.

export interface KeptTable {
  table: string;
  /** The column with the time. */
  column: string;
  keptFor: Period;
  /** True: whole partitions are dropped, and only rows of the boundary partition are deleted. */
  isPartitioned: boolean;
  /** Condition for the rows of this line, as SQL; absent for all rows. */
  only?: string;
  /**
   * Called outside of any transaction before rows with a time before this moment are deleted. It removes what they refer to
   * elsewhere, such as objects in a storage. Rows from that moment on stay. When it throws, its rows stay until the next
   * run, which calls it again, so it must accept that a part is removed already.
   */
  beforeRemoval?(beforeMs: number): Promise<void>;
}

/** Data that a feature deletes by rules of its own, once a run. */
export interface Sweep {
  /** The name of its count in the report. */
  name: string;
  /** Gets the database's time, milliseconds since 1970; returns the number of deleted rows. */
  run(nowMs: number): Promise<number>;
}

const of = (data: KeptData, table: string, column: string, only?: string): KeptTable => ({
  ...{ table, column, keptFor: kept[data], isPartitioned: false },
  ...(only === undefined ? {} : { only }),
});
const partitioned = (data: KeptData, table: string, column: string): KeptTable => ({
  ...of(data, table, column),
  isPartitioned: true,
});

/** Tables of facts in PostgreSQL. Another engine has a time to live of its own. */
export const keptFacts: readonly KeptTable[] = [
  partitioned('pairs', 'endpoint_pairs', 'minute'),
  of('pairs', 'appended_uploads', 'appended_at'),
  partitioned('traffic', 'capture_minutes', 'minute'),
  partitioned('traffic', 'host_minutes', 'minute'),
  partitioned('traffic', 'application_facts', 'minute'),
  partitioned('pairs', 'pair_hours', 'hour'),
  partitioned('pairs', 'pair_name_hours', 'hour'),
  partitioned('pairs', 'pair_tens', 'start'),
  partitioned('pairs', 'usage_tens', 'start'),
  partitioned('traffic', 'address_hours', 'hour'),
  partitioned('traffic', 'address_tens', 'start'),
  partitioned('traffic', 'application_hours', 'hour'),
  partitioned('traffic', 'peer_network_hours', 'hour'),
  partitioned('traffic', 'late_peer_minutes', 'minute'),
  partitioned('traffic', 'minute_owners', 'minute'),
  partitioned('traffic', 'name_minutes', 'minute'),
  partitioned('traffic', 'name_tens', 'start'),
  of('traffic', 'rolled_tens', 'start'),
  partitioned('traffic', 'name_hours', 'hour'),
  partitioned('traffic', 'name_hour_locals', 'hour'),
  partitioned('traffic', 'name_day_locals', 'day'),
  partitioned('traffic', 'name_days', 'day'),
  of('traffic', 'rolled_days', 'day'),
  partitioned('pairs', 'name_pair_minutes', 'minute'),
  partitioned('pairs', 'name_pair_tens', 'start'),
  partitioned('pairs', 'name_pair_hours', 'hour'),
  of('traffic', 'site_hours', 'hour'),
  of('traffic', 'rolled_hours', 'hour'),
  of('traffic', 'site_minutes', 'minute'),
  of('traffic', 'sent_uploads', 'sent_at'),
  of('traffic', 'fact_verdicts', 'to_minute'),
  of('traffic', 'telemetry_gaps', 'to_minute'),
];

/** All of them, in the order in which they are worked off. */
export const keptTables: readonly KeptTable[] = [
  ...keptFacts,
  partitioned('availability', 'probe_results', 'minute'),
  partitioned('availability', 'probe_minutes', 'minute'),
  of('availability', 'probe_hours', 'hour'),
  // What detectors said.
  partitioned('traffic', 'detector_minutes', 'minute'),
  partitioned('traffic', 'detector_addresses', 'minute'),
  of('traffic', 'detector_epochs', 'last_used_at'),
  // As long as the sweep sends their minutes again.
  partitioned('pairs', 'minute_verdicts', 'minute'),
  // Drills and replays.
  of('traffic', 'protection_drills', 'starts_at'),
  of('traffic', 'protection_replays', 'asked_at'),
  // What is open stays.
  of('alerts', 'alert_episodes', 'resolved_at'),
  of('alerts', 'alert_notifications', 'created_at', 'episode_id is null'),
  // Rows that were left out.
  of('traffic', 'set_aside_hosts', 'minute'),
  of('traffic', 'spoofed_traffic', 'hour'),
  // Ended bindings and conflicts; devices stay.
  of('bindings', 'ip_bindings', 'last_seen_at'),
  of('bindings', 'ip_conflicts', 'resolved_at'),
  of('bindings', 'retired_macs', 'retired_at'),
  // Where servers were.
  of('bindings', 'vm_placements', 'ended_at'),
  // Names.
  of('traffic', 'application_names', 'last_seen_at'),
  // Destroyed servers, and changes of servers.
  of('traffic', 'vm_tombstones', 'received_at'),
  of('traffic', 'vm_changes', 'occurred_at'),
  // Actions: what is not ended stays.
  of('attacks', 'hand_off_actions', 'ended_at'),
  // Observations with their seconds and remote prefixes, and transitions, go with their incident.
  of('attacks', 'incidents', 'last_observed_at'),
  of('attacks', 'incident_observations', 'ends_at', 'incident_id is null'),
  of('attacks', 'site_correlations', 'last_observed_at'),
  // Those of attacks as long as incidents.
  of('events', 'events', 'occurred_at', "kind <> 'ddos_detected'"),
  of('attacks', 'events', 'occurred_at', "kind = 'ddos_detected'"),
  of('scans', 'scan_attempts', 'reported_at'),
  of('scans', 'scan_identifications', 'identified_at'),
  of('scans', 'scan_observations', 'observed_at'),
  of('scans', 'scan_requests', 'listed_at'),
  of('traffic', 'scan_targets', 'named_at'),
  of('scans', 'vulnerability_services', 'observed_at'),
  // Without evidence nothing of them is shown; a feed tells operations when it ends.
  of('traffic', 'vulnerability_servers', 'evidence_at'),
  // Software that a scan missed once is not new when the next one finds it again.
  of('scans', 'vulnerability_noted', 'gone_at'),
  of('traffic', 'vulnerability_ignores', 'ended_at'),
];
