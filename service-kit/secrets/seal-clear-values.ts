/** Seals every secret that an earlier version left readable in the database, and has the former values forgotten. */

import { systemClock } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from './secret-column.ts';
import type { Secrets } from './secrets.ts';
import * as store from './store.ts';

interface SealClearDeps {
  db: () => Queryable;
  columns: readonly SecretColumn[];
  seal: Secrets['seal'];
  reporter: Reporter;
}

const batchRows = 100;

/** Rows that other transactions hold are left out unless it `waits`. */
export async function sealClearValues(deps: SealClearDeps, waits: boolean): Promise<void> {
  const { db, columns, reporter } = deps;
  const changed = new Map<string, number>();
  for (const column of columns) {
    for (;;) {
      const count = await sealBatch(deps, column, waits);
      if (count > 0) changed.set(column.table, (changed.get(column.table) ?? 0) + count);
      if (count < batchRows) break;
    }
  }
  if (changed.size === 0) return;
  for (const [table, count] of changed)
    reporter.info('secrets sealed that were readable in the database', { table, count });
  try {
    await forgetClearValues(db(), [...changed.keys()]);
  } catch (error) {
    const tables = [...changed.keys(), 'pg_statistic'].join(', ');
    reporter.warn('former clear values may be left in the files of the database', {
      advice: `run for each of ${tables}: vacuum (full, analyze) TABLE`,
      error: describeError(error),
    });
  }
}

/** How many rows it sealed; fewer than a batch when no more are left. */
function sealBatch({ db, seal }: SealClearDeps, column: SecretColumn, waits: boolean): Promise<number> {
  return db()
    .transaction()
    .execute(async (trx) => {
      const rows = await store.lockClear(trx, column, batchRows, waits);
      for (const { row, secret } of rows)
        await store.writeSealed(trx, column, row, await seal(trx, column, row, secret));
      return rows.length;
    });
}

const pauseMs = 100;
const waitMs = 30_000;

/**
 * Removes the clear values of before from the files of these tables and from their statistics. PostgreSQL keeps rows
 * that are gone while an older transaction runs, so those are waited for. Throws `secrets.not_forgotten`.
 */
async function forgetClearValues(db: Queryable, tables: readonly string[]): Promise<void> {
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
