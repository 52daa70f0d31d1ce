/** Active potential vulnerabilities of many servers, for lists of servers. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { joined } from './finding-store.ts';

export interface ServerFindingCount {
  serverId: number;
  active: number;
  /** Of these. */
  critical: number;
  high: number;
  knownExploited: number;
}

/** Of servers that have active ones, at addresses that they have now; customers see none of servers whose views they switched off. */
export async function countFindingsOfServers(
  db: Queryable,
  serverIds: readonly number[],
  tenantIds: readonly number[] | 'all',
): Promise<ServerFindingCount[]> {
  const ofOwner =
    tenantIds === 'all'
      ? sql`true`
      : sql`p.tenant_id = any(${[...tenantIds]}::bigint[]) and not exists (
          select 1 from protect_settings c where c.server_id = p.server_id and not c.views_on)`;
  const { rows } = await sql<ServerFindingCount>`
    select p.server_id as "serverId", count(*)::int as active,
      count(*) filter (where f.severity = 'critical')::int as critical,
      count(*) filter (where f.severity = 'high')::int as high,
      count(*) filter (where f.is_known_exploited)::int as "knownExploited"
    from ${joined} join allocations a on a.id = p.allocation_id and a.server_id = p.server_id and a.released_at is null
    where p.server_id = any(${[...serverIds]}::bigint[]) and not f.is_upstream and i.id is null and ${ofOwner}
    group by p.server_id`.execute(db);
  return rows;
}
