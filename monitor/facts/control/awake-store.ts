/**
 * A transaction that waits for another engine.
 *
 * PostgreSQL ends a transaction whose client says nothing for long, since it may be frozen with locks. One that waits for an engine is not:
 * it says so every few seconds.
 */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Less than half of the shortest time after which a transaction is ended: the inbox's lease of 15 seconds. */
const everyMs = 5_000;

/** Runs `work`, which sends nothing in the transaction itself. A sign of life that fails shows in the transaction's next statement. */
export async function keepAwake<T>(trx: Queryable, work: () => Promise<T>): Promise<T> {
  let sign: Promise<unknown> | null = null;
  const timer = setInterval(() => {
    sign ??= sql`select 1`
      .execute(trx)
      .catch(() => {})
      .finally(() => {
        sign = null;
      });
  }, everyMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    // A transaction ends after its last statement.
    await sign;
  }
}
