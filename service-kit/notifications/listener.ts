/** The one connection that listens, opened with the first subscription and given back after the last one. */
import type pg from 'pg';

export interface Subscription {
  /** Resolves when the connection listens, or can not be had. */
  listen(): Promise<void>;
  /** Resolves at the next message about the topic, or when the connection is lost. */
  next(): Promise<void>;
  close(): void;
}

export type Listener = ReturnType<typeof createListener>;

export function createListener(pool: () => pg.Pool, channel: string) {
  const waiters = createWaiters();
  const connection = createConnection(pool, channel, { heard: waiters.wake, lost: waiters.wakeAll });
  let subscriptions = 0;
  const giveBack = () => connection.giveBack(() => subscriptions > 0);

  return {
    subscribe(topic: string): Subscription {
      subscriptions += 1;
      let forget = () => {};
      return {
        listen: connection.ensureListening,
        next() {
          forget();
          const waiter = waiters.next(topic);
          forget = waiter.forget;
          return waiter.woken;
        },
        close() {
          forget();
          subscriptions -= 1;
          if (subscriptions === 0) void giveBack();
        },
      };
    },
    async close() {
      subscriptions = 0;
      waiters.wakeAll();
      await giveBack();
    },
  };
}

/** Who waits for the next message about which topic. */
function createWaiters() {
  const waiting = new Map<string, Set<() => void>>();
  const wake = (topic: string) => {
    const woken = waiting.get(topic);
    waiting.delete(topic);
    for (const resolve of woken ?? []) resolve();
  };
  return {
    next(topic: string): { woken: Promise<void>; forget: () => void } {
      const { promise: woken, resolve } = Promise.withResolvers<void>();
      const ofTopic = waiting.get(topic) ?? new Set();
      waiting.set(topic, ofTopic.add(resolve));
      const forget = () => {
        if (ofTopic.delete(resolve) && ofTopic.size === 0 && waiting.get(topic) === ofTopic)
          waiting.delete(topic);
      };
      return { woken, forget };
    },
    wake,
    wakeAll() {
      for (const topic of [...waiting.keys()]) wake(topic);
    },
  };
}

interface Hearing {
  heard(topic: string): void;
  lost(): void;
}

/** The connection that listens: one at a time, opened again by the next `ensureListening` after it was lost. */
function createConnection(pool: () => pg.Pool, channel: string, { heard, lost }: Hearing) {
  let client: Promise<pg.PoolClient | null> | null = null;
  let current: pg.PoolClient | null = null;

  async function connect(): Promise<pg.PoolClient | null> {
    const mine = await pool().connect();
    const lose = (error?: Error) => {
      if (client !== null && current === mine) {
        client = null;
        current = null;
        mine.release(error ?? true);
      }
      lost();
    };
    mine.on('notification', (message) => heard(message.payload ?? ''));
    mine.on('error', lose);
    mine.on('end', () => lose());
    current = mine;
    await mine.query(`listen ${channel}`);
    return mine;
  }

  return {
    async ensureListening(): Promise<void> {
      client ??= connect().catch(() => {
        current?.release(true);
        current = null;
        client = null;
        return null;
      });
      await client;
    },
    /** Closes the connection, unless it is needed again by then. */
    async giveBack(isNeeded: () => boolean): Promise<void> {
      const held = await client;
      if (isNeeded() || held === null || current !== held) return;
      client = null;
      current = null;
      held.removeAllListeners('notification');
      // A connection that listened is closed and not reused: it would continue to receive unread notifications.
      held.release(true);
    },
  };
}
