/**
 * People of the monitor's console and their rights.
 *
 * Every operation takes an `Actor` and checks its right itself, so that no surface can forget it. A viewer reads
 * everything and changes nothing; commands and the demo world act as the system.
 */

import type { Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type BreachedPasswords, noBreachedPasswords } from '#service-kit/sessions/index.ts';
import type { SignInPeople } from '#service-kit/sign-in/index.ts';
import { addOperator } from './add-operator.ts';
import {
  changeOperator,
  changeOwnPassword,
  type Invited,
  inviteOperator,
  removeFactors,
  sendAccessLink,
} from './change-operators.ts';
import { checkPassword } from './check-password.ts';
import type { Actor, AddOperatorInput, Operator, OperatorRole } from './operator.ts';
import { createSignInPeople } from './sign-in-people.ts';
import * as store from './store.ts';

export type { Invited } from './change-operators.ts';
export { type Actor, type Operator, type OperatorRole, requireOperator, systemActor } from './operator.ts';
export type { ListedOperator } from './store.ts';

export interface Operators {
  /** Functions for signing in and resetting a password. */
  readonly people: SignInPeople;
  /** Adds a person, or updates password, name and role of the one with this email. */
  add(input: AddOperatorInput): Promise<Operator>;
  /** The person with this email and password, or null. Takes the same time for unknown emails. */
  checkPassword(email: string, password: string): Promise<Operator | null>;
  /** An enabled person; null otherwise. */
  find(id: number): Promise<Operator | null>;
  /** All people, including those whose access has ended. */
  list(): Promise<store.ListedOperator[]>;
  /** Adds a person, who sets a password by a link. Throws `operators.email_taken`, `operators.invalid`. */
  invite(actor: Actor, input: { email: string; name: string; role: OperatorRole }): Promise<Invited>;
  /** Sends another person a link to set a password; null when there is no such person. Throws `operators.own`. */
  sendAccessLink(actor: Actor, operatorId: number): Promise<Invited | null>;
  /** For another person who lost every second factor; null when there is no such person. Throws `operators.own`. */
  removeSecondFactors(actor: Actor, operatorId: number): Promise<Operator | null>;
  /** Throws `operators.wrong_password`, `operators.invalid`. */
  changeOwnPassword(
    actor: Actor,
    operatorId: number,
    input: { current: string; next: string },
  ): Promise<void>;
  /** Changes another person's role or access. Throws `operators.own`, and `operators.last` for the last operator. */
  change(
    actor: Actor,
    operatorId: number,
    change: { role?: OperatorRole; isDisabled?: boolean },
  ): Promise<Operator | null>;
}

export interface OperatorsDeps {
  db: () => Queryable;
  post: Post;
  /** Leaked passwords, which are refused; absent: only common ones are refused. */
  breached?: BreachedPasswords;
}

export function createOperators(deps: OperatorsDeps): Operators {
  const { post, breached = noBreachedPasswords } = deps;
  return {
    people: createSignInPeople(deps.db, breached),
    add: (input) => addOperator(deps.db(), breached, input),
    checkPassword: (email, password) => checkPassword(deps.db(), email, password),
    find: (id) => store.findOperator(deps.db(), id),
    list: () => store.listOperators(deps.db()),
    invite: (actor, input) => inviteOperator(deps.db(), post, actor, input),
    sendAccessLink: (actor, operatorId) => sendAccessLink(deps.db(), post, actor, operatorId),
    removeSecondFactors: (actor, operatorId) => removeFactors(deps.db(), post, actor, operatorId),
    changeOwnPassword: (actor, operatorId, input) =>
      changeOwnPassword(deps.db(), breached, actor, operatorId, input),
    change: (actor, operatorId, change) => changeOperator(deps.db(), actor, operatorId, change),
  };
}
