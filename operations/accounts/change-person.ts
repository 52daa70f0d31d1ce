/** What others change of a person: a password link, and whether they may sign in. */
import { endAccessLinks } from '#service-kit/access-links/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { endSessions, hashPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, invalid } from './account.ts';
import { type Actor, requireOperator, requireSystem } from './actor.ts';
import * as store from './store.ts';

/** The program itself, such as the demo world, which prints the passwords of its people. Throws `accounts.invalid`. */
export async function setPassword(
  db: Queryable,
  actor: Actor,
  personId: number,
  password: string,
): Promise<void> {
  requireSystem(actor);
  const person = await store.findPerson(db, personId);
  if (person === null) throw invalid('There is no such person.');
  await checkPassword(password, person);
  const passwordHash = await hashPassword(password);
  await inTransaction(db, async (trx) => {
    await store.updatePassword(trx, personId, passwordHash);
    const subject = { kind: 'person', id: personId, name: person.email };
    await record(trx, actor, { operation: 'person.reset_password', subject });
  });
}

/**
 * Operators only. The sessions and links of a deactivated person end for good: activating them again brings none back.
 * Throws `accounts.invalid`.
 */
export async function setPersonActive(
  db: Queryable,
  actor: Actor,
  personId: number,
  isActive: boolean,
): Promise<void> {
  requireOperator(actor);
  await inTransaction(db, async (trx) => {
    if (!(await store.setPersonActive(trx, personId, isActive))) throw invalid('There is no such person.');
    await endSessions(trx, personId);
    await endAccessLinks(trx, personId);
    const operation = isActive ? 'person.reactivate' : 'person.deactivate';
    const person = await store.findPerson(trx, personId);
    const subject = { kind: 'person', id: personId, name: person?.email ?? null };
    await record(trx, actor, { operation, subject });
  });
}
