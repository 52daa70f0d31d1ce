/** What the uplink does about the monitor's answers: what happens to the upload, and how long to wait before the next one. */
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { type UploadEncoding, uploadEncodings } from '#contracts/sensor-api/telemetry-codec.ts';
import type { PendingUpload, Spool } from '#sensor/spool/index.ts';
import type { Outcome } from './send-upload.ts';
import type { TimeCheck } from './time-check.ts';

const backoff = { firstMs: 1000, maxMs: 60_000 };
/** Wait before a denied credential is tried again; an operator must fix it. */
const deniedWaitMs = 120_000;
/** How soon the clock is looked at again while it is wrong. */
export const heldWaitMs = 10_000;

interface OutcomesDeps {
  spool: Pick<Spool, 'acknowledge' | 'refuse' | 'renumber' | 'status'>;
  reporter: Reporter;
  /** Null: uploads are never stamped again. */
  times: TimeCheck | null;
  random?: (() => number) | undefined;
}

type OutcomeOf<Kind extends Outcome['kind']> = Extract<Outcome, { kind: Kind }>;

/** What the answers since the start add up to. */
export class Outcomes {
  readonly #deps: OutcomesDeps;
  /** Uploads that were sent at least once since the start. */
  readonly #attempted = new Set<string>();
  #failures = 0;
  #encoding: UploadEncoding = uploadEncodings[0];

  constructor(deps: OutcomesDeps) {
    this.#deps = deps;
  }

  /** How the next upload is to be encoded. */
  get encoding(): UploadEncoding {
    return this.#encoding;
  }

  wasAttempted(upload: PendingUpload): boolean {
    return this.#attempted.has(keyOf(upload));
  }

  /** Deals with one answer. Returns how long to rest before the next upload. */
  take(upload: PendingUpload, outcome: Outcome): number {
    const isRepeated = this.wasAttempted(upload);
    this.#attempted.add(keyOf(upload));
    switch (outcome.kind) {
      case 'stored':
        return this.#stored(upload, outcome, isRepeated);
      case 'refused':
        return this.#refused(upload, outcome.message);
      case 'out_of_time':
        return this.#outOfTime(upload, outcome);
      case 'denied':
        this.#failures += 1;
        this.#deps.reporter.error("the monitor does not accept this sensor's credential; uploads wait", {
          sequence: upload.sequence,
          why: outcome.message,
          ...this.#backlog(),
        });
        return deniedWaitMs;
      case 'encoding_unsupported':
        return this.#useNextEncoding(outcome.message);
      case 'trouble':
        return this.#trouble(upload, outcome);
    }
  }

  #stored(upload: PendingUpload, outcome: OutcomeOf<'stored'>, isRepeated: boolean): number {
    const { spool, reporter } = this.#deps;
    const { sequence } = upload;
    if (this.#failures > 0) reporter.info('the monitor takes uploads again', { sequence });
    this.#failures = 0;
    if (outcome.receipt === 'duplicate' && upload.isNew && !isRepeated) {
      // It was never sent before, so its number belongs to another upload, from another copy of this spool.
      reporter.warn('the spool is an old copy and takes new numbers', { sequence });
      spool.renumber(upload);
      return 0;
    }
    spool.acknowledge(upload, outcome.receipt);
    this.#attempted.delete(keyOf(upload));
    reporter.debug('upload receipted', { sequence, receipt: outcome.receipt });
    if (outcome.setAside > 0)
      reporter.warn('rows of an upload could not be true and were left out', {
        sequence,
        rows: outcome.setAside,
      });
    return 0;
  }

  #refused(upload: PendingUpload, why: string): number {
    this.#failures = 0;
    const gaps = this.#deps.spool.refuse(upload);
    this.#attempted.delete(keyOf(upload));
    const phrase =
      gaps.length > 0 ? 'upload refused, a gap takes its place' : 'gap record refused and given up';
    this.#deps.reporter.error(phrase, { sequence: upload.sequence, why });
    return 0;
  }

  #outOfTime(upload: PendingUpload, { message, isAhead }: OutcomeOf<'out_of_time'>): number {
    const { times, reporter } = this.#deps;
    // Nothing of it was stored, so another number is no second copy.
    this.#attempted.delete(keyOf(upload));
    if (times?.stampAgain(upload)) return 0;
    if (!isAhead && !times?.isWrong()) return this.#refused(upload, message);
    this.#failures += 1;
    reporter.warn('the monitor does not take this time; the upload waits for the clock to be set', {
      sequence: upload.sequence,
      why: message,
      ...this.#backlog(),
    });
    return Math.max(this.#backoffMs(), heldWaitMs);
  }

  #useNextEncoding(why: string): number {
    const encoding = this.#encoding;
    const next = uploadEncodings[uploadEncodings.indexOf(encoding) + 1];
    this.#deps.reporter.warn('the monitor does not understand this encoding', { encoding, why });
    // After the last one the first is tried again, later: a monitor that takes none of them is in trouble.
    this.#encoding = next ?? uploadEncodings[0];
    if (next) return 0;
    this.#failures += 1;
    return this.#backoffMs();
  }

  #trouble({ sequence }: PendingUpload, { message: why, waitMs }: OutcomeOf<'trouble'>): number {
    this.#failures += 1;
    const failures = this.#failures;
    // The first failure and then ever fewer: a day without the monitor must not fill the log.
    if (Number.isInteger(Math.log2(failures)))
      this.#deps.reporter.warn('upload failed, trying again', {
        sequence,
        why,
        failures,
        ...this.#backlog(),
      });
    return Math.max(this.#backoffMs(), waitMs);
  }

  #backoffMs(): number {
    return backoffMs(backoff, this.#failures, this.#deps.random);
  }

  /** What waits, and how long the spool can go on like this. */
  #backlog(): Record<string, number> {
    const { pendingUploads, roomMinutes } = this.#deps.spool.status();
    return {
      pending: pendingUploads,
      ...(roomMinutes === null ? {} : { room_hours: Math.round(roomMinutes / 6) / 10 }),
    };
  }
}

function keyOf({ spoolId, sequence }: PendingUpload): string {
  return `${spoolId} ${sequence}`;
}
