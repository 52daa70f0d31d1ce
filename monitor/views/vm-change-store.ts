/** Changes of a site's servers that the inventory does not show, as operations told of them. */
import { sql } from 'kysely';
import type { InventoryChangeKind } from '#contracts/admin-api/inventory-changes.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ServerChangesAsked } from './server-history-store.ts';

export interface ToldChange {
  kind: InventoryChangeKind;
  /** Of the first one. */
  atMs: number;
  /** How often in that minute. */
  times: number;
  serverName: string;
  /** One of its addresses at that time, or null. */
  address: string | null;
}

/** Of each cluster or server, the newest; so a long range costs no more than a short one. */
const readMax = 2_000;

/**
 * The newest ones first; those of one kind and server in one minute are one. With addresses, those of servers that had one of them at
 * that time, read by the addresses and not out of the whole site's.
 */
export async function listToldChanges(
  db: Queryable,
  { siteId, fromMs, toMs, addresses }: ServerChangesAsked,
  limit: number,
): Promise<ToldChange[]> {
  const inRange = sql`c.occurred_at >= to_timestamp(${fromMs / 1000}::float8)
    and c.occurred_at < to_timestamp(${toMs / 1000}::float8)`;
  const covers = sql`p.began_at <= c.occurred_at and (p.ended_at is null or p.ended_at >= c.occurred_at)`;
  const newest = sql`order by c.occurred_at desc limit ${readMax}`;
  const told =
    addresses === null
      ? sql`select c.* from site_clusters s cross join lateral (
          select c.* from vm_changes c where c.cluster_id = s.cluster_id and ${inRange} ${newest}) c
          where s.site_id = ${siteId}`
      : sql`select distinct c.* from vm_placements p
          join site_clusters s on s.cluster_id = p.cluster_id and s.site_id = ${siteId}
          cross join lateral (
            select c.* from vm_changes c
            where c.cluster_id = p.cluster_id and c.vm_id = p.vm_id and ${covers} and ${inRange} ${newest}) c
          where p.address = any(${addresses}::inet[])`;
  const shown = addresses === null ? sql`true` : sql`p.address = any(${addresses}::inet[])`;
  const { rows } = await sql<ToldChange>`
    with told as (${told}),
    grouped as (
      select kind, cluster_id, vm_id, min(occurred_at) as occurred_at, count(*)::int as times from told
      group by kind, cluster_id, vm_id, date_trunc('minute', occurred_at)
      order by min(occurred_at) desc, cluster_id, vm_id, kind limit ${limit})
    select c.kind, (extract(epoch from c.occurred_at) * 1000)::float8 as "atMs", c.times,
      coalesce(v.name, 'VM ' || c.vm_id) as "serverName", a.address
    from grouped c left join inventory_vms v on v.cluster_id = c.cluster_id and v.vm_id = c.vm_id
    left join lateral (select host(p.address) as address from vm_placements p
      where p.cluster_id = c.cluster_id and p.vm_id = c.vm_id and p.address is not null and ${covers} and ${shown}
      order by p.address limit 1) a on true
    order by c.occurred_at desc, "serverName", c.kind`.execute(db);
  return rows;
}
