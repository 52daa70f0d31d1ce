import { record } from '#service-kit/audit/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export type SessionOperation = 'session.start' | 'session.end' | 'session.end_others';

/** One entry of the audit trail about a person's sessions, which another feature starts and ends. */
export async function noteSession(
  db: Queryable,
  personId: number,
  operation: SessionOperation,
  origin: RequestOrigin,
): Promise<void> {
  const person = await store.findPerson(db, personId);
  if (!person) return;
  const name = person.email;
  await inTransaction(db, (trx) =>
    record(
      trx,
      person.staffRole === null
        ? { kind: 'customer', personId, keyId: null, name, origin }
        : { kind: 'staff', personId, name, origin },
      // Of no organization: a person may belong to several, and reads their own sessions themselves.
      { operation, subject: { kind: 'person', id: personId, name } },
    ),
  );
}
