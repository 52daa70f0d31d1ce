/**
 * How features take what sensors upload: the contract between the inbox and the features.
 *
 * The inbox stores uploads, decodes each once and applies it once; it does not know what an upload holds. Each kind of
 * record has one consumer, registered in the composition, which selects its records out of an upload and writes them.
 * Everything that all consumers write for an upload is one transaction together with the upload's end.
 * `docs/adding-a-record.md` says how to add a kind.
 */

import { CodedError } from '#common/errors/index.ts';
import { keptMs } from '#contracts/retention.ts';
import type { SetAside } from '#contracts/sensor-api/set-aside.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** At their longest, in seconds: retention would delete older records within the hour. */
export const keptSeconds = keptMs('traffic') / 1000;

/**
 * What a consumer throws where it can write nothing now, for a reason that is not in the records, such as a server of its own that
 * does not answer. The uploads stay as they are and are applied later; no attempt is counted.
 */
export class ConsumerAway extends CodedError {
  constructor(message: string, cause: unknown) {
    super('intake.consumer_away', message, {}, cause);
  }
}

/** An upload that is being applied. Consumers share it, so none of them may change it. */
export interface ArrivedUpload {
  siteId: number;
  sensorId: number;
  /** The database's time. */
  nowMs: number;
  /** With the sensor, its `spoolId` and `sequence` identify the upload. */
  upload: TelemetryUpload;
  /** Rows that were left out of it. */
  setAside: SetAside;
}

/** An upload that is given up, because every attempt to apply it failed (NET-6.2). */
export interface SkippedUpload {
  siteId: number;
  sensorId: number;
  spoolId: string;
  sequence: number;
  /** Its first and last observed minute; null: it held none. */
  firstMinute: number | null;
  lastMinute: number | null;
}

/** Which minutes records speak of; each is the second at which it starts, since 1970. */
export interface RecordTimes {
  /** Minutes that were observed. An upload whose last one is older than three months is refused (NET-7.1). */
  observed?: readonly number[];
  /** Other minutes. An upload that speaks of any minute too far in the future stays with its sensor (NET-7.1). */
  mentioned?: readonly number[];
}

/** A feature that takes one kind of record. */
export interface UploadConsumer<Records = unknown> {
  /** The kind of record, for logs: `probes`. */
  readonly kind: string;
  /** When the upload is received: the minutes that its records speak of. Without it they have no time. */
  times?(upload: TelemetryUpload): RecordTimes;
  /** This kind's records in an upload, bounded to what may be stored; null where it holds none. */
  select(arrived: ArrivedUpload): Records | null;
  /**
   * Makes room for the records of a batch, before and outside the transaction, because it takes locks of its own. It
   * may be called for records that are not applied afterwards, and again for the same ones.
   */
  prepare?(records: readonly Records[]): Promise<void>;
  /**
   * Writes the records of a batch, in the order in which their uploads arrived, in the transaction that ends the uploads.
   * Called once at most in a transaction, and only with records. Throwing fails the batch, and each of its uploads is
   * then tried alone. Throws `ConsumerAway` where the records are not to blame.
   */
  apply(trx: Queryable, records: readonly Records[]): Promise<void>;
  /** Writes what a skipped upload means to this kind, such as a gap. Without it, it means nothing. */
  skip?(trx: Queryable, skipped: SkippedUpload): Promise<void>;
  /**
   * Work that records leave behind, such as roll-ups. Called after each round of batches, also after one that applied
   * nothing, because another worker may have ended before its own call. Never twice at a time in one process; it may
   * run beside the next batches.
   */
  followUp?(): Promise<void>;
}
