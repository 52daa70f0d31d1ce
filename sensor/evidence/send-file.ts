/** One attempt to hand a capture file to the monitor, and what its answer means. */
import { describeError } from '#common/errors/index.ts';
import { evidenceContentType, incidentUnknownCode } from '#contracts/sensor-api/evidence.ts';
import { errorCode, type MonitorClient, refusalMessage, retryAfterMs } from '#sensor/monitor-client/index.ts';

/** The monitor may store it in a store far away. */
const answerTimeoutMs = 45_000;

export type SendOutcome =
  | { kind: 'stored' }
  /** Never to be sent again. */
  | { kind: 'refused'; message: string }
  /** The monitor does not know the incident yet. */
  | { kind: 'unknown'; message: string }
  | { kind: 'trouble'; message: string; waitMs: number };

export async function sendFile(
  client: MonitorClient,
  id: string,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<SendOutcome> {
  try {
    const answer = await client.request({
      method: 'POST',
      path: `/evidence/${id}`,
      headers: { 'content-type': evidenceContentType, 'content-encoding': 'zstd' },
      body: bytes,
      timeoutMs: answerTimeoutMs,
      signal,
    });
    const message = refusalMessage(answer);
    const code = errorCode(answer);
    if (answer.status === 201) return { kind: 'stored' };
    if (answer.status === 409 && code === incidentUnknownCode) return { kind: 'unknown', message };
    // A proxy's page of that status is not the monitor's word.
    if ([400, 404, 413].includes(answer.status) && code !== null) return { kind: 'refused', message };
    return { kind: 'trouble', message, waitMs: retryAfterMs(answer) };
  } catch (error) {
    return { kind: 'trouble', message: describeError(error), waitMs: 0 };
  }
}
