/**
 * A client of the customer API: `createClient({ url, key })` has a method for each call.
 *
 * Errors are thrown as classes, calls are repeated where that is safe, lists are awaited or iterated, and
 * `waitForServer` and `waitForAction` wait for what takes its time.
 */
import type { ClientOptions } from './caller.ts';
import { WaitError } from './errors.ts';
import { Api, type Server, type ServerAction } from './generated/api.ts';

export interface WaitOptions {
  /** Milliseconds after which it gives up; ten minutes. */
  timeoutMs?: number | undefined;
  /** Milliseconds between two looks; 2,000. */
  everyMs?: number | undefined;
  tenant?: number | string | undefined;
  signal?: AbortSignal | undefined;
}

/** Well below the time limit of one attempt. */
const waitSecondsMax = 20;

export class Client extends Api {
  readonly #wait: NonNullable<ClientOptions['wait']>;
  readonly #now: NonNullable<ClientOptions['now']>;

  constructor(options: ClientOptions) {
    super(options);
    this.#now = options.now ?? (() => performance.now());
    this.#wait = options.wait ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms)));
  }

  /** The server as soon as its `status` is this one. Throws a `WaitError` when it failed, or the time is over. */
  waitForServer(id: number, status: Server['status'], options: WaitOptions = {}): Promise<Server> {
    return this.#until(options, `server ${id} to be ${status}`, async (waitSeconds) => {
      // The API itself waits a while before it answers, so that waiting costs few requests.
      const server = await this.readServer(id, { ...options, wait_for: `status:${status}`, waitSeconds });
      if (server.status === status) return server;
      if (server.status !== 'failed') return null;
      throw new WaitError(`server ${id} failed: ${server.failure?.message ?? 'for a reason unknown'}`);
    });
  }

  /** The action when it is over. Throws a `WaitError` when it ended in an error, or the time is over. */
  waitForAction(action: Pick<ServerAction, 'id'>, options: WaitOptions = {}): Promise<ServerAction> {
    return this.#until(options, `action ${action.id}`, async (waitSeconds) => {
      const found = await this.readAction(action.id, { ...options, waitSeconds });
      if (found.status === 'success') return found;
      if (found.status !== 'error') return null;
      throw new WaitError(`action ${action.id} failed: ${found.error?.message ?? 'for a reason unknown'}`);
    });
  }

  async #until<T>(
    options: WaitOptions,
    what: string,
    look: (waitSeconds: number) => Promise<T | null>,
  ): Promise<T> {
    const deadline = this.#now() + (options.timeoutMs ?? 600_000);
    const leftMs = () => Math.max(0, deadline - this.#now());
    for (;;) {
      const found = await look(Math.min(waitSecondsMax, Math.floor(leftMs() / 1_000)));
      if (found !== null) return found;
      if (leftMs() === 0) throw new WaitError(`waited in vain for ${what}`);
      await this.#wait(Math.min(options.everyMs ?? 2_000, leftMs()), options.signal);
      options.signal?.throwIfAborted();
    }
  }
}

export function createClient(options: ClientOptions): Client {
  return new Client(options);
}
