import { findAccessLink } from '#service-kit/access-links/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { foldEmail } from '#service-kit/sessions/index.ts';
import type { SignInPeople } from '#service-kit/sign-in/index.ts';
import { setPasswordByLink } from './change-operators.ts';
import { checkPassword } from './check-password.ts';
import * as store from './store.ts';

/** The monitor's people as the sign-in pages know them. */
export function createSignInPeople(db: () => Queryable): SignInPeople {
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
      return operator && setPasswordByLink(db(), secret, operator, password, origin);
    },
    landingOf: async () => '/',
  };
}
