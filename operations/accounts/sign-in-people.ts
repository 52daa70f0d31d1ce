import { findAccessLink } from '#service-kit/access-links/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type BreachedPasswords, foldEmail, verifyPassword } from '#service-kit/sessions/index.ts';
import type { SignInPeople } from '#service-kit/sign-in/index.ts';
import type { Person } from './account.ts';
import { setPasswordByLink } from './change-password.ts';
import { noteOwn } from './note-own.ts';
import type { RevokeKeysOf } from './reset-person.ts';
import * as store from './store.ts';

/** The people of operations, customers and staff, as the sign-in pages know them. */
export function createSignInPeople(deps: {
  db: () => Queryable;
  breached: BreachedPasswords;
  post: Post;
  revokeKeysOf: RevokeKeysOf;
}): SignInPeople {
  const findActive = async (personId: number) => {
    const person = await store.findPerson(deps.db(), personId);
    return person?.isActive ? person : null;
  };
  return {
    checkPassword: (email, password) => signInPerson(deps.db(), email, password),
    find: findActive,
    async findByEmail(email) {
      const person = await store.findPersonByEmail(deps.db(), foldEmail(email));
      return person?.isActive ? person : null;
    },
    async findByLink(secret) {
      const personId = await findAccessLink(deps.db(), secret);
      return personId === null ? null : findActive(personId);
    },
    async setPasswordByLink(secret, password, origin) {
      const personId = await findAccessLink(deps.db(), secret);
      const person = personId === null ? null : await findActive(personId);
      if (person === null) return null;
      return setPasswordByLink({ ...deps, db: deps.db() }, secret, person, password, origin);
    },
    noteOwn: (personId, operation, origin, after) => noteOwn(deps.db(), personId, operation, origin, after),
    async landingOf(personId) {
      const person = await store.findPerson(deps.db(), personId);
      return person?.staffRole == null ? '/client/' : '/console/';
    },
  };
}

/**
 * The person with this email and password, or null.
 *
 * An unknown email, a wrong password, a person without a password and a deactivated person take the same time and give
 * the same answer.
 */
export async function signInPerson(db: Queryable, email: string, password: string): Promise<Person | null> {
  const found = await store.findPersonByEmail(db, foldEmail(email));
  const isRight = await verifyPassword(found?.passwordHash ?? null, password);
  if (!found || !isRight || !found.isActive) return null;
  const { passwordHash: _, ...person } = found;
  return person;
}
