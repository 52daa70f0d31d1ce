import { findAccessLink } from '#service-kit/access-links/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { BreachedPasswords } from '#service-kit/sessions/index.ts';
import { foldEmail } from '#service-kit/sessions/index.ts';
import type { SignInPeople } from '#service-kit/sign-in/index.ts';
import { setPasswordByLink } from './change-operators.ts';
import { checkPassword } from './check-password.ts';
import * as store from './store.ts';

/** The monitor's people for the sign-in pages. */
export function createSignInPeople(db: () => Queryable, breached: BreachedPasswords): SignInPeople {
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
