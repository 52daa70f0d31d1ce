import type { Queryable } from '#service-kit/postgres/index.ts';
import { hasMarks, lockRollUp, recomputeSiteMinutes, takeMarks } from './rollup-store.ts';

/**
 * Recomputes the sites' minutes that were marked.
 *
 * Marks and facts are committed together, so facts of the marks taken here are visible to the statement after it;
 * facts that commit later bring a mark of their own. One at a time, or an older sum could overwrite a newer one.
 */
export async function rollUpMinutes(db: Queryable): Promise<void> {
  while (await hasMarks(db)) {
    await db.transaction().execute(async (trx) => {
      await lockRollUp(trx);
      const marks = await takeMarks(trx, 500);
      if (marks.length > 0) await recomputeSiteMinutes(trx, marks);
    });
  }
}
