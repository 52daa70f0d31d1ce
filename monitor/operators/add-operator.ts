import { CodedError } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword } from '#service-kit/sessions/index.ts';
import type { AddOperatorInput, Operator } from './operator.ts';
import { upsertOperator } from './store.ts';

const passwordLengthMin = 12;

/** Adds a person or renews the one with this e-mail. Throws `operators.invalid` with what to mend. */
export async function addOperator(db: Queryable, input: AddOperatorInput): Promise<Operator> {
  const email = input.email.trim();
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) {
    throw new CodedError('operators.invalid', `"${email}" is not an e-mail address.`);
  }
  if (input.password.length < passwordLengthMin) {
    throw new CodedError('operators.invalid', `A password needs at least ${passwordLengthMin} characters.`);
  }
  const name = input.name.trim() || email;
  return upsertOperator(db, { email, name, role: input.role }, await hashPassword(input.password));
}
