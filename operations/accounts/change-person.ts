/** What others change of a person: a password, second factors, and whether they may sign in. */

import { endAccessLinks } from '#service-kit/access-links/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { removeSecondFactors } from '#service-kit/second-factors/index.ts';
import type { BreachedPasswords } from '#service-kit/sessions/index.ts';
import { endSessions, hashPassword } from '#service-kit/sessions/index.ts';
import { factorsChangedMail } from '#service-kit/sign-in/index.ts';
import { checkPassword, invalid } from './account.ts';
import { type Actor, requireOperator, requireSystem } from './actor.ts';
import * as store from './store.ts';

/** The program itself, such as the demo world, which prints the passwords of its people. Throws `accounts.invalid`. */
export async function setPassword(
  db: Queryable,
  breached: BreachedPasswords,
  actor: Actor,
  personId: number,
  password: string,
): Promise<void> {
  requireSystem(actor);
  const person = await store.findPerson(db, personId);
  if (person === null) throw invalid('This person does not exist.');
  await checkPassword(breached, password, person);
  const passwordHash = await hashPassword(password);
  await inTransaction(db, async (trx) => {
    await store.updatePassword(trx, personId, passwordHash);
    const subject = { kind: 'person', id: personId, name: person.email };
    await record(trx, actor, { operation: 'person.reset_password', subject });
  });
}

/** Operators only, for a person who has lost every second factor; they are mailed. Throws `accounts.invalid`. */
export async function removeFactors(db: Queryable, post: Post, actor: Actor, personId: number) {
  requireOperator(actor);
  const person = await store.findPerson(db, personId);
  if (person === null) throw invalid('This person does not exist.');
  await inTransaction(db, async (trx) => {
    await removeSecondFactors(trx, personId);
    await endSessions(trx, personId);
    const subject = { kind: 'person', id: personId, name: person.email };
    await record(trx, actor, { operation: 'person.remove_second_factors', subject });
  });
  const what = 'An operator removed your second factors and ended your sessions';
  post.sendLater(async () => factorsChangedMail(person, what, post.linkTo('/reset-password')));
}

/**
 * Operators only. The sessions and links of a deactivated person end for good: activating them again brings none back.
 * Throws `accounts.invalid`.
 */
export async function setPersonActive(db: Queryable, actor: Actor, personId: number, isActive: boolean) {
  requireOperator(actor);
  await inTransaction(db, async (trx) => {
    if (!(await store.setPersonActive(trx, personId, isActive))) throw invalid('This person does not exist.');
    await endSessions(trx, personId);
    await endAccessLinks(trx, personId);
    const operation = isActive ? 'person.reactivate' : 'person.deactivate';
    const person = await store.findPerson(trx, personId);
    const subject = { kind: 'person', id: personId, name: person?.email ?? null };
    await record(trx, actor, { operation, subject });
  });
}
