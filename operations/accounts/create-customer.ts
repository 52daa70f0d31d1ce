import { CodedError } from '#common/errors/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import { hashPassword } from '#service-kit/sessions/index.ts';
import { checkPassword, invalid, type Person, parseEmail, parseName } from './account.ts';
import { type Actor, requireOperator } from './actor.ts';
import { type CreateOrganizationResult, insertOrganization } from './create-organization.ts';
import * as store from './store.ts';

export interface CreateCustomerInput {
  organization: string;
  email: string;
  /** Of the owner; not asked for somebody who has a password already. */
  name: string;
  password: string;
}

/**
 * A new customer, whole or not at all: the owner, the organization and its first tenant. Somebody who signs in here
 * already keeps name and password; one of our own people is refused, because staff are nobody's customers.
 * Throws `accounts.invalid` with `details.field`. Operators only.
 */
export async function createCustomer(
  db: Queryable,
  actor: Actor,
  input: CreateCustomerInput,
): Promise<CreateOrganizationResult & { owner: Person }> {
  requireOperator(actor);
  const organization = await asField('organization', () =>
    parseName(input.organization, 'The name of an organization'),
  );
  const email = await asField('email', () => parseEmail(input.email));
  const known = await store.findPersonByEmail(db, email);
  if (known !== null && known.staffRole !== null)
    throw faultOf('email', 'This is one of our own people, who can not be a customer.');
  const isNew = known === null;
  const name = isNew ? await asField('name', () => parseName(input.name, 'The name of the owner')) : '';
  if (isNew) await asField('password', () => checkPassword(input.password));
  const passwordHash = isNew ? await hashPassword(input.password) : '';
  try {
    return await db.transaction().execute(async (tx) => {
      const owner = known ?? (await store.insertPerson(tx, { email, name, passwordHash, staffRole: null }));
      const made = { owner, ...(await insertOrganization(tx, organization, owner.id)) };
      await record(tx, actor, {
        operation: 'organization.create',
        subject: { kind: 'organization', id: made.organization.id, name: organization },
        organizationId: made.organization.id,
        tenantId: made.tenant.id,
        after: { name: organization, owner: email, isNewPerson: isNew },
      });
      return made;
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw faultOf('email', 'Somebody with this address has been made just now. Send the form again.');
  }
}

async function asField<T>(field: string, work: () => T): Promise<T> {
  try {
    return work();
  } catch (error) {
    throw error instanceof CodedError ? faultOf(field, error.message) : error;
  }
}

const faultOf = (field: string, message: string) => new CodedError(invalid('').code, message, { field });
