import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { createAccessLink, endAccessLinks, takeAccessLink } from '#service-kit/access-links/index.ts';
import { type AuditActor, record, recorded } from '#service-kit/audit/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Delivery, Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { removeSecondFactors } from '#service-kit/second-factors/index.ts';
import {
  type BreachedPasswords,
  endSessions,
  foldEmail,
  forgetDevices,
  hashPassword,
  type PasswordOwner,
  passwordFault,
  verifyPassword,
} from '#service-kit/sessions/index.ts';
import { accessLinkMail, factorsChangedMail } from '#service-kit/sign-in/index.ts';
import type { AddOperatorInput, Operator } from './operator.ts';
import { type Actor, type OperatorRole, requireOperator } from './operator.ts';
import * as store from './store.ts';
import { upsertOperator } from './store.ts';

/** A person who sets a password by a link, and how the link was delivered. */
export interface Invited {
  operator: Operator;
  delivery: Delivery;
}

const linkHours = 72;

/** Adds a person. Throws `operators.email_taken`, `operators.invalid`. */
export async function inviteOperator(
  db: Queryable,
  post: Post,
  actor: Actor,
  input: { email: string; name: string; role: OperatorRole },
): Promise<Invited> {
  requireOperator(actor);
  const person = parsePerson(input);
  const operator = await db.transaction().execute(async (tx) => {
    const made = await store.insertOperator(tx, person);
    if (made) await recordOperator(tx, actor, 'operator.create', made, { after: made });
    return made;
  });
  if (!operator) {
    throw new CodedError(
      'operators.email_taken',
      `A person with the address ${person.email} exists already. Send them a password link instead.`,
    );
  }
  return deliverLink(db, post, operator);
}

/**
 * Sends another person a link to set a password; the old password works until then. Null: no enabled person has this
 * id.
 */
export async function sendAccessLink(
  db: Queryable,
  post: Post,
  actor: Actor,
  operatorId: number,
): Promise<Invited | null> {
  requireOperator(actor);
  if (actor.kind === 'person' && actor.id === operatorId) {
    throw new CodedError('operators.own', 'Change your own password on the page of your account.');
  }
  const operator = await db.transaction().execute(async (tx) => {
    const found = await store.findOperator(tx, operatorId);
    if (found) await recordOperator(tx, actor, 'operator.send_password_link', found);
    return found;
  });
  return operator && deliverLink(db, post, operator);
}

async function deliverLink(db: Queryable, post: Post, operator: Operator): Promise<Invited> {
  const secret = await createAccessLink(db, operator.id, linkHours);
  const url = post.linkTo(`/set-password/${secret}`);
  const to = operator.email;
  if (!post.canSend) return { operator, delivery: { kind: 'shown', to, url } };
  const reason = await post.send(accessLinkMail(operator, url, `${linkHours} hours`));
  return { operator, delivery: reason === null ? { kind: 'mailed', to } : { kind: 'failed', to, reason } };
}

/**
 * Sets the password of the link's person and ends all their sessions; null when the link is invalid. Throws
 * `operators.invalid` for a weak password, after which the link still works.
 */
export async function setPasswordByLink(
  db: Queryable,
  breached: BreachedPasswords,
  secret: string,
  owner: Operator,
  password: string,
  origin: RequestOrigin,
): Promise<Operator | null> {
  await checkNewPassword(breached, password, owner);
  const passwordHash = await hashPassword(password);
  return db.transaction().execute(async (tx) => {
    if ((await takeAccessLink(tx, secret)) !== owner.id) return null;
    const operator = await store.updatePassword(tx, owner.id, passwordHash);
    await endSessions(tx, owner.id);
    await forgetDevices(tx, owner.email);
    const actor = { kind: 'person', id: owner.id, name: owner.email, origin } as const;
    await recordOperator(tx, actor, 'operator.set_password_by_link', owner);
    return operator;
  });
}

/** Throws `operators.wrong_password` when the present password is wrong, `operators.invalid` for a weak new one. */
export async function changeOwnPassword(
  db: Queryable,
  breached: BreachedPasswords,
  actor: Actor,
  operatorId: number,
  input: { current: string; next: string },
): Promise<void> {
  const operator = await store.findOperator(db, operatorId);
  const known = await store.findPasswordHash(db, operatorId);
  if (!(await verifyPassword(known, input.current)) || operator === null) {
    throw new CodedError('operators.wrong_password', 'The current password is not right.', {
      field: 'current',
    });
  }
  await checkNewPassword(breached, input.next, operator);
  const passwordHash = await hashPassword(input.next);
  await db.transaction().execute(async (tx) => {
    await store.updatePassword(tx, operatorId, passwordHash);
    await recordOperator(tx, actor, 'operator.change_password', operator);
  });
}

/** For another person who lost every second factor: removes them and ends their sessions. Null: no such person. */
export async function removeFactors(
  db: Queryable,
  post: Post,
  actor: Actor,
  operatorId: number,
): Promise<Operator | null> {
  requireOperator(actor);
  if (actor.kind === 'person' && actor.id === operatorId) {
    throw new CodedError('operators.own', 'Change your own second factors on the page of your account.');
  }
  const operator = await db.transaction().execute(async (tx) => {
    const found = await store.findOperator(tx, operatorId);
    if (!found) return null;
    await removeSecondFactors(tx, operatorId);
    await endSessions(tx, operatorId);
    await recordOperator(tx, actor, 'operator.remove_second_factors', found);
    return found;
  });
  if (operator) {
    const what = 'An operator removed your second factors and ended your sessions';
    post.sendLater(async () => factorsChangedMail(operator, what, post.linkTo('/reset-password')));
  }
  return operator;
}

/**
 * Changes the role or the access of another person; one enabled operator must remain. A person whose access ends loses
 * sessions and links permanently.
 */
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
  const changed = await db.transaction().execute(async (tx) => {
    const result = await store.updateOperator(tx, operatorId, change);
    if (result !== 'last' && result !== null)
      await recordOperator(tx, actor, 'operator.change', result, { after: change });
    if (result !== 'last' && change.isDisabled !== undefined) {
      await endSessions(tx, operatorId);
      await endAccessLinks(tx, operatorId);
    }
    return result;
  });
  if (changed === 'last') {
    throw new CodedError(
      'operators.last',
      'The last operator can not be changed: without one, nothing could be changed any more.',
    );
  }
  return changed;
}

function recordOperator(
  tx: Queryable,
  actor: AuditActor,
  operation: `operator.${string}`,
  { id, email }: Operator,
  states: { after?: object } = {},
): Promise<void> {
  return record(tx, actor, { operation, subject: { kind: 'operator', id, name: email }, ...states });
}

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
async function checkNewPassword(breached: BreachedPasswords, password: string, owner: PasswordOwner) {
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
