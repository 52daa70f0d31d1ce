import { record } from '#service-kit/audit/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { subjectOf } from './add-operator.ts';
import { findOperator } from './store.ts';

/** One entry of the audit trail about an operator's session, which another feature starts and ends. */
export async function noteSession(
  db: Queryable,
  operatorId: number,
  operation: 'session.start' | 'session.end',
  origin: RequestOrigin,
): Promise<void> {
  const operator = await findOperator(db, operatorId);
  if (!operator) return;
  const actor = { kind: 'person', id: operatorId, name: operator.email, origin } as const;
  await inTransaction(db, (trx) => record(trx, actor, { operation, subject: subjectOf(operator) }));
}
