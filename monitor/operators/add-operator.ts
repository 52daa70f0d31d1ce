import { CodedError } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword } from '#service-kit/sessions/index.ts';
import type { AddOperatorInput, Operator } from './operator.ts';
import { upsertOperator } from './store.ts';

export const passwordLengthMin = 12;

/** A person without spaces around. Throws `operators.invalid` with what to mend. */
export function parsePerson<Person extends { email: string; name: string }>(input: Person): Person {
  const email = input.email.trim();
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) {
    throw new CodedError('operators.invalid', `"${email}" is not an e-mail address.`);
  }
  return { ...input, email, name: input.name.trim() || email };
}

/** Adds a person or renews the one with this e-mail. Throws `operators.invalid` with what to mend. */
export async function addOperator(db: Queryable, input: AddOperatorInput): Promise<Operator> {
  const { email, name, role, password } = parsePerson(input);
  if (password.length < passwordLengthMin) {
    throw new CodedError('operators.invalid', `A password needs at least ${passwordLengthMin} characters.`);
  }
  return upsertOperator(db, { email, name, role }, await hashPassword(password));
}
