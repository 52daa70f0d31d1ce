/** What the inbox needs from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Events } from '#monitor/events/index.ts';
import type { Intake, UploadConsumer } from '#monitor/intake/index.ts';
import type { Sensors } from '#monitor/sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { DecodedUploads } from './decoded-uploads.ts';

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
