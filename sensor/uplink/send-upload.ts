/** One attempt to hand one upload to the monitor, and what its answer means. */
import { describeError } from '#common/errors/index.ts';
import { clockAheadCode, retentionRefusalMessage, telemetryContentType } from '#contracts/sensor-api/http.ts';
import {
  compressUpload,
  decompressUpload,
  type UploadEncoding,
} from '#contracts/sensor-api/telemetry-codec.ts';
import {
  errorCode,
  type MonitorAnswer,
  type MonitorClient,
  refusalMessage,
  retryAfterMs,
} from '#sensor/monitor-client/index.ts';
import type { PendingUpload } from '#sensor/spool/index.ts';

export type Outcome =
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
  deps: {
    client: MonitorClient;
    encoding: UploadEncoding;
    timeoutMs: number;
    signal: AbortSignal;
  },
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
