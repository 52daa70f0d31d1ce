/** Sites: their names, and at which of them something is that operations links to. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function nameSites(db: Queryable, ids: readonly number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<{ id: number; name: string }>`
    select id, name from sites where id = any(${[...ids]}::bigint[])`.execute(db);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** The sites of the clusters in which operations named addresses of this billing account. */
export async function listSitesOfAccount(db: Queryable, accountId: number): Promise<number[]> {
  const { rows } = await sql<{ siteId: number }>`
    select distinct c.site_id as "siteId"
    from allocation_targets t join site_clusters c on c.cluster_id = t.cluster_id
    where t.billing_account_id = ${accountId} order by 1`.execute(db);
  return rows.map(({ siteId }) => siteId);
}

/** The site of an incident; null for one that is not known. */
export async function findSiteOfIncident(db: Queryable, incidentId: string): Promise<number | null> {
  const { rows } = await sql<{ siteId: number }>`
    select site_id as "siteId" from incidents where id = ${incidentId}::uuid`.execute(db);
  return rows[0]?.siteId ?? null;
}
