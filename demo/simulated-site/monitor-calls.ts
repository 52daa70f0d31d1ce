/** The calls of a sensor to the monitor, and what the answers mean. */
import { describeError } from '#common/errors/index.ts';
import { telemetryContentType } from '#contracts/sensor-api/http.ts';
import type { UploadOrder } from './build-upload.ts';

export type Outcome =
  | { kind: 'stored'; isDuplicate: boolean }
  /** Never to be sent again. */
  | { kind: 'refused'; message: string }
  /** The credential is not taken any more. */
  | { kind: 'denied' }
  | { kind: 'trouble'; message: string; waitMs: number };

const timeoutMs = 30_000;

interface ErrorAnswer {
  error?: { message?: string };
}

/** Without a credential: why the monitor refused. */
export type Enrolled = { credential: string } | { credential: null; reason: string };

export interface MonitorCalls {
  /** Exchanges an enrolment token for a credential, and that for one with an end, as every sensor does. */
  enrol(node: string, token: string): Promise<Enrolled>;
  /** Whether the plan asks for another credential; the new one, or null. */
  rotateWhenDue(credential: string): Promise<string | null>;
  send(credential: string, part: UploadOrder['part'], body: Uint8Array): Promise<Outcome>;
}

export function createMonitorCalls(monitorUrl: string, signal: AbortSignal): MonitorCalls {
  async function call(path: string, init: RequestInit) {
    const answer = await fetch(`${monitorUrl}/agent/v1${path}`, {
      ...init,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as ErrorAnswer };
  }
  const post = (path: string, value: object, credential?: string) =>
    call(path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(credential && { authorization: `Bearer ${credential}` }),
      },
      body: JSON.stringify(value),
    });
  const rotate = async (credential: string) => {
    const { status, body } = await post('/credential', {}, credential);
    return status === 201 ? (body as { credential: string }).credential : null;
  };
  return {
    async enrol(node, token) {
      const request = { token, host_name: node, node, sensor_version: 'simulated' };
      const { status, body } = await post('/enrol', request);
      if (status !== 201) return { credential: null, reason: body.error?.message ?? `status ${status}` };
      const { credential } = body as { credential: string };
      return { credential: (await rotate(credential)) ?? credential };
    },
    async rotateWhenDue(credential) {
      const headers = { authorization: `Bearer ${credential}` };
      const { status, body } = await call('/plan', { headers });
      const plan = body as { credential?: { rotate?: boolean } };
      return status === 200 && plan.credential?.rotate === true ? rotate(credential) : null;
    },
    async send(credential, part, body) {
      try {
        const answer = await call(part === 'incidents' ? '/incidents' : '/telemetry', {
          method: 'POST',
          headers: {
            authorization: `Bearer ${credential}`,
            'content-type': telemetryContentType,
            'content-encoding': 'zstd',
          },
          body: Buffer.from(body),
        });
        return outcomeOf(answer);
      } catch (error) {
        return { kind: 'trouble', message: describeError(error), waitMs: 1_000 };
      }
    },
  };
}

function outcomeOf(answer: { status: number; headers: Headers; body: ErrorAnswer }): Outcome {
  const message = answer.body.error?.message ?? `status ${answer.status}`;
  if (answer.status === 200)
    return { kind: 'stored', isDuplicate: (answer.body as { receipt?: string }).receipt === 'duplicate' };
  if (answer.status === 401) return { kind: 'denied' };
  if ([400, 413, 415, 422].includes(answer.status)) return { kind: 'refused', message };
  const waitMs = 1000 * Number(answer.headers.get('retry-after') ?? 1);
  return { kind: 'trouble', message, waitMs: Math.min(60_000, Math.max(1_000, waitMs || 0)) };
}
