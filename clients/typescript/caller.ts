/**
 * Makes calls: the key's header, retries, and lists that go on over pages.
 *
 * A call is sent again only where that can't do anything twice: reads, changes that are the same when repeated, creates
 * with an idempotency key, and whatever the API itself refused with "later". All other failures are thrown at once.
 */
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
  /** Stands in for the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** Waits between attempts; for tests. */
  wait?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
  /** Between 0 and 1; for tests. */
  random?: (() => number) | undefined;
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

export class Caller {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    if (!options.key) throw new TypeError('an API key is needed');
    this.#options = { ...options, url: options.url.replace(/\/+$/, '') };
  }

  /** Makes the call, again where that is safe, until it is answered for good. */
  async call<T>(request: CallRequest): Promise<T> {
    const { retriesMax = 4, random = Math.random, wait = pause } = this.#options;
    const { signal } = request.options;
    const sent = this.#prepare(request);
    const isRepeatable = request.method !== 'POST' || sent.headers['idempotency-key'] !== undefined;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#send<T>(sent, signal);
      } catch (error) {
        signal?.throwIfAborted();
        if (attempt >= retriesMax || !mayRepeat(error, isRepeatable)) throw error;
        await wait(pauseMs(error, attempt, random), signal);
      }
    }
  }

  #prepare(request: CallRequest): Prepared {
    const { options } = request;
    const headers: Record<string, string> = {
      authorization: `Bearer ${this.#options.key}`,
      accept: 'application/json',
    };
    const tenant = options.tenant ?? this.#options.tenant;
    if (tenant !== undefined) headers['x-tenant-id'] = String(tenant);
    if (options.waitSeconds !== undefined) headers.prefer = `wait=${options.waitSeconds}`;
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

  async #send<T>(sent: Prepared, signal: AbortSignal | undefined): Promise<T> {
    const { url, ...init } = sent;
    const limit = AbortSignal.timeout(this.#options.timeoutMs ?? 60_000);
    let response: Response;
    let text: string;
    try {
      response = await (this.#options.fetch ?? fetch)(url, {
        ...init,
        // The key must not follow a redirect to anybody else.
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
    if (response.ok && body !== undefined) return body as T;
    if (response.status === 204) return undefined as T;
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
    const error = readError(response.status, body, Number.isFinite(retryAfter) ? retryAfter : undefined);
    throw error ?? new ConnectionError(`${sent.method} ${url}: ${response.status}, and not by the API`);
  }
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
