import { CodedError } from '#common/errors/index.ts';
import { createAccessLink } from '#service-kit/access-links/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Delivery, Post } from '#service-kit/mail/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import type { BreachedPasswords } from '#service-kit/sessions/index.ts';
import { hashPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, type Person, parseEmail, parseName } from './account.ts';
import { type Actor, requireOperator, requireSystem, type StaffRole } from './actor.ts';
import { deliverAccessLink, firstLinkHours } from './send-access-link.ts';
import * as store from './store.ts';

export interface CreatePersonInput {
  email: string;
  name: string;
  password: string;
  staffRole?: StaffRole | null;
}

export interface InviteStaffInput {
  email: string;
  name: string;
  role: StaffRole;
}

/**
 * Makes a person with a password, whose address counts as verified. The program itself only: people choose their own
 * passwords. Throws `accounts.email_taken` and `accounts.invalid`.
 */
export async function createPerson(
  db: Queryable,
  breached: BreachedPasswords,
  actor: Actor,
  input: CreatePersonInput,
): Promise<Person> {
  requireSystem(actor);
  const email = parseEmail(input.email);
  const name = parseName(input.name, 'The name of a person');
  await checkPassword(breached, input.password, { email, name });
  const passwordHash = await hashPassword(input.password);
  const person = { email, name, passwordHash, staffRole: input.staffRole ?? null, isVerified: true };
  return insertPerson(db, actor, person);
}

/** Makes one of our own people, who sets a password by a link. Throws like `createPerson`. Operators only. */
export async function inviteStaff(
  deps: { db: Queryable; post: Post },
  actor: Actor,
  input: InviteStaffInput,
): Promise<{ person: Person; delivery: Delivery }> {
  requireOperator(actor);
  const email = parseEmail(input.email);
  const name = parseName(input.name, 'The name of a person');
  const row = { email, name, passwordHash: null, staffRole: input.role, isVerified: true };
  const { person, secret } = await inTransaction(deps.db, async (tx) => {
    const person = await insertPerson(tx, actor, row);
    return { person, secret: await createAccessLink(tx, person.id, firstLinkHours) };
  });
  return { person, delivery: await deliverAccessLink(deps.post, person, secret) };
}

/** A person by the given row. Throws `accounts.email_taken`. */
export async function insertPerson(db: Queryable, actor: Actor, person: store.NewPerson): Promise<Person> {
  try {
    return await inTransaction(db, async (trx) => {
      const made = await store.insertPerson(trx, person);
      const { email, name, staffRole } = person;
      await record(trx, actor, {
        operation: 'person.create',
        subject: { kind: 'person', id: made.id, name: email },
        after: { email, name, staffRole },
      });
      return made;
    });
  } catch (error) {
    if (isUniqueViolation(error))
      throw new CodedError('accounts.email_taken', 'A person with this email address exists already.');
    throw error;
  }
}
