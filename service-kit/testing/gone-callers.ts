/** Callers that leave while the database stands still, and what the server noticed of them. Only for tests. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';

export interface Seen {
  response: ServerResponse;
  socket: Socket;
}

/** Requests that servers of this process began, with their side of the connection. */
export function watchRequests(): { seen: Seen[] } & Disposable {
  const seen: Seen[] = [];
  const see = (message: unknown) => seen.push(message as Seen);
  subscribe('http.server.request.start', see);
  return {
    seen,
    [Symbol.dispose]: () => {
      unsubscribe('http.server.request.start', see);
    },
  };
}

export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  // Looking all the time would take the processor from what is waited for.
  while (!(await isSo())) await setTimeout(1);
}

export interface GoneCallers {
  url: string;
  pool: pg.Pool;
  /** Nothing is read of these tables while callers come and go. */
  frozen: readonly string[];
  /** Request lines and headers, without an empty line. */
  requests: readonly string[];
  /** All on one connection, each before the answer to the one before. */
  isPipelined?: boolean;
}

/** Sends requests while the database stands still, leaves, and lets the database go on; returns when it answered all of it. */
export async function leaveWhileFrozen({
  url,
  pool,
  frozen,
  requests,
  isPipelined,
}: GoneCallers): Promise<void> {
  using watched = watchRequests();
  const { hostname, port } = new URL(url);
  const freezer = await pool.connect();
  try {
    await freezer.query(`begin; lock table ${frozen.join(', ')} in access exclusive mode`);
    const texts = requests.map((text) => `${text}\r\nhost: ${hostname}\r\n\r\n`);
    const sent = isPipelined ? [texts.join('')] : texts;
    const sockets = await Promise.all(
      sent.map(async (text) => {
        const socket = connect(Number(port), hostname);
        socket.on('error', () => {});
        await once(socket, 'connect');
        socket.write(text);
        return socket;
      }),
    );
    await until(() => watched.seen.length === requests.length);
    await untilAllStand(freezer, watched.seen);
    for (const socket of sockets) socket.destroy();
    await until(() => watched.seen.every(({ socket }) => socket.closed));
  } finally {
    await freezer.query('rollback');
    freezer.release();
  }
  await until(async () => pool.waitingCount === 0 && pool.idleCount === pool.totalCount);
}

/** Several looks without a change: the other callers wait for a connection, or for what another one asked for. */
const looksMin = 5;

/** Until each caller waits for the database. A route that reads none of the tables has answered, or has begun to. */
async function untilAllStand(freezer: pg.PoolClient, seen: readonly Seen[]): Promise<void> {
  let looks = 0;
  let standing = 0;
  await until(async () => {
    const waiting = await countWaiting(freezer);
    const now = waiting + seen.filter(({ response }) => response.headersSent).length;
    looks = now === standing && waiting > 0 ? looks + 1 : 0;
    standing = now;
    return now >= seen.length || looks >= looksMin;
  });
}

async function countWaiting(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query(
    `select count(distinct pid)::int as n from pg_locks
    where not granted and database = (select oid from pg_database where datname = current_database())`,
  );
  return rows[0].n;
}
