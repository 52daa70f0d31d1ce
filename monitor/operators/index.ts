/**
 * People of the monitor's console, and who may do what.
 *
 * Every operation takes an `Actor` and asks for the right itself, so that no surface can forget to. A viewer reads
 * everything and changes nothing; the system itself acts where a command or the demo world does.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addOperator } from './add-operator.ts';
import { checkPassword } from './check-password.ts';
import type { AddOperatorInput, Operator } from './operator.ts';
import * as store from './store.ts';

export { type Actor, type Operator, type OperatorRole, requireOperator, systemActor } from './operator.ts';

export interface Operators {
  /** Adds a person, or sets the password, name and role of the one who has this e-mail. */
  add(input: AddOperatorInput): Promise<Operator>;
  /** The person with this e-mail and password, or null. Takes the same time when nobody has the e-mail. */
  checkPassword(email: string, password: string): Promise<Operator | null>;
  /** An enabled person; null when there is none any more. */
  find(id: number): Promise<Operator | null>;
}

export function createOperators(deps: { db: () => Queryable }): Operators {
  return {
    add: (input) => addOperator(deps.db(), input),
    checkPassword: (email, password) => checkPassword(deps.db(), email, password),
    find: (id) => store.findOperator(deps.db(), id),
  };
}
