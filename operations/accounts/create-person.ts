import { CodedError } from '#common/errors/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, type Person, parseEmail, parseName } from './account.ts';
import { type Actor, requireOperator, type StaffRole } from './actor.ts';
import * as store from './store.ts';

export interface CreatePersonInput {
  email: string;
  name: string;
  password: string;
  staffRole?: StaffRole | null;
}

/** Makes a person who may sign in. Throws `accounts.email_taken` and `accounts.invalid`. Operators only. */
export async function createPerson(db: Queryable, actor: Actor, input: CreatePersonInput): Promise<Person> {
  requireOperator(actor);
  const email = parseEmail(input.email);
  const name = parseName(input.name, 'The name of a person');
  checkPassword(input.password);
  const passwordHash = await hashPassword(input.password);
  try {
    return await inTransaction(db, async (trx) => {
      const staffRole = input.staffRole ?? null;
      const person = await store.insertPerson(trx, { email, name, passwordHash, staffRole });
      await record(trx, actor, {
        operation: 'person.create',
        subject: { kind: 'person', id: person.id, name: email },
        after: { email, name, staffRole },
      });
      return person;
    });
  } catch (error) {
    if (isUniqueViolation(error))
      throw new CodedError('accounts.email_taken', 'Somebody with this e-mail address exists already.');
    throw error;
  }
}
