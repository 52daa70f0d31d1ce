import { record } from '#service-kit/audit/index.ts';
import type { StaffAccounts, StaffRoleName } from '#service-kit/oidc/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { foldEmail } from '#service-kit/sessions/index.ts';
import { parseEmail, parseName } from './account.ts';
import { type StaffRole, systemJob } from './actor.ts';
import { insertPerson } from './create-person.ts';
import * as store from './store.ts';

const roles: Readonly<Record<StaffRoleName, StaffRole>> = { operator: 'operator', reader: 'support' };
/** The provider's groups decide, and no person. */
const actor = systemJob('sign-in-by-oidc');

/** Our own people, as the OpenID provider makes them and gives them roles. */
export function createStaffAccounts(db: () => Queryable): StaffAccounts {
  return {
    isEmailTaken: async (email) => (await store.findPersonByEmail(db(), foldEmail(email))) !== null,
    async findStaff(personId) {
      const person = await store.findPerson(db(), personId);
      return person?.isActive && person.staffRole ? person : null;
    },
    create: (trx, { email, name, role }) =>
      insertPerson(trx, actor, {
        ...{ email: parseEmail(email), name: parseName(name, 'The name of a person'), passwordHash: null },
        ...{ staffRole: roles[role], isVerified: true },
      }),
    setRole: (personId, role) =>
      inTransaction(db(), async (trx) => {
        const changed = await store.setStaffRole(trx, personId, roles[role]);
        if (changed === 'last') return false;
        if (changed !== null) {
          const subject = { kind: 'person', id: personId, name: changed.email };
          await record(trx, actor, {
            ...{ operation: 'person.change_role', subject },
            after: { staffRole: changed.staffRole },
          });
        }
        return true;
      }),
  };
}
