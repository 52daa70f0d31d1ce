/** Parts of statements: what is read of tenants in one look with something else. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** The ids of an organization's tenants; the organization is an id or a column. */
export const organizationTenants = (organization: number | RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select id from tenants where organization_id = ${organization}`;

/** The id and currency of a tenant that may be charged: none where it is closed. */
export const chargeableTenant = (tenantId: number): RawBuilder<unknown> => sql`
  select id, currency from tenants where id = ${tenantId} and status <> 'CLOSED'`;

/** Whether a tenant is one of the organization. */
export async function ownsTenant(db: Queryable, organizationId: number, tenantId: number): Promise<boolean> {
  const { rows } =
    await sql`select 1 from tenants where id = ${tenantId} and organization_id = ${organizationId}`.execute(
      db,
    );
  return rows.length === 1;
}
