/**
 * Makes calls: the key's header, retries, and lists that go on over pages.
 *
 * A call is sent again only where that can't do anything twice: reads, changes that are the same when repeated, creates
 * with an idempotency key, and calls that the API refused with `retryable: true`. All other failures are thrown at once. A
 * deadline bounds the attempts and the pauses between them together.
 */
import { type AnswerInfo, keepAnswer, readAnswer } from './answer.ts';
import { ApiError, ConnectionError, readError } from './errors.ts';

export interface ClientOptions {
  /** Where the API stands: `https://my.example.com`. */
  url: string;
  /** `svc_…`. */
  key: string;
  /** The workspace of every call, by id or slug; the key's default one when absent. */
  tenant?: number | string | undefined;
  /** Further attempts of a call that may be repeated; 4. */
  retriesMax?: number | undefined;
  /** Milliseconds that one attempt may take; 60,000. */
  timeoutMs?: number | undefined;
  /**
   * Milliseconds that a call may take with all its attempts and the pauses between them; 120,000. A pause that would go
   * beyond it is not begun: the error is thrown at once, with `retryAfterSeconds`.
   */
  deadlineMs?: number | undefined;
  /** Told of every answer of the API, refusals included: its request id, quota and `ETag`. */
  onAnswer?: ((answer: AnswerInfo) => void) | undefined;
  /** Stands in for the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** Waits between attempts; for tests. */
  wait?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
  /** Between 0 and 1; for tests. */
  random?: (() => number) | undefined;
  /** Milliseconds of a clock that never goes back; for tests. */
  now?: (() => number) | undefined;
}

export interface CallOptions {
  /** The workspace of this call. */
  tenant?: number | string | undefined;
  /** Names this create; drawn anew for each when absent. Give your own to repeat a create after a restart. */
  idempotencyKey?: string | undefined;
  /** Let the answer come when what was asked for is over, or after this many seconds. */
  waitSeconds?: number | undefined;
  /** Do it only while the thing is as it was when it was read with this `ETag`. */
  ifMatch?: string | undefined;
  /** As in `ClientOptions`, for this call. */
  deadlineMs?: number | undefined;
  /** Told of the answers of this call; what `answerOf` can't say of an answer without a body. */
  onAnswer?: ((answer: AnswerInfo) => void) | undefined;
  /** Ends the call, and the waiting between its attempts. */
  signal?: AbortSignal | undefined;
}

/** A call as the generated methods describe it. */
export interface CallRequest {
  method: string;
  path: string;
  /** Names of the options that go into the query. */
  query?: readonly string[];
  body?: object;
  takesIdempotencyKey?: boolean;
  /** A POST that does the same however often it is sent. */
  isIdempotent?: boolean;
  /** A deletion: that the thing is gone is what was asked for. */
  answersNothing?: boolean;
  options: CallOptions;
}

/** A call as it goes out, the same for all of its attempts. */
interface Prepared {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
}

const firstPauseMs = 500;
const pauseMaxMs = 30_000;
const deadlineMsDefault = 120_000;

export class Caller {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    if (!options.key) throw new TypeError('an API key is needed');
    // Said here, and not by the first create: Node 18 has no such global.
    if (typeof globalThis.crypto?.randomUUID !== 'function')
      throw new Error('this client needs the global `crypto`: use Node 20 or newer, or a browser over https');
    this.#options = { ...options, url: options.url.replace(/\/+$/, '') };
  }

  /** Makes the call, again where that is safe, until it is answered for good. */
  async call<T>(request: CallRequest): Promise<T> {
    const {
      retriesMax = 4,
      random = Math.random,
      wait = pause,
      now = () => performance.now(),
    } = this.#options;
    const { signal } = request.options;
    const sent = this.#prepare(request);
    const isRepeatable = isSafeToRepeat(request, sent);
    const deadline = now() + (request.options.deadlineMs ?? this.#options.deadlineMs ?? deadlineMsDefault);
    let isAnswerLost = false;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#send<T>(request, sent, deadline - now());
      } catch (error) {
        signal?.throwIfAborted();
        // The attempt whose answer was lost has deleted it.
        if (isAnswerLost && request.answersNothing && error instanceof ApiError && error.status === 404)
          return undefined as T;
        isAnswerLost ||= error instanceof ConnectionError;
        if (attempt >= retriesMax || !mayRepeat(error, isRepeatable)) throw error;
        const ms = pauseMs(error, attempt, random);
        if (now() + ms >= deadline) throw error;
        await wait(ms, signal);
      }
    }
  }

  #prepare(request: CallRequest): Prepared {
    const { options } = request;
    const headers: Record<string, string> = {
      authorization: `Bearer ${this.#options.key}`,
      accept: 'application/json',
      ...(options.waitSeconds === undefined ? {} : { prefer: `wait=${options.waitSeconds}` }),
    };
    const tenant = options.tenant ?? this.#options.tenant;
    if (tenant !== undefined) headers['x-tenant-id'] = String(tenant);
    if (options.ifMatch !== undefined) headers['if-match'] = options.ifMatch;
    // One name for all attempts: that is what makes the second one a repetition and not another order.
    if (request.takesIdempotencyKey)
      headers['idempotency-key'] = options.idempotencyKey ?? crypto.randomUUID();
    const query = new URLSearchParams();
    for (const name of request.query ?? []) {
      const value = (options as Record<string, unknown>)[name];
      if (value !== undefined) query.set(name, String(value));
    }
    const search = query.size > 0 ? `?${query}` : '';
    const sent = { url: `${this.#options.url}${request.path}${search}`, method: request.method, headers };
    if (request.body === undefined) return sent;
    headers['content-type'] = 'application/json';
    return { ...sent, body: JSON.stringify(request.body) };
  }

  #tell(options: CallOptions, answer: AnswerInfo): void {
    this.#options.onAnswer?.(answer);
    options.onAnswer?.(answer);
  }

  async #send<T>({ options }: CallRequest, sent: Prepared, leftMs: number): Promise<T> {
    const { url, ...init } = sent;
    const { signal } = options;
    const limit = AbortSignal.timeout(
      Math.max(1, Math.ceil(Math.min(this.#options.timeoutMs ?? 60_000, leftMs))),
    );
    let response: Response;
    let text: string;
    try {
      response = await (this.#options.fetch ?? fetch)(url, {
        ...init,
        // A redirect would send the key to another server.
        redirect: 'error',
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      text = await response.text();
    } catch (error) {
      throw new ConnectionError(`${sent.method} ${url}: no answer (${(error as Error).message})`, {
        cause: error,
      });
    }
    const body = parse(text);
    const answer = readAnswer(response);
    if ((response.ok && body !== undefined) || response.status === 204) {
      this.#tell(options, answer);
      return keepAnswer(body, answer) as T;
    }
    const error = readError(answer, body);
    if (error !== null) this.#tell(options, answer);
    throw error ?? new ConnectionError(`${sent.method} ${url}: ${response.status}, and not by the API`);
  }
}

/** What does the same however often it is done; under `If-Match` the second time would look like another's change. */
function isSafeToRepeat(request: CallRequest, { headers }: Prepared): boolean {
  if (request.method === 'GET' || headers['idempotency-key'] !== undefined) return true;
  if (headers['if-match'] !== undefined) return false;
  return request.method !== 'POST' || request.isIdempotent === true;
}

/** A list: awaited it is its first page, iterated it is every item of all pages. */
export class List<P extends { pagination: { next_cursor: string | null } }, T>
  implements PromiseLike<P>, AsyncIterable<T>
{
  readonly #caller: Caller;
  readonly #request: CallRequest;
  readonly #items: string;

  constructor(caller: Caller, request: CallRequest, items: string) {
    this.#caller = caller;
    this.#request = request;
    this.#items = items;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is meant to be awaited, as the answer of any other call is.
  then<A = P, B = never>(
    resolve?: ((page: P) => A | PromiseLike<A>) | null,
    reject?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#caller.call<P>(this.#request).then(resolve, reject);
  }

  /** As of any promise. */
  catch<B = never>(reject?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<P | B> {
    return this.then(null, reject);
  }

  /** As of any promise. */
  finally(done?: (() => void) | null): Promise<P> {
    return this.then().finally(done);
  }

  /** Page after page, each asked for when it is needed. */
  async *pages(): AsyncGenerator<P, void> {
    let request = this.#request;
    for (;;) {
      const page = await this.#caller.call<P>(request);
      yield page;
      const cursor = page.pagination.next_cursor;
      if (cursor === null) return;
      request = { ...request, options: { ...request.options, cursor } as CallOptions };
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const page of this.pages()) yield* (page as unknown as Record<string, T[]>)[this.#items]!;
  }
}

/** What the API refused with "later" has not happened; what got no answer may have. */
function mayRepeat(error: unknown, isRepeatable: boolean): boolean {
  if (error instanceof ConnectionError) return isRepeatable;
  if (!(error instanceof ApiError)) return false;
  if (error.status === 429 || error.status === 409)
    return error.retryable && error.retryAfterSeconds !== undefined;
  return error.status >= 500 && (error.retryable || isRepeatable);
}

/** At least what the API asks for, else doubling pauses; with jitter, so that many clients don't return as one. */
function pauseMs(error: unknown, attempt: number, random: () => number): number {
  const asked = error instanceof ApiError ? error.retryAfterSeconds : undefined;
  if (asked !== undefined) return asked * 1_000 * (1 + 0.2 * random()) + 100 * random();
  const full = Math.min(pauseMaxMs, firstPauseMs * 2 ** attempt);
  return full * (0.5 + 0.5 * random());
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}

function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
