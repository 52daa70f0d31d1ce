/** Calls over the lab's control socket. */
import { request } from 'node:http';
import { CodedError, describeError } from '#common/errors/index.ts';

export interface LabSocket {
  /** `control_socket` of the lab's `world.json`. */
  socketPath: string;
  timeoutMs?: number;
}

export interface LabAnswer {
  status: number;
  body: unknown;
}

/** Sends one request; resolves with the body of a success, throws `hypervisor.…` for everything else. */
export type CallLab = (method: string, path: string, body?: object) => Promise<unknown>;

const answerBytesMax = 1024 * 1024;

export async function callLab(
  socket: LabSocket,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const answer = await sendToLab(socket, method, path, body);
  if (answer.status >= 300) throw refusal(answer);
  return answer.body;
}

/** 4xx is the lab's last word; 5xx and silence are worth another attempt. */
export function refusal(answer: LabAnswer): CodedError {
  const error = (answer.body as { error?: { code?: unknown; message?: unknown } } | null)?.error;
  const code = answer.status < 500 ? 'hypervisor.refused' : 'hypervisor.failed';
  return new CodedError(
    code,
    `The lab answered ${answer.status} ${String(error?.message ?? error?.code ?? '')}.`,
  );
}

/** The answer, also a refusal; throws `hypervisor.unreachable` when there is none. */
export function sendToLab(
  options: LabSocket,
  method: string,
  path: string,
  body?: object,
): Promise<LabAnswer> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) =>
      reject(
        new CodedError(
          'hypervisor.unreachable',
          `The lab does not answer (${describeError(error)}).`,
          {},
          error,
        ),
      );
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = { host: 'lab', ...(text ? { 'content-type': 'application/json' } : {}) };
    const call = request(
      {
        socketPath: options.socketPath,
        method,
        path,
        headers: { ...headers, 'content-length': Buffer.byteLength(text) },
        timeout: options.timeoutMs ?? 15_000,
      },
      (response) => {
        let received = '';
        response.setEncoding('utf8');
        response.on('data', (piece: string) => {
          received += piece;
          if (received.length > answerBytesMax) call.destroy(new Error('the answer is too long'));
        });
        response.on('error', fail);
        response.on('end', () => {
          try {
            resolve({ status: response.statusCode ?? 500, body: received ? JSON.parse(received) : null });
          } catch (error) {
            fail(error);
          }
        });
      },
    );
    call.on('timeout', () => call.destroy(new Error('no answer in time')));
    call.on('error', fail);
    call.end(text);
  });
}
