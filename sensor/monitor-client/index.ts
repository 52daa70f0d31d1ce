/**
 * Requests to the monitor's sensor API, with limits on time and size.
 *
 * Guarantees: an answer of any status is a value; only a missing answer throws (`monitor.unreachable`). Redirects are
 * not followed, so that the credential is not sent elsewhere. Nothing is sent to an http address of another machine
 * (`transport.insecure`) unless it is allowed.
 */
import { CodedError } from '#common/errors/index.ts';
import { describeTransportFailure, requirePrivateTransport } from '#common/transport/index.ts';

const answerBytesMax = 1024 * 1024;

export interface MonitorRequest {
  method: 'GET' | 'POST';
  /** Path below `/agent/v1`, such as `/plan`. */
  path: string;
  timeoutMs: number;
  credential?: string;
  headers?: Record<string, string>;
  body?: Uint8Array | string;
  signal?: AbortSignal;
  /** The longest answer that is read; unset means 1 MiB. */
  answerBytesMax?: number;
}

export interface MonitorAnswer {
  status: number;
  headers: Headers;
  /** Parsed JSON, or null when the body is not JSON. */
  json: unknown;
}

export interface MonitorClient {
  readonly url: string;
  request(request: MonitorRequest): Promise<MonitorAnswer>;
}

/** Address of the monitor. */
export interface MonitorAddress {
  /** Without a trailing slash. */
  url: string;
  /** The URL may be http on another machine. */
  allowsInsecureHttp: boolean;
  /** The setting to add and its place, for the refusal of an http URL. */
  insecureAdvice: string;
}

/** Receives the `Date` of each answer, and the value that `begin` returned when its request was sent. */
export interface AnswerListener<T> {
  begin(): T;
  onAnswer(date: string | null, begun: T): void;
}

const defaultAdvice = 'Use https.';
const tooLong = 'its answer is too long';

/** Creates a client of the monitor at this address; a plain URL must be https or on this machine. */
export function createMonitorClient<T = null>(
  address: string | MonitorAddress,
  listener?: AnswerListener<T>,
): MonitorClient {
  const { url, allowsInsecureHttp, insecureAdvice } =
    typeof address === 'string'
      ? { url: address, allowsInsecureHttp: false, insecureAdvice: defaultAdvice }
      : address;
  return {
    url,
    async request(request) {
      requirePrivateTransport(url, { isAllowed: allowsInsecureHttp, advice: insecureAdvice });
      const timeout = AbortSignal.timeout(request.timeoutMs);
      const headers: Record<string, string> = { accept: 'application/json', ...request.headers };
      if (request.credential) headers.authorization = `Bearer ${request.credential}`;
      try {
        const begun = listener?.begin();
        const response = await fetch(`${url}/agent/v1${request.path}`, {
          method: request.method,
          headers,
          redirect: 'manual',
          signal: request.signal ? AbortSignal.any([timeout, request.signal]) : timeout,
          ...(request.body === undefined ? {} : { body: request.body as NonNullable<RequestInit['body']> }),
        });
        listener?.onAnswer(response.headers.get('date'), begun!);
        return {
          status: response.status,
          headers: response.headers,
          json: await readJson(response, request.answerBytesMax),
        };
      } catch (error) {
        throw new CodedError(
          'monitor.unreachable',
          `The monitor at ${url} did not answer: ${reason(error)}.`,
        );
      }
    },
  };
}

/** The same client with this credential. */
export function withCredential(client: MonitorClient, credential: string): MonitorClient {
  return { url: client.url, request: (request) => client.request({ ...request, credential }) };
}

/** The code of an error body; null when the answer has none. */
export function errorCode(answer: MonitorAnswer): string | null {
  const code = (answer.json as { error?: { code?: unknown } } | null)?.error?.code;
  return typeof code === 'string' ? code : null;
}

/** The message of a refusal, limited in length, or its status. */
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

async function readJson(response: Response, bytesMax = answerBytesMax): Promise<unknown> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    length += (piece as Uint8Array).length;
    if (length > bytesMax) throw new Error(tooLong);
    pieces.push(piece as Uint8Array);
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch {
    return null;
  }
}

/** An answer that is too long is no failure of the transport. */
const reason = (error: unknown) =>
  error instanceof Error && error.message === tooLong ? tooLong : describeTransportFailure(error);
