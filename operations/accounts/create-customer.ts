import { CodedError } from '#common/errors/index.ts';
import { createAccessLink } from '#service-kit/access-links/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Delivery, Post } from '#service-kit/mail/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import { addedAsOwnerMail } from '#service-kit/sign-in/index.ts';
import { invalid, type Person, parseEmail, parseName, parseOrganizationName } from './account.ts';
import { type Actor, requireOperator } from './actor.ts';
import { type CreateOrganizationResult, insertOrganization } from './create-organization.ts';
import { type RevokeKeysOf, resetPerson } from './reset-person.ts';
import { deliverAccessLink, firstLinkHours } from './send-access-link.ts';
import * as store from './store.ts';

export interface CreateCustomerInput {
  organization: string;
  email: string;
  /** Of the owner; a person with a verified address keeps theirs. */
  name: string;
}

export interface CreateCustomerResult extends CreateOrganizationResult {
  owner: Person;
  /** How the owner was told: a link to set the password, or, with a password already, a notice. */
  delivery: Delivery | null;
}

/**
 * A new customer, whole or not at all: the owner, the organization and its first tenant. The owner sets the password by a
 * link. A person whose address is verified keeps name and password. A known person whose address is not verified may be
 * a stranger who came first, so that account is reset. Staff are refused. Throws `accounts.invalid` with
 * `details.field`. Operators only.
 */
export async function createCustomer(
  deps: { db: Queryable; post: Post; revokeKeysOf: RevokeKeysOf },
  actor: Actor,
  input: CreateCustomerInput,
): Promise<CreateCustomerResult> {
  requireOperator(actor);
  const name = asField('organization', () => parseOrganizationName(input.organization));
  const email = asField('email', () => parseEmail(input.email));
  try {
    const made = await inTransaction(deps.db, async (tx) => {
      const { owner, secret } = await ensureOwner(tx, deps.revokeKeysOf, actor, email, input.name);
      const made = { owner, secret, ...(await insertOrganization(tx, name, owner.id)) };
      await record(tx, actor, {
        operation: 'organization.create',
        subject: { kind: 'organization', id: made.organization.id, name },
        organizationId: made.organization.id,
        tenantId: made.tenant.id,
        after: { name, owner: email, isNewPerson: secret !== null },
      });
      return made;
    });
    const { secret, ...result } = made;
    return { ...result, delivery: await tellOwner(deps.post, made.owner, name, secret) };
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw invalid('A person with this address was created just now. Send the form again.', 'email');
  }
}

/** The owner's row, locked; `secret` is that of the link by which they set a password, null when they have one. */
async function ensureOwner(
  tx: Queryable,
  revokeKeysOf: RevokeKeysOf,
  actor: Actor,
  email: string,
  givenName: string,
): Promise<{ owner: Person; secret: string | null }> {
  const known = await store.lockPersonByEmail(tx, email);
  if (known !== null && known.staffRole !== null)
    throw invalid('This is one of our own people, who can not be a customer.', 'email');
  if (known?.isVerified) return { owner: known, secret: null };
  const name = asField('name', () => parseName(givenName, 'The name of the owner'));
  if (known !== null) {
    await resetPerson(tx, actor, known, revokeKeysOf);
    await store.updatePersonName(tx, known.id, name);
  }
  const owner =
    known === null
      ? await store.insertPerson(tx, { email, name, passwordHash: null, staffRole: null, isVerified: false })
      : { ...known, name };
  return { owner, secret: await createAccessLink(tx, owner.id, firstLinkHours) };
}

async function tellOwner(
  post: Post,
  owner: Person,
  organization: string,
  secret: string | null,
): Promise<Delivery | null> {
  if (secret !== null) return deliverAccessLink(post, owner, secret);
  if (post.canSend)
    post.sendLater(async () => addedAsOwnerMail(owner, organization, post.linkTo('/client/')));
  return null;
}

function asField<T>(field: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof CodedError ? invalid(error.message, field) : error;
  }
}
