import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { AuditActor } from './actor.ts';
import type { AuditEntry } from './entry.ts';
import { record } from './record.ts';

/**
 * Runs a change and writes its entry in one transaction, for operations that need no transaction of their own. A change
 * that answers `false` or `null` changed nothing and leaves no entry.
 */
export function recorded<Result>(
  db: Queryable,
  actor: AuditActor,
  entry: AuditEntry | ((result: NoInfer<Exclude<Result, null | false>>) => AuditEntry),
  change: (trx: Queryable) => Promise<Result>,
): Promise<Result> {
  return inTransaction(db, async (trx) => {
    const result = await change(trx);
    if (result !== false && result !== null)
      await record(
        trx,
        actor,
        typeof entry === 'function' ? entry(result as Exclude<Result, null | false>) : entry,
      );
    return result;
  });
}
