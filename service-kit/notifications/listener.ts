/** The one connection that listens, opened with the first subscription and given back after the last one. */
import type pg from 'pg';

export interface Subscription {
  /** Resolves when the connection listens, or can not be had. */
  listen(): Promise<void>;
  /** Resolves at the next message about the topic, or when the connection is lost. */
  next(): Promise<void>;
  close(): void;
}

export interface Listener {
  subscribe(topic: string): Subscription;
  close(): Promise<void>;
}

export function createListener(pool: () => pg.Pool, channel: string): Listener {
  const wakers = new Map<string, Set<() => void>>();
  let client: Promise<pg.PoolClient | null> | null = null;
  let current: pg.PoolClient | null = null;
  let subscriptions = 0;

  const wakeAll = () => {
    for (const topic of [...wakers.keys()]) wake(topic);
  };
  const wake = (topic: string) => {
    const waiting = wakers.get(topic);
    wakers.delete(topic);
    for (const resolve of waiting ?? []) resolve();
  };

  async function connect(): Promise<pg.PoolClient | null> {
    const mine = await pool().connect();
    const lose = (error?: Error) => {
      if (client !== null && current === mine) {
        client = null;
        current = null;
        mine.release(error ?? true);
      }
      wakeAll();
    };
    mine.on('notification', (message) => wake(message.payload ?? ''));
    mine.on('error', lose);
    mine.on('end', () => lose());
    current = mine;
    await mine.query(`listen ${channel}`);
    return mine;
  }

  async function ensureListening(): Promise<void> {
    client ??= connect().catch(() => {
      current?.release(true);
      current = null;
      client = null;
      return null;
    });
    await client;
  }

  async function giveBack(): Promise<void> {
    const held = await client;
    if (subscriptions > 0 || held === null || current !== held) return;
    client = null;
    current = null;
    held.removeAllListeners('notification');
    // A connection that listened is closed and not reused: it would continue to receive unread notifications.
    held.release(true);
  }

  return {
    subscribe(topic) {
      subscriptions += 1;
      return {
        listen: ensureListening,
        next() {
          return new Promise((resolve) => {
            const waiting = wakers.get(topic) ?? new Set();
            waiting.add(resolve);
            wakers.set(topic, waiting);
          });
        },
        close() {
          subscriptions -= 1;
          if (subscriptions === 0) {
            wakers.clear();
            void giveBack();
          }
        },
      };
    },
    async close() {
      subscriptions = 0;
      wakeAll();
      await giveBack();
    },
  };
}
