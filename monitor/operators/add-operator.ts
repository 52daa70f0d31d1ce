import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type BreachedPasswords,
  foldEmail,
  hashPassword,
  type PasswordOwner,
  passwordFault,
} from '#service-kit/sessions/index.ts';
import type { AddOperatorInput, Operator } from './operator.ts';
import { upsertOperator } from './store.ts';

/** A person with the canonical spelling of their email. Throws `operators.invalid` with the correction. */
export function parsePerson<Person extends { email: string; name: string }>(input: Person): Person {
  const email = foldEmail(input.email);
  // No characters that a mail program could read as a list of addresses or as a header.
  if (email.length > 254 || !/^[^\s@<>()[\]\\,;:"\p{Cc}]+@[^\s@<>()[\]\\,;:"\p{Cc}]+$/u.test(email)) {
    throw new CodedError('operators.invalid', `"${email}" is not an email address.`);
  }
  return { ...input, email, name: oneLine(input.name) || email };
}

/** Throws `operators.invalid` for a password that is too short or easily guessed. */
export async function checkNewPassword(
  breached: BreachedPasswords,
  password: string,
  owner: PasswordOwner,
): Promise<void> {
  const fault = await passwordFault(password, owner, breached);
  if (fault !== null) throw new CodedError('operators.invalid', fault, { field: 'password' });
}

/** Adds a person, or updates the one with this email. Throws `operators.invalid` with the correction. */
export async function addOperator(
  db: Queryable,
  breached: BreachedPasswords,
  input: AddOperatorInput,
): Promise<Operator> {
  const { email, name, role, password } = parsePerson(input);
  await checkNewPassword(breached, password, { email, name });
  const passwordHash = await hashPassword(password);
  return recorded(
    db,
    { kind: 'system', job: 'add-operator' },
    (added) => ({
      operation: 'operator.add',
      subject: { kind: 'operator', id: added.id, name: email },
      after: { email, name, role },
    }),
    (trx: Queryable) => upsertOperator(trx, { email, name, role }, passwordHash),
  );
}
