/**
 * The database as seen by a process that crashes between two of its statements: its connections are cut in the middle of
 * their transactions, and every later statement fails.
 */
import type pg from 'pg';
import { createPool } from '#service-kit/postgres/database.ts';

export interface CrashPoint {
  /** Statements that are answered before the crash. Infinity: there is none. */
  statements: number;
  /** The first statement that counts; every one where absent. */
  from?: RegExp;
}

export type CrashingDatabase = ReturnType<typeof createCrashingDatabase>;

type Query = (...args: unknown[]) => Promise<unknown>;

/** Connections of their own to this database, for one process. */
export function createCrashingDatabase(url: string, { statements, from }: CrashPoint) {
  const { pool, db } = createPool(url, 6, { prepares: 'always' });
  const clients = new Set<pg.PoolClient>();
  let left = statements;
  let isCounting = from === undefined;
  let hasCrashed = left <= 0 && isCounting;

  function crash(): never {
    hasCrashed = true;
    for (const client of clients)
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    throw new Error('Connection terminated: the process crashed');
  }

  pool.on('connect', (client) => {
    clients.add(client);
    const query = client.query.bind(client) as Query;
    const counted: Query = async (...args) => {
      if (hasCrashed) crash();
      isCounting ||= from?.test(String(args[0])) ?? true;
      if (isCounting && left <= 0) crash();
      const result = await query(...args);
      if (isCounting) left -= 1;
      if (isCounting && left <= 0) crash();
      return result;
    };
    client.query = counted as typeof client.query;
  });
  pool.on('remove', (client) => clients.delete(client));
  return {
    pool,
    db,
    get hasCrashed(): boolean {
      return hasCrashed;
    },
    [Symbol.asyncDispose]: () => db.destroy(),
  };
}
