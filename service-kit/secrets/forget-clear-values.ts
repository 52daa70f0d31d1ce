import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

const pauseMs = 100;
const waitMs = 30_000;

/**
 * Removes the clear values of before from the files of these tables and from their statistics. PostgreSQL keeps rows
 * that are gone while an older transaction runs, so those are waited for. Throws `secrets.not_forgotten`.
 */
export async function forgetClearValues(db: Queryable, tables: readonly string[]): Promise<void> {
  await waitForOlder(db);
  for (const table of tables) await store.rewriteTable(db, table);
  await waitForOlder(db);
  await store.rewriteStatistics(db);
}

async function waitForOlder(db: Queryable): Promise<void> {
  const mark = await store.readTransactionMark(db);
  for (let waitedMs = 0; !(await store.haveEnded(db, mark)); waitedMs += pauseMs) {
    if (waitedMs >= waitMs)
      throw new CodedError('secrets.not_forgotten', 'older transactions run on this PostgreSQL server');
    await systemClock.wait(pauseMs);
  }
}
