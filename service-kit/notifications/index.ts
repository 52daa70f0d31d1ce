import type pg from 'pg';

export interface NotificationsOptions {
  pool: () => pg.Pool;
  /** The channel that the triggers speak on; payloads are topics such as `server:17`. */
  channel: string;
}

export interface WaitOptions {
  topic: string;
  timeoutMs: number;
  /** Gives up early: the caller has gone. */
  signal?: AbortSignal | undefined;
}

export type Notifications = ReturnType<typeof createNotifications>;

/** Waits at a time in this process; further ones look once and return. */
const waitsMax = 1_000;

export function createNotifications(options: NotificationsOptions) {
  const listener = createListener(options.pool, options.channel);
  let waits = 0;
  let releasing = new AbortController();

  async function waitFor<T>(wait: WaitOptions, look: () => Promise<T>, isEnough: (seen: T) => boolean) {
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

// The one connection that listens, opened with the first subscription and given back after the last one.

interface Subscription {
  /** Resolves when the connection listens, or can not be had. */
  listen(): Promise<void>;
  /** Resolves at the next message about the topic, or when the connection is lost. */
  next(): Promise<void>;
  close(): void;
}

function createListener(pool: () => pg.Pool, channel: string) {
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
