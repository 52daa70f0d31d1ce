import { randomBytes } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword, verifyPassword } from '#service-kit/sessions/index.ts';
import { parsePerson, passwordLengthMin, subjectOf } from './add-operator.ts';
import { type Actor, type Operator, type OperatorRole, requireOperator } from './operator.ts';
import * as store from './store.ts';

/** A password that is shown once to whoever made it and changed by whom it is for. */
export interface FirstPassword {
  operator: Operator;
  password: string;
}

function newPassword(): string {
  return randomBytes(15).toString('base64url');
}

/** Lets a further person in. Throws `operators.email_taken`, `operators.invalid`. */
export async function inviteOperator(
  db: Queryable,
  actor: Actor,
  input: { email: string; name: string; role: OperatorRole },
): Promise<FirstPassword> {
  requireOperator(actor);
  const person = parsePerson(input);
  const password = newPassword();
  const passwordHash = await hashPassword(password);
  const operator = await recorded(
    db,
    actor,
    (added) => ({ operation: 'operator.invite', subject: subjectOf(added), after: person }),
    (trx: Queryable) => store.insertOperator(trx, person, passwordHash),
  );
  if (!operator) {
    throw new CodedError(
      'operators.email_taken',
      `Somebody with ${person.email} is in the list already. Reset that password instead.`,
    );
  }
  return { operator, password };
}

/** Gives somebody else a new password; the caller ends that person's sessions. Null: nobody has this id. */
export async function resetPassword(
  db: Queryable,
  actor: Actor,
  operatorId: number,
): Promise<FirstPassword | null> {
  requireOperator(actor);
  if (actor.kind === 'person' && actor.id === operatorId) {
    throw new CodedError('operators.own', 'Change your own password with the one you have.');
  }
  const password = newPassword();
  const passwordHash = await hashPassword(password);
  const operator = await recorded(
    db,
    actor,
    (changed) => ({ operation: 'operator.reset_password', subject: subjectOf(changed) }),
    (trx: Queryable) => store.updatePassword(trx, operatorId, passwordHash),
  );
  return operator && { operator, password };
}

/** Throws `operators.wrong_password` when the present one is not right, `operators.invalid` for a short new one. */
export async function changeOwnPassword(
  db: Queryable,
  operatorId: number,
  input: { current: string; next: string },
  actor: Actor = { kind: 'person', id: operatorId, role: 'viewer' },
): Promise<void> {
  const known = await store.findPasswordHash(db, operatorId);
  if (!(await verifyPassword(known, input.current))) {
    throw new CodedError('operators.wrong_password', 'This is not your present password.');
  }
  if (input.next.length < passwordLengthMin) {
    throw new CodedError('operators.invalid', `A password needs at least ${passwordLengthMin} characters.`);
  }
  const passwordHash = await hashPassword(input.next);
  await recorded(
    db,
    actor,
    (changed) => ({ operation: 'operator.change_password', subject: subjectOf(changed) }),
    (trx: Queryable) => store.updatePassword(trx, operatorId, passwordHash),
  );
}

/** Changes what somebody may do, or whether at all. Nobody shuts themselves out, and one operator always stays. */
export async function changeOperator(
  db: Queryable,
  actor: Actor,
  operatorId: number,
  change: { role?: OperatorRole; isDisabled?: boolean },
): Promise<Operator | null> {
  requireOperator(actor);
  if (actor.kind === 'person' && actor.id === operatorId) {
    throw new CodedError('operators.own', 'Another operator has to change your own role or access.');
  }
  return recorded(
    db,
    actor,
    (changed) => ({ operation: 'operator.change', subject: subjectOf(changed), after: change }),
    async (trx: Queryable) => {
      const changed = await store.updateOperator(trx, operatorId, change);
      if (changed === 'last') {
        throw new CodedError(
          'operators.last',
          'The last operator stays one: nobody could change anything then.',
        );
      }
      return changed;
    },
  );
}
