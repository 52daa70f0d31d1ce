/**
 * Waiting for a change without asking again and again: PostgreSQL says when something happened (`pg_notify` by the
 * triggers of a program's migrations), and every waiter checks its condition again.
 *
 * All waits of a process share one connection, which is open while a wait exists; a waiting request holds none of its
 * own. A wait that the connection fails under is woken and looks for itself: a lost message costs time, never a lie.
 */
import type pg from 'pg';
import { createListener } from './listener.ts';

export interface NotificationsOptions {
  pool: () => pg.Pool;
  /** The channel that the triggers speak on; payloads are topics such as `server:17`. */
  channel: string;
  /** Waits at a time in this process; further ones look once and return. Default 1,000. */
  waitsMax?: number;
}

export interface WaitOptions {
  topic: string;
  timeoutMs: number;
  /** Gives up early: the caller has gone. */
  signal?: AbortSignal | undefined;
}

export type Notifications = ReturnType<typeof createNotifications>;

export function createNotifications(options: NotificationsOptions) {
  const listener = createListener(options.pool, options.channel);
  const waitsMax = options.waitsMax ?? 1_000;
  let waits = 0;
  let releasing = new AbortController();

  async function waitFor<T>(
    wait: WaitOptions,
    look: () => Promise<T>,
    isEnough: (seen: T) => boolean,
  ): Promise<T> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    let isOver = false;
    const end = () => {
      isOver = true;
      resolve();
    };
    const timer = setTimeout(end, wait.timeoutMs);
    const signals = [releasing.signal, ...(wait.signal ? [wait.signal] : [])];
    for (const signal of signals) {
      if (signal.aborted) end();
      signal.addEventListener('abort', end);
    }
    const subscription = listener.subscribe(wait.topic);
    try {
      for (;;) {
        // Listening comes before the look, so that no change falls between the two.
        const changed = subscription.next();
        await Promise.race([subscription.listen(), over]);
        const seen = await look();
        if (isEnough(seen) || isOver) return seen;
        await Promise.race([changed, over]);
      }
    } finally {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', end);
      subscription.close();
    }
  }

  return {
    name: 'notifications',
    /** What `look` says, as soon as `isEnough` of it, or else at the end of the time. `look` runs at every change. */
    async waitFor<T>(wait: WaitOptions, look: () => Promise<T>, isEnough: (seen: T) => boolean): Promise<T> {
      if (waits >= waitsMax || wait.timeoutMs <= 0) return look();
      waits += 1;
      try {
        return await waitFor(wait, look, isEnough);
      } finally {
        waits -= 1;
      }
    },
    /** Ends every wait now; the server calls it before it closes. */
    release() {
      releasing.abort();
    },
    async start() {
      releasing = new AbortController();
    },
    async stop() {
      releasing.abort();
      await listener.close();
    },
  };
}
