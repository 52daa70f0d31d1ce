import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import {
  invalid,
  type Organization,
  parseName,
  parseOrganizationName,
  slugOf,
  type Tenant,
} from './account.ts';
import { type Actor, requireOperator, requireOwnerOrOperator } from './actor.ts';
import * as store from './store.ts';

export interface CreateOrganizationInput {
  name: string;
  ownerId: number;
  /** Of its first tenant; the organization's name when absent. */
  tenantName?: string;
}

export interface CreateOrganizationResult {
  organization: Organization;
  tenant: Tenant;
}

/** Makes an organization with its owner and its payer tenant, all or nothing. Operators only. */
export async function createOrganization(
  db: Queryable,
  actor: Actor,
  input: CreateOrganizationInput,
): Promise<CreateOrganizationResult> {
  requireOperator(actor);
  const name = parseOrganizationName(input.name);
  return inTransaction(db, async (transaction) => {
    if (!(await store.findPerson(transaction, input.ownerId))) throw invalid('There is no such owner.');
    const made = await insertOrganization(transaction, name, input.ownerId, input.tenantName);
    await record(transaction, actor, {
      operation: 'organization.create',
      subject: { kind: 'organization', id: made.organization.id, name },
      organizationId: made.organization.id,
      tenantId: made.tenant.id,
      after: { name, ownerId: input.ownerId },
    });
    return made;
  });
}

/** The rows of an organization with its owner and its payer tenant; inside a transaction. */
export async function insertOrganization(
  tx: Queryable,
  name: string,
  ownerId: number,
  tenantName = name,
): Promise<CreateOrganizationResult> {
  const organization = await store.insertOrganization(tx, name);
  await store.upsertMembership(tx, organization.id, ownerId, 'owner');
  return { organization, tenant: await insertNamedTenant(tx, organization.id, tenantName) };
}

const tenantsMax = 50;

/** Adds a tenant to an organization. Its owner, up to fifty, and operators. */
export async function createTenant(
  db: Queryable,
  actor: Actor,
  input: { organizationId: number; name: string },
): Promise<Tenant> {
  requireOwnerOrOperator(actor, input.organizationId);
  if (
    actor.kind === 'customer' &&
    (await store.listTenantsOfOrganization(db, input.organizationId)).length >= tenantsMax
  )
    throw invalid(`An organization has ${tenantsMax} workspaces at most. Ask support for more.`);
  if (!(await store.findOrganization(db, input.organizationId)))
    throw invalid('There is no such organization.');
  return inTransaction(db, async (transaction) => {
    const tenant = await insertNamedTenant(transaction, input.organizationId, input.name);
    await record(transaction, actor, {
      operation: 'tenant.create',
      subject: { kind: 'tenant', id: tenant.id, name: tenant.name },
      organizationId: tenant.organizationId,
      tenantId: tenant.id,
      after: { name: tenant.name, slug: tenant.slug },
    });
    return tenant;
  });
}

/** The slug is made from the name; a number is added until it is free in the organization, which alone reads it. */
async function insertNamedTenant(db: Queryable, organizationId: number, text: string): Promise<Tenant> {
  const name = parseName(text, 'The name of a tenant');
  const base = slugOf(name);
  for (let attempt = 1; attempt <= 1_000; attempt += 1) {
    const slug = attempt === 1 ? base : `${base.slice(0, 56)}-${attempt}`;
    const id = await store.insertTenant(db, { organizationId, name, slug, currency: 'USD' });
    if (id !== null) return (await store.findTenants(db, [id]))[0]!;
  }
  throw invalid('Too many tenants have this name. Choose another one.');
}
