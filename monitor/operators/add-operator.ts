import { CodedError } from '#common/errors/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword } from '#service-kit/sessions/index.ts';
import type { AddOperatorInput, Operator } from './operator.ts';
import { upsertOperator } from './store.ts';

export const passwordLengthMin = 12;

/** How the audit trail names an operator. */
export const subjectOf = ({ id, email }: Pick<Operator, 'id' | 'email'>) => ({
  kind: 'operator',
  id,
  name: email,
});

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
  const passwordHash = await hashPassword(password);
  return recorded(
    db,
    { kind: 'system', job: 'add-operator' },
    (added) => ({ operation: 'operator.add', subject: subjectOf(added), after: { email, name, role } }),
    (trx) => upsertOperator(trx, { email, name, role }, passwordHash),
  );
}
