/** What the uplink does about the monitor's answers: what happens to the upload, and how long to wait before the next one. */

import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { clockAheadCode, retentionRefusalMessage, telemetryContentType } from '#contracts/sensor-api/http.ts';
import {
  compressUpload,
  decompressUpload,
  type UploadEncoding,
  uploadEncodings,
} from '#contracts/sensor-api/telemetry-codec.ts';
import {
  errorCode,
  type MonitorAnswer,
  type MonitorClient,
  refusalMessage,
  retryAfterMs,
} from '#sensor/monitor-client/index.ts';
import type { PendingUpload, Spool } from '#sensor/spool/index.ts';
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

// One attempt to hand one upload to the monitor, and what its answer means.

type Outcome =
  /** `setAside`: rows that the monitor left out, because their counters can't be true. */
  | { kind: 'stored'; receipt: 'accepted' | 'duplicate'; setAside: number }
  /** Never to be sent again. */
  | { kind: 'refused'; message: string }
  /** It speaks of a time that has not come, or of one so long ago that it is not kept; nothing was stored. */
  | { kind: 'out_of_time'; message: string; isAhead: boolean }
  | { kind: 'denied'; message: string }
  /** The monitor does not understand the body's encoding. */
  | { kind: 'encoding_unsupported'; message: string }
  | { kind: 'trouble'; message: string; waitMs: number };

/** Sends the upload once. Never throws. */
export async function sendUpload(
  deps: { client: MonitorClient; encoding: UploadEncoding; timeoutMs: number; signal: AbortSignal },
  upload: PendingUpload,
): Promise<Outcome> {
  try {
    const answer = await deps.client.request({
      method: 'POST',
      path: pathOf(upload),
      headers: {
        'content-type': telemetryContentType,
        ...(deps.encoding === 'identity' ? {} : { 'content-encoding': deps.encoding }),
      },
      body: encodedBody(upload.body, deps.encoding),
      timeoutMs: deps.timeoutMs,
      signal: deps.signal,
    });
    return outcomeOf(answer, upload);
  } catch (error) {
    return { kind: 'trouble', message: describeError(error), waitMs: 0 };
  }
}

/** Incidents have an address of their own. */
function pathOf({ kind }: PendingUpload): string {
  return kind === 'incidents' ? '/incidents' : '/telemetry';
}

/** The spool keeps uploads as Zstandard. */
function encodedBody(body: Uint8Array, encoding: UploadEncoding): Uint8Array {
  return encoding === 'zstd' ? body : compressUpload(decompressUpload(body, 'zstd'), encoding);
}

function outcomeOf(answer: MonitorAnswer, upload: PendingUpload): Outcome {
  const message = refusalMessage(answer);
  if (answer.status === 503 && errorCode(answer) === clockAheadCode)
    return { kind: 'out_of_time', message, isAhead: true };
  // An older monitor's word for the same.
  if (answer.status === 422 && /\bin the future\b/.test(message))
    return { kind: 'out_of_time', message, isAhead: true };
  if (answer.status === 422 && message === retentionRefusalMessage)
    return { kind: 'out_of_time', message, isAhead: false };
  if (answer.status === 415 || errorCode(answer) === 'telemetry_encoding_unsupported')
    return { kind: 'encoding_unsupported', message };
  switch (answer.status) {
    case 200:
      return receiptOf(answer, upload);
    case 400:
    case 413:
    case 422:
      // A proxy's page of that status is not the monitor's word; only its own body may cost a minute.
      return hasErrorBody(answer)
        ? { kind: 'refused', message }
        : trouble(answer, `status ${answer.status} without the monitor's error body`);
    case 401:
    case 403:
      return { kind: 'denied', message };
    default:
      return trouble(answer, message);
  }
}

function receiptOf(answer: MonitorAnswer, upload: PendingUpload): Outcome {
  const body = answer.json as {
    spool_id?: unknown;
    sequence?: unknown;
    receipt?: unknown;
    set_aside?: unknown;
  } | null;
  const receipt = body?.receipt;
  if (body?.spool_id !== upload.spoolId || body.sequence !== upload.sequence) {
    return trouble(answer, 'the answer is no receipt for this upload');
  }
  if (receipt !== 'accepted' && receipt !== 'duplicate')
    return trouble(answer, 'the receipt says nothing known');
  const setAside = Number.isSafeInteger(body?.set_aside) ? (body!.set_aside as number) : 0;
  return { kind: 'stored', receipt, setAside };
}

function hasErrorBody(answer: MonitorAnswer): boolean {
  const body = answer.json as { error?: { code?: unknown; message?: unknown } } | null;
  return typeof body?.error?.code === 'string' && typeof body.error.message === 'string';
}

function trouble(answer: MonitorAnswer, message: string): Outcome {
  return { kind: 'trouble', message, waitMs: retryAfterMs(answer) };
}
