/**
 * People of the monitor's console and their rights.
 *
 * Every operation takes an `Actor` and checks its right itself, so that no surface can forget it. A viewer reads
 * everything and changes nothing; commands and the demo world act as the system.
 */

import type { Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type BreachedPasswords, noBreachedPasswords } from '#service-kit/sessions/index.ts';
import { addOperator } from './add-operator.ts';
import {
  changeOperator,
  changeOwnPassword,
  inviteOperator,
  removeFactors,
  sendAccessLink,
} from './change-operators.ts';
import { checkPassword } from './check-password.ts';
import type { Actor, AddOperatorInput, OperatorRole } from './operator.ts';
import { createSignInPeople } from './sign-in-people.ts';
import * as store from './store.ts';

export type { Invited } from './change-operators.ts';
export { type Actor, type Operator, type OperatorRole, requireOperator, systemActor } from './operator.ts';
export type { ListedOperator } from './store.ts';

export type Operators = ReturnType<typeof createOperators>;

export function createOperators(deps: {
  db: () => Queryable;
  post: Post;
  /** Leaked passwords, which are refused; absent: only common ones are refused. */
  breached?: BreachedPasswords;
}) {
  const { post, breached = noBreachedPasswords } = deps;
  return {
    /** Functions for signing in and resetting a password. */
    people: createSignInPeople(deps.db, breached),
    /** Adds a person, or updates password, name and role of the one with this email. */
    add: (input: AddOperatorInput) => addOperator(deps.db(), breached, input),
    /** The person with this email and password, or null. Takes the same time for unknown emails. */
    checkPassword: (email: string, password: string) => checkPassword(deps.db(), email, password),
    /** An enabled person; null otherwise. */
    find: (id: number) => store.findOperator(deps.db(), id),
    /** All people, including those whose access has ended. */
    list: () => store.listOperators(deps.db()),
    /** Adds a person, who sets a password by a link. Throws `operators.email_taken`, `operators.invalid`. */
    invite: (actor: Actor, input: { email: string; name: string; role: OperatorRole }) =>
      inviteOperator(deps.db(), post, actor, input),
    /** Sends another person a link to set a password; null when there is no such person. Throws `operators.own`. */
    sendAccessLink: (actor: Actor, operatorId: number) => sendAccessLink(deps.db(), post, actor, operatorId),
    /** For another person who lost every second factor; null when there is no such person. Throws `operators.own`. */
    removeSecondFactors: (actor: Actor, operatorId: number) =>
      removeFactors(deps.db(), post, actor, operatorId),
    /** Throws `operators.wrong_password`, `operators.invalid`. */
    changeOwnPassword: (actor: Actor, operatorId: number, input: { current: string; next: string }) =>
      changeOwnPassword(deps.db(), breached, actor, operatorId, input),
    /** Changes another person's role or access. Throws `operators.own`, and `operators.last` for the last operator. */
    change: (actor: Actor, operatorId: number, change: { role?: OperatorRole; isDisabled?: boolean }) =>
      changeOperator(deps.db(), actor, operatorId, change),
  };
}
