/** Faults that the proofs of the spool plant in a sensor, to verify that they detect them. */
import { DatabaseSync } from 'node:sqlite';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import {
  compressUpload,
  decodeUpload,
  decompressUpload,
  encodeUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import type { PendingUpload, Spool } from '#sensor/spool/index.ts';

/** Faults that a proof must detect. */
export const plantedFaults = [
  'numbers_kept_in_memory',
  'deleted_before_receipt',
  'announced_before_commit',
  'no_gap_after_a_kill',
  'resent_under_a_new_number',
] as const;
/** Reported slightly too early: for proofs that kill at every system call. */
const momentaryFault = 'announced_a_moment_early';
/** Faults in the use of the disk, which only a tracer or a failing disk can reveal. */
export const diskFaults = ['synchronous_normal', 'failed_sync_believed', 'failed_append_ignored'] as const;
export type PlantedFault =
  | (typeof plantedFaults)[number]
  | (typeof diskFaults)[number]
  | typeof momentaryFault;

/**
 * A spool whose uplink gets `change(upload)` where it would get the oldest upload: of all, or of those that a monitor without
 * detection takes.
 */
export function changeOldest(
  spool: Spool,
  change: (upload: PendingUpload) => PendingUpload | null,
): Pick<Spool, 'oldest' | 'oldestOfBulk'> {
  const changed = (upload: PendingUpload | null) => (upload ? change(upload) : null);
  return {
    oldest: () => changed(spool.oldest()),
    oldestOfBulk: () => changed(spool.oldestOfBulk()),
  };
}

/** The spool with one of the faults planted. */
export function withFault(spool: Spool, fault: PlantedFault | null): Spool {
  let nextNumber = 1;
  const numbers = new Map<string, number>();
  switch (fault) {
    case 'numbers_kept_in_memory':
      return {
        ...spool,
        ...changeOldest(spool, (upload) => {
          const key = `${upload.spoolId} ${upload.sequence}`;
          const sequence = numbers.get(key) ?? nextNumber;
          if (!numbers.has(key)) nextNumber += 1;
          numbers.set(key, sequence);
          const content = decodeUpload(decompressUpload(upload.body, 'zstd'));
          const body = compressUpload(encodeUpload({ ...content, sequence }));
          return { ...upload, sequence, body, isNew: false };
        }),
        acknowledge: () => spool.acknowledge(spool.oldest()!, 'accepted'),
        refuse: () => spool.refuse(spool.oldest()!),
      };
    case 'deleted_before_receipt':
      return {
        ...spool,
        ...changeOldest(spool, (upload) => {
          spool.acknowledge(upload, 'accepted');
          return upload;
        }),
      };
    case 'failed_append_ignored':
      return {
        ...spool,
        append(minutes, gaps, extras) {
          try {
            spool.append(minutes, gaps, extras);
          } catch {
            // As if it had been stored.
          }
        },
      };
    case 'no_gap_after_a_kill':
      return { ...spool, coveredBefore: () => null };
    case 'resent_under_a_new_number':
      return {
        ...spool,
        open() {
          spool.open();
          const upload = spool.oldest();
          if (upload) spool.renumber(upload);
        },
      };
    default:
      return spool;
  }
}

/** Plants the faults in calls of SQLite. */
export function misguideSqlite(fault: PlantedFault | null): void {
  const exec = DatabaseSync.prototype.exec;
  if (fault === 'synchronous_normal') {
    DatabaseSync.prototype.exec = function (sql) {
      exec.call(this, sql);
      if (/\bsynchronous\b/i.test(sql)) exec.call(this, 'pragma synchronous = normal');
    };
  }
  if (fault === 'failed_sync_believed') {
    DatabaseSync.prototype.exec = function (sql) {
      if (!sql.includes('wal_checkpoint(TRUNCATE)')) exec.call(this, sql);
    };
  }
}

/** The spool as used by a collector. Each committed minute is printed, which the proof counts as collected. */
export function announcing(spool: Spool, fault: PlantedFault | null): Spool {
  let held: Parameters<Spool['append']> | null = null;
  const announce = (minutes: readonly TelemetryMinute[]) => {
    for (const { minute } of minutes) process.stdout.write(`${minute}\n`);
  };
  return {
    ...spool,
    append(minutes, gaps, extras) {
      if (fault === momentaryFault) announce(minutes);
      if (fault !== 'announced_before_commit') spool.append(minutes, gaps, extras);
      else {
        if (held) spool.append(...held);
        held = [minutes, gaps, extras];
      }
      if (fault !== momentaryFault) announce(minutes);
    },
  };
}
