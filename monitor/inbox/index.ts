/**
 * The way of an upload: stored before it is acknowledged, applied exactly once afterwards.
 *
 * `receive` validates, stores durably and answers; facts are made by workers, any number of them, each holding a
 * renewable lease over a share of the sensors. Facts and the uploads' end are one transaction that is fenced by the
 * lease's term, so a worker that is killed, frozen or doubted leaves either all of it or nothing. An upload that keeps
 * failing unexpectedly, or that ends its worker, is skipped after five attempts with the event `telemetry_rejected`
 * (NET-6.2); failures of the database itself never count. What comes at the same time is stored in one transaction and
 * applied in one, because a commit costs the same for a hundred as for one.
 */
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { TelemetryReceipt } from '#contracts/sensor-api/http.ts';
import type { Events } from '#monitor/events/index.ts';
import type { FactStore } from '#monitor/facts/index.ts';
import type { Intake } from '#monitor/intake/index.ts';
import type { Probes } from '#monitor/probes/index.ts';
import type { EnrolledSensor, Sensors } from '#monitor/sensors/index.ts';
import type { SetAsides } from '#monitor/set-asides/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AppliedUpload } from './apply-batch.ts';
import { createReceiving } from './receive-upload.ts';
import { type InboxState, type KeptUpload, listKeptUploads, pruneUploads, readInboxState } from './store.ts';
import { createInboxWorker } from './worker.ts';

export type { AppliedUpload } from './apply-batch.ts';
export type { InboxState, KeptUpload } from './store.ts';

/** Called once for each batch of uploads, inside its transaction; what it writes is part of applying them. */
export type OnUploads = (trx: Queryable, uploads: readonly AppliedUpload[]) => Promise<void>;

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
  facts: Pick<FactStore, 'prepare' | 'trimUnobservedGaps' | 'append' | 'rollUp'>;
  probes?: Pick<Probes, 'prepare' | 'addResults'>;
  setAsides?: Pick<SetAsides, 'note'>;
  events: Events;
  clock: Clock;
  reporter: Reporter;
  onUploads?: OnUploads;
  /** How long a worker's lease outlives it. */
  leaseSeconds?: number;
  /** Pause after a failed attempt, doubled each time. */
  retrySeconds?: number;
}

export interface Inbox {
  /**
   * Stores an upload and gives its receipt, after commit. Throws `telemetry.malformed`, `telemetry.encoding_unsupported`,
   * `telemetry.too_large`, and `telemetry.refused` for what must never be sent again; `telemetry.clock_ahead` for what
   * speaks of a time that has not come, which the sensor keeps. What was not taken is noted with its sensor.
   */
  receive(sensor: EnrolledSensor, body: Uint8Array, encoding: string | undefined): Promise<TelemetryReceipt>;
  /** Applies what is due until nothing is that this worker may touch; for commands and tests. */
  drain(): Promise<void>;
  /** Forgets tombstones older than two days whose numbers are covered (NET-8). */
  prune(): Promise<number>;
  /** Applied uploads of these sensors that hold minutes from `fromMinute` on and before `toMinute`, as far as they are kept. */
  listKept(sensorIds: readonly number[], fromMinute: number, toMinute: number): Promise<KeptUpload[]>;
  /** How much waits, for how long, and what became of the rest. */
  state(): Promise<InboxState>;
  /** The loop that applies uploads; start it in as many processes as wanted. */
  readonly worker: Part;
}

export function createInbox(deps: InboxDeps): Inbox {
  const worker = createInboxWorker(deps);
  const receiveUpload = createReceiving(deps);
  return {
    async receive(sensor, body, encoding) {
      try {
        const receipt = await receiveUpload(sensor, body, encoding);
        deps.tally?.(receipt.receipt, 1);
        if (receipt.receipt === 'accepted') worker.wake();
        return receipt;
      } catch (error) {
        if (error instanceof CodedError) {
          deps.tally?.('refused', 1);
          await deps.sensors.noteRefusal(sensor.id, { code: error.code, message: error.message });
        }
        throw error;
      }
    },
    drain: () => worker.drain(),
    prune: () => pruneUploads(deps.db()),
    listKept: (sensorIds, fromMinute, toMinute) =>
      listKeptUploads((deps.reader ?? deps.db)(), sensorIds, fromMinute, toMinute),
    state: () => readInboxState((deps.reader ?? deps.db)()),
    worker,
  };
}
