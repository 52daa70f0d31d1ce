import type { Queryable } from '#service-kit/postgres/index.ts';
import { foldEmail, verifyPassword } from '#service-kit/sessions/index.ts';
import type { Operator } from './operator.ts';
import { findByEmail } from './store.ts';

/** The person with this email and password, or null; equally slow either way. */
export async function checkPassword(
  db: Queryable,
  email: string,
  password: string,
): Promise<Operator | null> {
  const found = await findByEmail(db, foldEmail(email));
  const isRight = await verifyPassword(found?.passwordHash ?? null, password);
  return found && isRight ? found.operator : null;
}
