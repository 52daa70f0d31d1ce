/**
 * People of the monitor's console, and who may do what.
 *
 * Every operation takes an `Actor` and asks for the right itself, so that no surface can forget to. A viewer reads
 * everything and changes nothing; the system itself acts where a command or the demo world does.
 */
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addOperator } from './add-operator.ts';
import {
  changeOperator,
  changeOwnPassword,
  type FirstPassword,
  inviteOperator,
  resetPassword,
} from './change-operators.ts';
import { checkPassword } from './check-password.ts';
import { noteSession } from './note-session.ts';
import type { Actor, AddOperatorInput, Operator, OperatorRole } from './operator.ts';
import * as store from './store.ts';

export type { FirstPassword } from './change-operators.ts';
export { type Actor, type Operator, type OperatorRole, requireOperator, systemActor } from './operator.ts';
export type { ListedOperator } from './store.ts';

export interface Operators {
  /** Adds a person, or sets the password, name and role of the one who has this e-mail. */
  add(input: AddOperatorInput): Promise<Operator>;
  /** The person with this e-mail and password, or null. Takes the same time when nobody has the e-mail. */
  checkPassword(email: string, password: string): Promise<Operator | null>;
  /** An enabled person; null when there is none any more. */
  find(id: number): Promise<Operator | null>;
  /** Everybody, also those who may not sign in any more. */
  list(): Promise<store.ListedOperator[]>;
  /** Lets a further person in with a password that is shown once. Throws `operators.email_taken`, `operators.invalid`. */
  invite(actor: Actor, input: { email: string; name: string; role: OperatorRole }): Promise<FirstPassword>;
  /** Gives somebody else a password that is shown once; end that person's sessions. Throws `operators.own`. */
  resetPassword(actor: Actor, operatorId: number): Promise<FirstPassword | null>;
  /** Throws `operators.wrong_password`, `operators.invalid`. */
  changeOwnPassword(
    operatorId: number,
    input: { current: string; next: string },
    actor?: Actor,
  ): Promise<void>;
  /** Writes the start or end of an operator's session to the audit trail. */
  noteSession(
    operatorId: number,
    operation: 'session.start' | 'session.end',
    origin: RequestOrigin,
  ): Promise<void>;
  /** Changes somebody else's role or access. Throws `operators.own`, and `operators.last` rather than leave none. */
  change(
    actor: Actor,
    operatorId: number,
    change: { role?: OperatorRole; isDisabled?: boolean },
  ): Promise<Operator | null>;
}

export function createOperators(deps: { db: () => Queryable }): Operators {
  return {
    add: (input) => addOperator(deps.db(), input),
    checkPassword: (email, password) => checkPassword(deps.db(), email, password),
    find: (id) => store.findOperator(deps.db(), id),
    list: () => store.listOperators(deps.db()),
    invite: (actor, input) => inviteOperator(deps.db(), actor, input),
    resetPassword: (actor, operatorId) => resetPassword(deps.db(), actor, operatorId),
    changeOwnPassword: (operatorId, input, actor) => changeOwnPassword(deps.db(), operatorId, input, actor),
    noteSession: (operatorId, operation, origin) => noteSession(deps.db(), operatorId, operation, origin),
    change: (actor, operatorId, change) => changeOperator(deps.db(), actor, operatorId, change),
  };
}
