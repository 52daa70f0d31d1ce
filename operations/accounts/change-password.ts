import { takeAccessLink } from '#service-kit/access-links/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { endSessions, forgetDevices, hashPassword, verifyPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, invalid, type Person } from './account.ts';
import { type Actor, forbidden, requireOperator, requireSystem } from './actor.ts';
import { type RevokeKeysOf, resetPerson } from './reset-person.ts';
import * as store from './store.ts';

/**
 * A person's own password. Asks for the current one, which a person who only has their open browser does not know. Keys
 * change no password. Throws `accounts.invalid` with `details.field` `current` or `password`.
 */
export async function changePassword(
  db: Queryable,
  actor: Actor,
  given: { current: string; next: string },
): Promise<void> {
  const isPerson = (actor.kind === 'customer' && actor.keyId === null) || actor.kind === 'staff';
  if (!isPerson) throw forbidden('Only a signed-in person changes their password.');
  const person = await store.findPerson(db, actor.personId);
  const hash = await store.findPasswordHash(db, actor.personId);
  if (!(await verifyPassword(hash, given.current)) || person === null)
    throw invalid('The current password is not right.', 'current');
  await checkPassword(given.next, person);
  await store.updatePassword(db, actor.personId, await hashPassword(given.next));
}

/**
 * Sets the password of the person whose link this is, which ends all their sessions and proves their address; null when
 * the link does not work. An account that was set up without that proof is reset first. Throws `accounts.invalid` for a
 * password that is too weak; the link then still works.
 */
export async function setPasswordByLink(
  deps: { db: Queryable; revokeKeysOf: RevokeKeysOf },
  secret: string,
  owner: Person,
  password: string,
): Promise<Person | null> {
  await checkPassword(password, owner);
  const passwordHash = await hashPassword(password);
  return deps.db.transaction().execute(async (tx) => {
    if ((await takeAccessLink(tx, secret)) !== owner.id) return null;
    const person = await store.lockPersonByEmail(tx, owner.email);
    if (!person?.isActive) return null;
    if (!person.isVerified) await resetPerson(tx, person, deps.revokeKeysOf);
    await store.updatePassword(tx, person.id, passwordHash);
    await store.verifyEmail(tx, person.id);
    await endSessions(tx, person.id);
    await forgetDevices(tx, person.email);
    return { ...person, isVerified: true };
  });
}

/** The program itself, such as the demo world, which prints the passwords of its people. */
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
  await store.updatePassword(db, personId, await hashPassword(password));
}

/** Operators only. A deactivated person's sessions and links end for good: activating them again brings none back. */
export async function setPersonActive(
  db: Queryable,
  actor: Actor,
  personId: number,
  isActive: boolean,
): Promise<void> {
  requireOperator(actor);
  await db.transaction().execute(async (tx) => {
    if (!(await store.setPersonActive(tx, personId, isActive))) throw invalid('There is no such person.');
    await endSessions(tx, personId);
  });
}
