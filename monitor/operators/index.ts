/**
 * People of the monitor's console and their rights.
 *
 * Every operation takes an `Actor` and checks its right itself, so that no surface can forget it. A viewer reads
 * everything and changes nothing; commands and the demo world act as the system.
 */

import { bind } from '#common/bind/index.ts';
import { findAccessLink } from '#service-kit/access-links/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import {
  type BreachedPasswords,
  foldEmail,
  noBreachedPasswords,
  verifyPassword,
} from '#service-kit/sessions/index.ts';
import type { SignInPeople } from '#service-kit/sign-in/index.ts';
import {
  addOperator,
  changeOperator,
  changeOwnPassword,
  inviteOperator,
  removeFactors,
  sendAccessLink,
  setPasswordByLink,
} from './change-operators.ts';
import type { Actor, AddOperatorInput, Operator, OperatorRole } from './operator.ts';
import { createStaffAccounts } from './staff-accounts.ts';
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
    /** The people, for the OpenID provider. */
    staff: createStaffAccounts(deps.db),
    add: (input: AddOperatorInput) => addOperator(deps.db(), breached, input),
    invite: (actor: Actor, input: { email: string; name: string; role: OperatorRole }) =>
      inviteOperator(deps.db(), post, actor, input),
    sendAccessLink: (actor: Actor, operatorId: number) => sendAccessLink(deps.db(), post, actor, operatorId),
    removeSecondFactors: (actor: Actor, operatorId: number) =>
      removeFactors(deps.db(), post, actor, operatorId),
    changeOwnPassword: (actor: Actor, operatorId: number, input: { current: string; next: string }) =>
      changeOwnPassword(deps.db(), breached, actor, operatorId, input),
    ...bind(deps.db, {
      checkPassword,
      find: store.findOperator,
      list: store.listOperators,
      change: changeOperator,
    }),
  };
}

/** The monitor's people for the sign-in pages. */
function createSignInPeople(db: () => Queryable, breached: BreachedPasswords): SignInPeople {
  const findByLink = async (secret: string) => {
    const operatorId = await findAccessLink(db(), secret);
    return operatorId === null ? null : store.findOperator(db(), operatorId);
  };
  return {
    checkPassword: (email, password) => checkPassword(db(), email, password),
    find: (operatorId) => store.findOperator(db(), operatorId),
    findByEmail: async (email) => (await store.findByEmail(db(), foldEmail(email)))?.operator ?? null,
    findByLink,
    async setPasswordByLink(secret, password, origin) {
      const operator = await findByLink(secret);
      return operator && setPasswordByLink(db(), breached, secret, operator, password, origin);
    },
    async noteOwn(operatorId, operation, origin, after) {
      const operator = await store.findOperator(db(), operatorId);
      if (!operator) return;
      const { id, email: name } = operator;
      const actor = { kind: 'person', id, name, origin } as const;
      const subject = { kind: 'operator', id, name };
      await inTransaction(db(), (trx) => record(trx, actor, { operation, subject, after: after ?? null }));
    },
    landingOf: async () => '/',
  };
}

/** The person with this email and password, or null; equally slow either way. */
async function checkPassword(db: Queryable, email: string, password: string): Promise<Operator | null> {
  const found = await store.findByEmail(db, foldEmail(email));
  const isRight = await verifyPassword(found?.passwordHash ?? null, password);
  return found && isRight ? found.operator : null;
}
