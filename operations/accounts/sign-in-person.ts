import type { Queryable } from '#service-kit/postgres/index.ts';
import { foldEmail, verifyPassword } from '#service-kit/sessions/index.ts';
import type { Person } from './account.ts';
import { findPersonByEmail } from './store.ts';

/**
 * The person with this email and password, or null.
 *
 * An unknown email, a wrong password, a person without a password and a deactivated person take the same time and give
 * the same answer.
 */
export async function signInPerson(db: Queryable, email: string, password: string): Promise<Person | null> {
  const found = await findPersonByEmail(db, foldEmail(email));
  const isRight = await verifyPassword(found?.passwordHash ?? null, password);
  if (!found || !isRight || !found.isActive) return null;
  const { passwordHash: _, ...person } = found;
  return person;
}
