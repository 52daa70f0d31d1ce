/**
 * Requests to the monitor's sensor API, bounded in time and size.
 *
 * Promises: an answer of any status is a value; only the absence of one throws (`monitor.unreachable`). Redirects are
 * not followed, because the credential must not travel to wherever they point.
 */
import { CodedError, describeError } from '#common/errors/index.ts';

const answerBytesMax = 1024 * 1024;

export interface MonitorRequest {
  method: 'GET' | 'POST';
  /** Below `/agent/v1`, such as `/plan`. */
  path: string;
  timeoutMs: number;
  credential?: string;
  headers?: Record<string, string>;
  body?: Uint8Array | string;
  signal?: AbortSignal;
}

export interface MonitorAnswer {
  status: number;
  headers: Headers;
  /** Parsed JSON, or null when the body is none. */
  json: unknown;
}

export interface MonitorClient {
  readonly url: string;
  request(request: MonitorRequest): Promise<MonitorAnswer>;
}

/**
 * Makes a client of the monitor at this URL, which has no trailing slash. `onAnswer` hears of each answer's `Date`, and of
 * what `begin` gave when its request was sent.
 */
export function createMonitorClient<T = null>(
  url: string,
  fetcher: typeof fetch = fetch,
  listener?: { begin(): T; onAnswer(date: string | null, begun: T): void },
): MonitorClient {
  return {
    url,
    async request(request) {
      const timeout = AbortSignal.timeout(request.timeoutMs);
      const headers: Record<string, string> = { accept: 'application/json', ...request.headers };
      if (request.credential) headers.authorization = `Bearer ${request.credential}`;
      try {
        const begun = listener?.begin();
        const response = await fetcher(`${url}/agent/v1${request.path}`, {
          method: request.method,
          headers,
          redirect: 'manual',
          signal: request.signal ? AbortSignal.any([timeout, request.signal]) : timeout,
          ...(request.body === undefined ? {} : { body: request.body as NonNullable<RequestInit['body']> }),
        });
        listener?.onAnswer(response.headers.get('date'), begun!);
        return { status: response.status, headers: response.headers, json: await readJson(response) };
      } catch (error) {
        throw new CodedError(
          'monitor.unreachable',
          `The monitor at ${url} did not answer: ${reason(error)}.`,
        );
      }
    },
  };
}

/** What a refusal says of itself, cut to a readable length, or its status. */
export function refusalMessage(answer: MonitorAnswer): string {
  const body = answer.json as { error?: { message?: unknown } } | null;
  const message = body?.error?.message;
  return typeof message === 'string' && message !== '' ? message.slice(0, 500) : `status ${answer.status}`;
}

/** Milliseconds that `Retry-After` asks for, at most ten minutes, or 0. */
export function retryAfterMs(answer: MonitorAnswer): number {
  const text = answer.headers.get('retry-after') ?? '';
  return /^\d{1,6}$/.test(text) ? Math.min(Number(text), 600) * 1000 : 0;
}

async function readJson(response: Response): Promise<unknown> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    length += (piece as Uint8Array).length;
    if (length > answerBytesMax) throw new Error('its answer is too long');
    pieces.push(piece as Uint8Array);
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch {
    return null;
  }
}

function reason(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'no answer in time';
  const cause = error instanceof Error ? error.cause : undefined;
  return describeError(cause ?? error);
}
