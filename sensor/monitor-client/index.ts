/**
 * Requests to the monitor's sensor API, bounded in time and size.
 *
 * Promises: an answer of any status is a value; only the absence of one throws (`monitor.unreachable`). Redirects are
 * not followed, because the credential must not travel to wherever they point. Nothing is sent to an http address of
 * another machine (`transport.insecure`) unless that is allowed.
 */
import { CodedError, describeError } from '#common/errors/index.ts';
import { requirePrivateTransport } from '#common/transport/index.ts';

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

/** How the monitor is reached. */
export interface MonitorAddress {
  /** Without a trailing slash. */
  url: string;
  /** The URL may be http on another machine. */
  allowsInsecureHttp: boolean;
  /** Which line to add where, for the refusal of an http URL. */
  insecureAdvice: string;
}

/** Hears of each answer's `Date`, and of what `begin` gave when its request was sent. */
export interface AnswerListener<T> {
  begin(): T;
  onAnswer(date: string | null, begun: T): void;
}

const defaultAdvice = 'Use https.';

/** Makes a client of the monitor at this address; a URL alone is https or on this machine. */
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

/** The same client, whose requests carry this credential. */
export function withCredential(client: MonitorClient, credential: string): MonitorClient {
  return { url: client.url, request: (request) => client.request({ ...request, credential }) };
}

/** The code of an error body; null when the answer has none. */
export function errorCode(answer: MonitorAnswer): string | null {
  const code = (answer.json as { error?: { code?: unknown } } | null)?.error?.code;
  return typeof code === 'string' ? code : null;
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

/** What TLS says of a certificate that no known authority signed. */
const unknownAuthorities = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function reason(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'no answer in time';
  const cause = error instanceof Error ? error.cause : undefined;
  const { code } = (cause ?? {}) as { code?: string };
  const advice = unknownAuthorities.has(code ?? '')
    ? '; to trust an authority of your own, set NODE_EXTRA_CA_CERTS to the file with its certificate'
    : '';
  return `${describeError(cause ?? error)}${advice}`;
}
