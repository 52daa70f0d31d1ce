/** Every statement on people, organizations, memberships, tenants and billing profiles. */
import { sql } from 'kysely';
import { asWordQuery } from '#operations/views/search-store.ts';
import type { TenantStatus } from '#operations/views/tenant-store.ts';
import { endAccessLinks } from '#service-kit/access-links/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { endSteps } from '#service-kit/second-factors/index.ts';
import type { BillingProfile, Membership, MembershipRole, Organization, Person, Tenant } from './account.ts';
import type { StaffRole } from './actor.ts';
import type { Invitation } from './invite-member.ts';

const personColumns = sql`id, email, name, staff_role, deactivated_at is null as is_active,
  email_verified_at is not null as is_verified`;

export interface NewPerson {
  email: string;
  name: string;
  /** Null: they set a password by a link. */
  passwordHash: string | null;
  staffRole: StaffRole | null;
  isVerified: boolean;
}

export async function insertPerson(db: Queryable, person: NewPerson): Promise<Person> {
  const { rows } = await sql<Person>`
    insert into people (email, name, password_hash, staff_role, email_verified_at)
    values (${person.email}, ${person.name}, ${person.passwordHash}, ${person.staffRole},
      case when ${person.isVerified} then svc_now() end)
    returning ${personColumns}`.execute(db);
  return rows[0]!;
}

export async function findPerson(db: Queryable, personId: number): Promise<Person | null> {
  const { rows } = await sql<Person>`select ${personColumns} from people where id = ${personId}`.execute(db);
  return rows[0] ?? null;
}

/** The address as it is stored (`foldEmail`). */
export async function findPersonByEmail(
  db: Queryable,
  email: string,
): Promise<(Person & { passwordHash: string | null }) | null> {
  // PostgreSQL refuses a text with a zero byte, and no stored address has one.
  if (email.includes('\0')) return null;
  const { rows } = await sql<Person & { passwordHash: string | null }>`
    select ${personColumns}, password_hash from people where email = ${email}`.execute(db);
  return rows[0] ?? null;
}

/** The person, with the row locked until the transaction ends. */
export async function lockPersonByEmail(tx: Queryable, email: string): Promise<Person | null> {
  const { rows } = await sql<Person>`
    select ${personColumns} from people where email = ${email} for update`.execute(tx);
  return rows[0] ?? null;
}

/** Sets a password. Links that would set another, and sign-ins that were begun with the former one, end. */
export async function updatePassword(tx: Queryable, personId: number, passwordHash: string): Promise<void> {
  await sql`update people set password_hash = ${passwordHash} where id = ${personId}`.execute(tx);
  await endAccessLinks(tx, personId);
  await endSteps(tx, personId);
}

/** Leaves a person without a password and without the proof that the address is theirs. */
export async function clearPassword(db: Queryable, personId: number): Promise<void> {
  await sql`update people set password_hash = null, email_verified_at = null where id = ${personId}`.execute(
    db,
  );
}

export async function verifyEmail(db: Queryable, personId: number): Promise<void> {
  await sql`update people set email_verified_at = coalesce(email_verified_at, svc_now())
    where id = ${personId}`.execute(db);
}

export async function updatePersonName(db: Queryable, personId: number, name: string): Promise<void> {
  await sql`update people set name = ${name} where id = ${personId}`.execute(db);
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
    insert into organizations (name) values (${name}) returning id, name, created_at`.execute(db);
  return rows[0]!;
}

export async function findOrganization(db: Queryable, organizationId: number): Promise<Organization | null> {
  const { rows } = await sql<Organization>`
    select id, name, created_at from organizations where id = ${organizationId}`.execute(db);
  return rows[0] ?? null;
}

export async function listOrganizations(db: Queryable): Promise<Organization[]> {
  const { rows } = await sql<Organization>`
    select id, name, created_at from organizations order by id`.execute(db);
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
    select memberships.organization_id, organizations.name as organization_name, memberships.person_id,
           people.name as person_name, people.email as person_email, people.deactivated_at is null as is_active,
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
    on conflict (organization_id, slug) do nothing
    returning id`.execute(db);
  return rows[0]?.id ?? null;
}

const tenantColumns = sql`
  tenants.id, tenants.organization_id, organizations.name as organization_name, tenants.name, tenants.slug,
  tenants.status, tenants.currency, tenants.is_payer, billing_profiles.tenant_id is not null as has_billing_profile,
  tenants.created_at`;
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

/** By the beginnings of words of the tenant's or of the organization's name, or by id, which comes first. */
export async function findTenantsByWords(
  db: Queryable,
  asked: { id: number | null; words: readonly string[] },
  limit: number,
): Promise<Tenant[]> {
  const query = asWordQuery(asked.words);
  const { rows } = await sql<Tenant>`
    with matching as materialized (select t.id from tenants t where search_words(t.name) @@ ${query}::tsquery),
    matching_organizations as materialized (
      select o.id from organizations o where search_words(o.name) @@ ${query}::tsquery),
    found as (
      (select t.id from tenants t where t.id = ${asked.id})
      union
      (select id from matching limit ${limit * 4})
      union
      (select t.id from matching_organizations o join tenants t on t.organization_id = o.id limit ${limit * 4}))
    select ${tenantColumns} from ${tenantTables}
    where tenants.id in (select id from found)
    order by tenants.id is distinct from ${asked.id}, lower(tenants.name), tenants.id limit ${limit}`.execute(
    db,
  );
  return rows;
}

/**
 * The status, with the row locked until the transaction ends; null when there is no such tenant. The lock lets references
 * to the row pass: a ledger entry references the tenant first and locks its balance then. A stronger lock would deadlock
 * with a suspension, which holds the balance.
 */
export async function lockTenantStatus(db: Queryable, tenantId: number): Promise<TenantStatus | null> {
  const { rows } = await sql<{ status: TenantStatus }>`
    select status from tenants where id = ${tenantId} for no key update`.execute(db);
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
    select legal_name, email, country from billing_profiles
    where tenant_id = ${tenantId}`.execute(db);
  return rows[0] ?? null;
}

const invitationColumns = sql`
  i.id, i.organization_id, o.name as organization_name, i.email, i.expires_at`;
const isOpen = sql`i.accepted_at is null and i.revoked_at is null and i.expires_at > svc_now()`;

export async function insertInvitation(
  tx: Queryable,
  invitation: {
    organizationId: number;
    email: string;
    digest: Buffer;
    invitedByPersonId: number | null;
    days: number;
  },
): Promise<Invitation> {
  const { rows } = await sql<Invitation>`
    with i as (
      insert into invitations (organization_id, email, digest, invited_by_person_id, expires_at)
      values (${invitation.organizationId}, ${invitation.email}, ${invitation.digest},
        ${invitation.invitedByPersonId}, svc_now() + make_interval(days => ${invitation.days}))
      returning *)
    select ${invitationColumns} from i join organizations o on o.id = i.organization_id`.execute(tx);
  return rows[0]!;
}

/**
 * The invitations of the last 24 hours: of an organization, whose row is locked, and to an address by all organizations. Of
 * two transactions that count an address the second waits for the first.
 */
export async function countInvitationsOfDay(
  tx: Queryable,
  organizationId: number,
  email: string,
): Promise<{ ofOrganization: number; toAddress: number }> {
  await sql`select pg_advisory_xact_lock(hashtextextended('invitations ' || ${email}, 0))`.execute(tx);
  const { rows } = await sql<{ ofOrganization: number; toAddress: number }>`
    select (select count(*)::int from invitations
        where organization_id = ${organizationId} and created_at > svc_now() - interval '1 day') as of_organization,
      (select count(*)::int from invitations
        where email = ${email} and created_at > svc_now() - interval '1 day') as to_address`.execute(tx);
  return rows[0]!;
}

/** Ends the open invitations of an address. */
export async function revokeInvitationsOf(
  db: Queryable,
  organizationId: number,
  email: string,
): Promise<void> {
  await sql`update invitations set revoked_at = svc_now()
    where organization_id = ${organizationId} and email = ${email} and accepted_at is null and revoked_at is null`.execute(
    db,
  );
}

/** False when there is no such open invitation of this organization. */
export async function revokeInvitation(
  db: Queryable,
  organizationId: number,
  invitationId: number,
): Promise<boolean> {
  const { rows } = await sql`update invitations set revoked_at = svc_now()
    where id = ${invitationId} and organization_id = ${organizationId} and accepted_at is null and revoked_at is null
    returning 1`.execute(db);
  return rows.length === 1;
}

export async function findOpenInvitation(db: Queryable, digest: Buffer): Promise<Invitation | null> {
  const { rows } = await sql<Invitation>`
    select ${invitationColumns} from invitations i join organizations o on o.id = i.organization_id
    where i.digest = ${digest} and ${isOpen}`.execute(db);
  return rows[0] ?? null;
}

export async function listOpenInvitations(db: Queryable, organizationId: number): Promise<Invitation[]> {
  const { rows } = await sql<Invitation>`
    select ${invitationColumns} from invitations i join organizations o on o.id = i.organization_id
    where i.organization_id = ${organizationId} and ${isOpen} order by i.id`.execute(db);
  return rows;
}

/** The person's row, locked until the transaction ends. */
export async function lockPerson(tx: Queryable, personId: number): Promise<void> {
  await sql`select 1 from people where id = ${personId} for update`.execute(tx);
}

/** The organization's row, locked until the transaction ends. */
export async function lockOrganization(tx: Queryable, organizationId: number): Promise<void> {
  await sql`select 1 from organizations where id = ${organizationId} for update`.execute(tx);
}

/** Uses an invitation up; false when another has, or it has ended. */
export async function takeInvitation(tx: Queryable, invitationId: number): Promise<boolean> {
  const { rows } = await sql`
    update invitations i set accepted_at = svc_now() where id = ${invitationId} and ${isOpen} returning 1`.execute(
    tx,
  );
  return rows.length === 1;
}

export async function findPasswordHash(db: Queryable, personId: number): Promise<string | null> {
  const { rows } = await sql<{ hash: string | null }>`
    select password_hash as hash from people where id = ${personId} and deactivated_at is null`.execute(db);
  return rows[0]?.hash ?? null;
}

export async function updateOrganizationName(db: Queryable, id: number, name: string): Promise<void> {
  await sql`update organizations set name = ${name} where id = ${id}`.execute(db);
}

export async function updateTenantName(db: Queryable, id: number, name: string): Promise<void> {
  await sql`update tenants set name = ${name} where id = ${id}`.execute(db);
}

export async function listStaff(db: Queryable): Promise<Person[]> {
  const { rows } = await sql<Person>`
    select ${personColumns} from people where staff_role is not null order by id`.execute(db);
  return rows;
}

/**
 * Gives one of our own people another role; null where they have it already or are none of ours, `last` where no operator
 * would remain. The operators are locked in order, so that two who lose the role at once can't both succeed.
 */
export async function setStaffRole(
  tx: Queryable,
  personId: number,
  role: StaffRole,
): Promise<Person | 'last' | null> {
  const { rows: operators } = await sql<{ id: number }>`
    select id from people where staff_role = 'operator' and deactivated_at is null order by id for update`.execute(
    tx,
  );
  const isOnly = operators.length === 1 && operators[0]!.id === personId;
  if (role !== 'operator' && isOnly) return 'last';
  const { rows } = await sql<Person>`
    update people set staff_role = ${role}
    where id = ${personId} and staff_role is not null and staff_role <> ${role}
    returning ${personColumns}`.execute(tx);
  return rows[0] ?? null;
}
