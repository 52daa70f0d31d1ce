import { CodedError } from '#common/errors/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import type { StaffAccounts, StaffRoleName } from '#service-kit/oidc/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { foldEmail } from '#service-kit/sessions/index.ts';
import { parsePerson } from './change-operators.ts';
import type { Operator, OperatorRole } from './operator.ts';
import * as store from './store.ts';

const roles: Readonly<Record<StaffRoleName, OperatorRole>> = { operator: 'operator', reader: 'viewer' };
/** The provider's groups decide, and no person. */
const actor = { kind: 'system', job: 'sign-in-by-oidc' } satisfies AuditActor;

/** The monitor's people, as the OpenID provider makes them and gives them roles. */
export function createStaffAccounts(db: () => Queryable): StaffAccounts {
  const note = (trx: Queryable, operation: string, { id, email: name }: Operator, after: object) =>
    record(trx, actor, { operation, subject: { kind: 'operator', id, name }, after });
  return {
    // PostgreSQL refuses text with a zero byte, and no stored address has one.
    isEmailTaken: async (email) => !email.includes('\0') && store.isEmailTaken(db(), foldEmail(email)),
    findStaff: (operatorId) => store.findOperator(db(), operatorId),
    async create(trx, { email, name, role }) {
      const person = parsePerson({ email, name, role: roles[role] });
      const made = await store.insertOperator(trx, person);
      if (made === null)
        throw new CodedError('operators.email_taken', 'A person with this email address exists already.');
      await note(trx, 'operator.create', made, made);
      return made;
    },
    setRole: (operatorId, role) =>
      inTransaction(db(), async (trx) => {
        const before = await store.findOperator(trx, operatorId);
        if (before === null || before.role === roles[role]) return true;
        const changed = await store.updateOperator(trx, operatorId, { role: roles[role] });
        if (changed === 'last' || changed === null) return false;
        await note(trx, 'operator.change', changed, { role: changed.role });
        return true;
      }),
  };
}
