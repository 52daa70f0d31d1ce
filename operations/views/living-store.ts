/** What of a tenant is still alive. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** What of a tenant still lives: servers, and orders that may become one. Reads the neighbours' rows. */
export async function countLiving(
  db: Queryable,
  tenantId: number,
): Promise<{ servers: number; orders: number }> {
  const { rows } = await sql<{ servers: number; orders: number }>`
    select (select count(*) from servers where tenant_id = ${tenantId} and provisioning_state <> 'deleted') as servers,
      (select count(*) from server_orders
        where tenant_id = ${tenantId} and queued_at is null and closed_reason is null) as orders`.execute(db);
  return rows[0]!;
}
