/** What others change of a person: a new password, and whether they may sign in. */
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, invalid } from './account.ts';
import { type Actor, requireOperator } from './actor.ts';
import * as store from './store.ts';

/** The person themselves or an operator. Throws `accounts.invalid`. */
export async function setPassword(
  db: Queryable,
  actor: Actor,
  personId: number,
  password: string,
): Promise<void> {
  if (!(actor.kind === 'customer' && actor.keyId === null && actor.personId === personId))
    requireOperator(actor);
  checkPassword(password);
  const passwordHash = await hashPassword(password);
  await inTransaction(db, async (trx) => {
    await store.updatePassword(trx, personId, passwordHash);
    const subject = await subjectOf(trx, personId);
    await record(trx, actor, { operation: 'person.reset_password', subject });
  });
}

/** Operators only. Throws `accounts.invalid`. */
export async function setPersonActive(
  db: Queryable,
  actor: Actor,
  personId: number,
  isActive: boolean,
): Promise<void> {
  requireOperator(actor);
  await inTransaction(db, async (trx) => {
    if (!(await store.setPersonActive(trx, personId, isActive))) throw invalid('There is no such person.');
    const operation = isActive ? 'person.reactivate' : 'person.deactivate';
    await record(trx, actor, { operation, subject: await subjectOf(trx, personId) });
  });
}

async function subjectOf(db: Queryable, personId: number) {
  const person = await store.findPerson(db, personId);
  return { kind: 'person', id: personId, name: person?.email ?? null };
}
