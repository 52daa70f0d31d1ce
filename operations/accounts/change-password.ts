import { takeAccessLink } from '#service-kit/access-links/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { BreachedPasswords } from '#service-kit/sessions/index.ts';
import { endSessions, forgetDevices, hashPassword, verifyPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, invalid, type Person } from './account.ts';
import { type Actor, forbidden } from './actor.ts';
import { actorOfPerson } from './note-own.ts';
import { type RevokeKeysOf, resetPerson } from './reset-person.ts';
import * as store from './store.ts';

/**
 * A person's own password. Asks for the current one, which a person who only has their open browser does not know. Keys
 * change no password. Throws `accounts.invalid` with `details.field` `current` or `password`.
 */
export async function changePassword(
  db: Queryable,
  breached: BreachedPasswords,
  actor: Actor,
  given: { current: string; next: string },
): Promise<void> {
  const isPerson = (actor.kind === 'customer' && actor.keyId === null) || actor.kind === 'staff';
  if (!isPerson) throw forbidden('Only a signed-in person changes their password.');
  const person = await store.findPerson(db, actor.personId);
  const hash = await store.findPasswordHash(db, actor.personId);
  if (!(await verifyPassword(hash, given.current)) || person === null)
    throw invalid('The current password is not right.', 'current');
  await checkPassword(breached, given.next, person);
  const passwordHash = await hashPassword(given.next);
  await inTransaction(db, async (trx) => {
    await store.updatePassword(trx, actor.personId, passwordHash);
    const subject = { kind: 'person', id: actor.personId, name: person.email };
    await record(trx, actor, { operation: 'person.change_password', subject });
  });
}

/**
 * Sets the password of the person whose link this is, which ends all their sessions and proves their address; null when
 * the link does not work. An account that was set up without that proof is reset first. Throws `accounts.invalid` for a
 * password that is too weak; the link then still works.
 */
export async function setPasswordByLink(
  deps: { db: Queryable; breached: BreachedPasswords; revokeKeysOf: RevokeKeysOf },
  secret: string,
  owner: Person,
  password: string,
  origin: RequestOrigin,
): Promise<Person | null> {
  await checkPassword(deps.breached, password, owner);
  const passwordHash = await hashPassword(password);
  return inTransaction(deps.db, async (tx) => {
    if ((await takeAccessLink(tx, secret)) !== owner.id) return null;
    const person = await store.lockPersonByEmail(tx, owner.email);
    if (!person?.isActive) return null;
    const actor = actorOfPerson(person, origin);
    if (!person.isVerified) await resetPerson(tx, actor, person, deps.revokeKeysOf);
    await store.updatePassword(tx, person.id, passwordHash);
    await store.verifyEmail(tx, person.id);
    await endSessions(tx, person.id);
    await forgetDevices(tx, person.email);
    const subject = { kind: 'person', id: person.id, name: person.email };
    await record(tx, actor, { operation: 'person.set_password_by_link', subject });
    return { ...person, isVerified: true };
  });
}
