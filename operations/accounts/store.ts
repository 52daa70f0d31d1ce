/** Every statement on people, organizations, memberships, tenants and billing profiles. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type {
  BillingProfile,
  Membership,
  MembershipRole,
  Organization,
  Person,
  Tenant,
  TenantStatus,
} from './account.ts';
import type { StaffRole } from './actor.ts';

const personColumns = sql`id, email, name, staff_role as "staffRole", deactivated_at is null as "isActive"`;

export async function insertPerson(
  db: Queryable,
  person: { email: string; name: string; passwordHash: string; staffRole: StaffRole | null },
): Promise<Person> {
  const { rows } = await sql<Person>`
    insert into people (email, name, password_hash, staff_role)
    values (${person.email}, ${person.name}, ${person.passwordHash}, ${person.staffRole})
    returning ${personColumns}`.execute(db);
  return rows[0]!;
}

export async function findPerson(db: Queryable, personId: number): Promise<Person | null> {
  const { rows } = await sql<Person>`select ${personColumns} from people where id = ${personId}`.execute(db);
  return rows[0] ?? null;
}

export async function findPersonByEmail(
  db: Queryable,
  email: string,
): Promise<(Person & { passwordHash: string }) | null> {
  const { rows } = await sql<Person & { passwordHash: string }>`
    select ${personColumns}, password_hash as "passwordHash" from people where email = ${email}`.execute(db);
  return rows[0] ?? null;
}

export async function updatePassword(db: Queryable, personId: number, passwordHash: string): Promise<void> {
  await sql`update people set password_hash = ${passwordHash} where id = ${personId}`.execute(db);
}

/** False when there is no such person. */
export async function setPersonActive(db: Queryable, personId: number, isActive: boolean): Promise<boolean> {
  const result = await sql`
    update people set deactivated_at = case when ${isActive} then null else coalesce(deactivated_at, svc_now()) end
    where id = ${personId}`.execute(db);
  return result.numAffectedRows === 1n;
}

export async function insertOrganization(db: Queryable, name: string): Promise<Organization> {
  const { rows } = await sql<Organization>`
    insert into organizations (name) values (${name}) returning id, name, created_at as "createdAt"`.execute(
    db,
  );
  return rows[0]!;
}

export async function findOrganization(db: Queryable, organizationId: number): Promise<Organization | null> {
  const { rows } = await sql<Organization>`
    select id, name, created_at as "createdAt" from organizations where id = ${organizationId}`.execute(db);
  return rows[0] ?? null;
}

export async function listOrganizations(db: Queryable): Promise<Organization[]> {
  const { rows } = await sql<Organization>`
    select id, name, created_at as "createdAt" from organizations order by id`.execute(db);
  return rows;
}

export async function upsertMembership(
  db: Queryable,
  organizationId: number,
  personId: number,
  role: MembershipRole,
): Promise<void> {
  await sql`insert into memberships (organization_id, person_id, role)
    values (${organizationId}, ${personId}, ${role})
    on conflict (organization_id, person_id) do update set role = excluded.role`.execute(db);
}

/** Never the owner's row: an organization without an owner could not mint a key again. */
export async function deleteMembership(
  db: Queryable,
  organizationId: number,
  personId: number,
): Promise<boolean> {
  const result = await sql`
    delete from memberships
    where organization_id = ${organizationId} and person_id = ${personId} and role <> 'owner'`.execute(db);
  return result.numAffectedRows === 1n;
}

export async function listMemberships(
  db: Queryable,
  of: { personId: number } | { organizationId: number },
): Promise<Membership[]> {
  const condition =
    'personId' in of
      ? sql`memberships.person_id = ${of.personId}`
      : sql`memberships.organization_id = ${of.organizationId}`;
  const { rows } = await sql<Membership>`
    select memberships.organization_id as "organizationId", organizations.name as "organizationName",
           memberships.person_id as "personId", people.name as "personName", people.email as "personEmail",
           memberships.role
    from memberships
    join organizations on organizations.id = memberships.organization_id
    join people on people.id = memberships.person_id
    where ${condition}
    order by memberships.organization_id, memberships.role desc, memberships.person_id`.execute(db);
  return rows;
}

/** Null when the slug is taken; the first tenant of an organization becomes its payer. */
export async function insertTenant(
  db: Queryable,
  tenant: { organizationId: number; name: string; slug: string; currency: string },
): Promise<number | null> {
  const { rows } = await sql<{ id: number }>`
    insert into tenants (organization_id, name, slug, currency, is_payer)
    values (${tenant.organizationId}, ${tenant.name}, ${tenant.slug}, ${tenant.currency},
            not exists (select 1 from tenants where organization_id = ${tenant.organizationId}))
    on conflict (slug) do nothing
    returning id`.execute(db);
  return rows[0]?.id ?? null;
}

const tenantColumns = sql`
  tenants.id, tenants.organization_id as "organizationId", organizations.name as "organizationName", tenants.name,
  tenants.slug, tenants.status, tenants.currency, tenants.is_payer as "isPayer",
  billing_profiles.tenant_id is not null as "hasBillingProfile", tenants.created_at as "createdAt"`;
const tenantTables = sql`
  tenants join organizations on organizations.id = tenants.organization_id
  left join billing_profiles on billing_profiles.tenant_id = tenants.id`;

/** Tenants by id in the order "payer first, then oldest"; ids that don't exist are left out. */
export async function findTenants(db: Queryable, tenantIds: readonly number[]): Promise<Tenant[]> {
  const { rows } = await sql<Tenant>`
    select ${tenantColumns} from ${tenantTables}
    where tenants.id = any(${[...tenantIds]}::bigint[])
    order by tenants.is_payer desc, tenants.id`.execute(db);
  return rows;
}

export async function listTenantsOfOrganization(db: Queryable, organizationId: number): Promise<Tenant[]> {
  const { rows } = await sql<Tenant>`
    select ${tenantColumns} from ${tenantTables}
    where tenants.organization_id = ${organizationId}
    order by tenants.is_payer desc, tenants.id`.execute(db);
  return rows;
}

export async function listTenantsOfPerson(db: Queryable, personId: number): Promise<Tenant[]> {
  const { rows } = await sql<Tenant>`
    select ${tenantColumns} from ${tenantTables}
    where tenants.organization_id in (select organization_id from memberships where person_id = ${personId})
    order by tenants.is_payer desc, tenants.id`.execute(db);
  return rows;
}

export async function listTenants(db: Queryable): Promise<Tenant[]> {
  const { rows } = await sql<Tenant>`
    select ${tenantColumns} from ${tenantTables} order by tenants.id`.execute(db);
  return rows;
}

/** The status, with the row locked until the transaction ends; null when there is no such tenant. */
export async function lockTenantStatus(db: Queryable, tenantId: number): Promise<TenantStatus | null> {
  const { rows } = await sql<{ status: TenantStatus }>`
    select status from tenants where id = ${tenantId} for update`.execute(db);
  return rows[0]?.status ?? null;
}

export async function updateTenantStatus(
  db: Queryable,
  tenantId: number,
  status: TenantStatus,
  suspendedFor: 'debt' | 'operator' | null,
): Promise<void> {
  await sql`update tenants set status = ${status}, suspended_for = ${suspendedFor}
    where id = ${tenantId}`.execute(db);
}

export async function endDebtSuspension(db: Queryable, tenantId: number): Promise<boolean> {
  const result = await sql`update tenants set status = 'ACTIVE', suspended_for = null
    where id = ${tenantId} and status = 'SUSPENDED' and suspended_for = 'debt'`.execute(db);
  return result.numAffectedRows === 1n;
}

export async function upsertBillingProfile(
  db: Queryable,
  tenantId: number,
  profile: BillingProfile,
): Promise<void> {
  await sql`insert into billing_profiles (tenant_id, legal_name, email, country)
    values (${tenantId}, ${profile.legalName}, ${profile.email}, ${profile.country})
    on conflict (tenant_id) do update set legal_name = excluded.legal_name, email = excluded.email,
      country = excluded.country, updated_at = svc_now()`.execute(db);
}

export async function findBillingProfile(db: Queryable, tenantId: number): Promise<BillingProfile | null> {
  const { rows } = await sql<BillingProfile>`
    select legal_name as "legalName", email, country from billing_profiles
    where tenant_id = ${tenantId}`.execute(db);
  return rows[0] ?? null;
}
