/**
 * The way of an upload: stored before it is acknowledged, applied exactly once afterwards.
 *
 * `receive` validates, stores durably and answers; uploads are applied by workers, any number of them, each holding a
 * renewable lease over a share of the sensors. What an upload holds is written by the consumers that are registered
 * (`intake/upload-consumer.ts`). Their rows and the uploads' end are one transaction that is fenced by the lease's term,
 * so a worker that is killed, frozen or doubted leaves either all of it or nothing. What a consumer stores elsewhere, as an
 * engine of facts may, has to be found by the upload's token when the transaction is repeated. An upload that keeps
 * failing unexpectedly, or that ends its worker, is skipped after five attempts with the event `telemetry_rejected`
 * (NET-6.2); failures of the database itself never count. What comes at the same time is stored in one transaction and
 * applied in one, because a commit costs the same for a hundred as for one.
 */

import type { Clock } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { TelemetryReceipt } from '#contracts/sensor-api/http.ts';
import type { Events } from '#monitor/events/index.ts';
import { createIntake, type Intake, type UploadConsumer } from '#monitor/intake/index.ts';
import type { EnrolledSensor, Sensors } from '#monitor/sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { applyAtOnce } from './apply-batch.ts';
import { createDecodedUploads, type DecodedUploads } from './decoded-uploads.ts';
import { createReceiving, type UploadCheck } from './receive-upload.ts';
import * as store from './store.ts';
import { listKeptUploads, pruneUploads, readInboxState } from './store.ts';
import { createInboxWorker } from './worker.ts';

export type { InboxState, KeptUpload } from './store.ts';

export type Inbox = ReturnType<typeof createInbox>;

export function createInbox(given: InboxDeps) {
  const decoded = createDecodedUploads(given.clock, given.decodedBytesMax);
  const deps = { ...given, intake: given.intake ?? createIntake(given), decoded };
  const worker = createInboxWorker(deps);
  const receiveUpload = createReceiving(deps);
  async function noteOutcome<T extends { receipt: TelemetryReceipt }>(
    sensor: EnrolledSensor,
    received: Promise<T>,
  ): Promise<T> {
    try {
      const done = await received;
      deps.tally?.(done.receipt.receipt, 1);
      return done;
    } catch (error) {
      if (error instanceof CodedError) {
        deps.tally?.('refused', 1);
        await deps.sensors.noteRefusal(sensor.id, { code: error.code, message: error.message });
      }
      throw error;
    }
  }
  return {
    /**
     * Stores an upload and gives its receipt, after commit. Throws `telemetry.malformed`, `telemetry.encoding_unsupported`,
     * `telemetry.too_large`, and `telemetry.refused` for what must never be sent again; `telemetry.clock_ahead` for what
     * speaks of a time that has not come, which the sensor keeps. What was not taken is noted with its sensor.
     */
    async receive(
      sensor: EnrolledSensor,
      body: Uint8Array,
      encoding: string | undefined,
    ): Promise<TelemetryReceipt> {
      const { receipt } = await noteOutcome(sensor, receiveUpload(sensor, body, encoding));
      if (receipt.receipt === 'accepted') worker.wake();
      return receipt;
    },
    /**
     * Like `receive`, for urgent records in an upload of their own: it is applied before the receipt is given and waits for no
     * other upload. Where that fails it is applied by a worker like any other. `require` throws for an upload that holds
     * something else.
     */
    async receiveUrgent(
      sensor: EnrolledSensor,
      body: Uint8Array,
      encoding: string | undefined,
      require: UploadCheck,
    ): Promise<TelemetryReceipt> {
      const { receipt, read } = await noteOutcome(sensor, receiveUpload(sensor, body, encoding, require));
      if (receipt.receipt === 'duplicate') return receipt;
      const { spoolId, sequence } = read.upload;
      try {
        await applyAtOnce(deps, { sensorId: sensor.id, spoolId, sequence }, read);
      } catch (error) {
        deps.reporter.warn('urgent upload is left to a worker', { error: describeError(error) });
        worker.wake();
      }
      return receipt;
    },
    /** Applies what is due until nothing is that this worker may touch; for commands and tests. */
    drain: () => worker.drain(),
    /** Forgets tombstones older than two days whose numbers are covered (NET-8). */
    prune: () => pruneUploads(deps.db()),
    /** Applied uploads of these sensors that hold minutes from `fromMinute` on and before `toMinute`, as far as they are kept. */
    listKept: (sensorIds: readonly number[], fromMinute: number, toMinute: number) =>
      listKeptUploads((deps.reader ?? deps.db)(), sensorIds, fromMinute, toMinute),
    /** How much waits, for how long, and what became of the rest. */
    state: () => readInboxState((deps.reader ?? deps.db)()),
    /** Holds back what arrives; at most one process does so at a time. */
    hold: createInboxHold(deps.db),
    /** The loop that applies uploads; start it in as many processes as wanted. */
    worker,
  };
}

/** What happened to uploads in this process. */
export type InboxTally = (
  outcome: 'accepted' | 'duplicate' | 'refused' | 'applied' | 'failed' | 'rejected',
  count: number,
) => void;

export interface InboxDeps {
  db: () => Queryable;
  /** Connections that only read, for the state; the same as the others when absent. */
  reader?: () => Queryable;
  tally?: InboxTally;
  /** Reads uploads; one of its own when absent. */
  intake?: Intake;
  sensors: Pick<Sensors, 'noteContacts' | 'noteRefusal'>;
  /** What takes records out of uploads, in the order in which each batch's transaction writes. */
  consumers: readonly UploadConsumer[];
  events: Events;
  clock: Clock;
  reporter: Reporter;
  /** Bytes of decoded uploads that are held for the worker of this process; 0 where none runs in it. */
  decodedBytesMax?: number;
  /** How long uploads wait for others that are applied with them, at most; not at all when absent. */
  gatherMs?: number;
  /** How long a worker's lease outlives it. */
  leaseSeconds?: number;
  /** Pause after a failed attempt, doubled each time. */
  retrySeconds?: number;
}

/** The same, complete, for the inside of the inbox. */
export interface InboxParts extends InboxDeps {
  intake: Intake;
  decoded: DecodedUploads;
}

/**
 * Holding uploads back: what arrives after the hold is stored and receipted and waits, what arrived before is applied. A hold that its
 * process no longer renews ends by itself. Urgent uploads hold no facts and are applied all the same.
 */
const holdSeconds = 60;

function createInboxHold(db: () => Queryable) {
  return {
    /** Begins a hold under this id, in the place of any other. */
    async begin(id: string) {
      // First everything is held. A worker that has not seen it claims uploads that are stored by now, so it is the number after that
      // which divides what may have been begun from what has not.
      await store.beginHold(db(), id, holdSeconds);
      await store.openHold(db(), id);
    },
    /** False when it has run out or another took its place. */
    renew: (id: string) => store.renewHold(db(), id, holdSeconds),
    /** Uploads that arrived before it and wait. */
    countBefore: (id: string) => store.countBefore(db(), id),
    /** True, until the end of the transaction, if it lasts and nothing that arrived before it waits. */
    isSettled: async (trx: Queryable, id: string) =>
      (await store.lockHold(trx, id)) && (await store.countBefore(trx, id)) === 0,
    end: (id: string) => store.endHold(db(), id),
  };
}
