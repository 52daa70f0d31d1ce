/** Whose a server is. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './scope.ts';

export interface OwnedServer {
  tenantId: number;
  name: string;
  createdAt: Date;
}

/** A living server of the scope; null for any other. */
export async function findOwnedServer(
  db: Queryable,
  scope: Scope,
  serverId: number,
): Promise<OwnedServer | null> {
  const owned = scope === 'all' ? sql`true` : sql`tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<OwnedServer>`
    select tenant_id as "tenantId", name, created_at as "createdAt" from servers
    where id = ${serverId} and ${owned} and provisioning_state <> 'deleted'`.execute(db);
  return rows[0] ?? null;
}
