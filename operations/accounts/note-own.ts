import { type AuditActor, record } from '#service-kit/audit/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { OwnOperation } from '#service-kit/sign-in/index.ts';
import type { Person } from './account.ts';
import * as store from './store.ts';

/** A person for the audit trail, who proved who they are by a password or a link. */
export function actorOfPerson(person: Person, origin: RequestOrigin): AuditActor {
  const { id: personId, email: name } = person;
  return person.staffRole === null
    ? { kind: 'customer', personId, keyId: null, name, origin }
    : { kind: 'staff', personId, name, origin };
}

/** One entry of the audit trail about a person's sessions, which another feature starts and ends. */
export async function noteOwn(
  db: Queryable,
  personId: number,
  operation: OwnOperation,
  origin: RequestOrigin,
  after?: object,
): Promise<void> {
  const person = await store.findPerson(db, personId);
  if (!person) return;
  const actor = actorOfPerson(person, origin);
  const name = person.email;
  await inTransaction(db, (trx) =>
    record(
      trx,
      actor,
      // Of no organization: a person may belong to several, and reads their own sessions themselves.
      { operation, subject: { kind: 'person', id: personId, name }, after: after ?? null },
    ),
  );
}
