/**
 * What became of a site's servers: listed first, moved to another node, listed no longer, and other changes that operations told
 * of.
 */
import { sql } from 'kysely';
import type { InventoryChangeKind } from '#contracts/admin-api/inventory-changes.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ServerChange {
  kind: 'listed' | 'moved' | 'gone';
  atMs: number;
  serverName: string;
  /** Of moves; null where operations named no node. */
  fromNode: string | null;
  toNode: string | null;
  /** One of its addresses at that time, or null. */
  address: string | null;
}

export interface ServerChangesAsked {
  siteId: number;
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  /** Servers that had one of these; null: all servers. */
  addresses: readonly string[] | null;
}

/**
 * The newest ones first. Servers of a cluster's first listing are not news: they were there before. A move stands at the listing that
 * last named the old node.
 */
export async function listServerChanges(
  db: Queryable,
  { siteId, fromMs, toMs, addresses }: ServerChangesAsked,
  limit: number,
): Promise<ServerChange[]> {
  const inRange = (column: string) =>
    sql`${sql.ref(column)} >= to_timestamp(${fromMs / 1000}::float8) and ${sql.ref(column)} < to_timestamp(${toMs / 1000}::float8)`;
  const { rows } = await sql<ServerChange>`
    with machines as (
      select v.* from inventory_vms v join site_clusters c on c.cluster_id = v.cluster_id and c.site_id = ${siteId}),
    first_listings as (select cluster_id, min(first_seen_at) as at from inventory_vms group by cluster_id),
    changes as (
      select 'listed' as kind, v.first_seen_at as at, v.cluster_id, v.vm_id, null::text as from_node, v.node as to_node
      from machines v join first_listings f on f.cluster_id = v.cluster_id
      where ${inRange('v.first_seen_at')} and v.first_seen_at > f.at
      union all
      select 'gone', v.retired_at, v.cluster_id, v.vm_id, v.node, null from machines v where ${inRange('v.retired_at')}
      union all
      select 'moved', min(p.began_at), p.cluster_id, p.vm_id, before.node, p.node
      from vm_placements p join site_clusters c on c.cluster_id = p.cluster_id and c.site_id = ${siteId}
      cross join lateral (select o.node from vm_placements o where o.cluster_id = p.cluster_id and o.vm_id = p.vm_id and o.mac = p.mac
        and o.address is null and o.began_at < p.began_at order by o.began_at desc limit 1) before
      where p.address is null and ${inRange('p.began_at')} and before.node is distinct from p.node
      group by p.cluster_id, p.vm_id, before.node, p.node)
    select h.kind, (extract(epoch from h.at) * 1000)::float8 as at_ms, coalesce(v.name, 'VM ' || h.vm_id) as server_name,
      h.from_node, h.to_node, a.address
    from changes h left join inventory_vms v on v.cluster_id = h.cluster_id and v.vm_id = h.vm_id
    left join lateral (select host(p.address) as address from vm_placements p where p.cluster_id = h.cluster_id and p.vm_id = h.vm_id
        and p.address is not null and (p.ended_at is null or p.ended_at >= h.at)
        and (${addresses}::inet[] is null or p.address = any(${addresses}::inet[]))
      order by p.address limit 1) a on true
    where ${addresses}::inet[] is null or a.address is not null
    order by h.at desc, 3 limit ${limit}`.execute(db);
  return rows;
}

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
    select c.kind, (extract(epoch from c.occurred_at) * 1000)::float8 as at_ms, c.times,
      coalesce(v.name, 'VM ' || c.vm_id) as server_name, a.address
    from grouped c left join inventory_vms v on v.cluster_id = c.cluster_id and v.vm_id = c.vm_id
    left join lateral (select host(p.address) as address from vm_placements p
      where p.cluster_id = c.cluster_id and p.vm_id = c.vm_id and p.address is not null and ${covers} and ${shown}
      order by p.address limit 1) a on true
    order by c.occurred_at desc, server_name, c.kind`.execute(db);
  return rows;
}

/**
 * The start of the listing that was imported last, as a timestamp's text; `infinity` when that listing is older than
 * `staleSeconds`, because no newer one is waited for, and before the first listing.
 */
export async function readCertainUntil(db: Queryable, staleSeconds: number): Promise<string> {
  const { rows } = await sql<{ until: string }>`
    select case when listed_at > svc_now() - make_interval(secs => ${staleSeconds}) then listed_at
      else 'infinity' end::text as until
    from inventory_state`.execute(db);
  return rows[0]?.until ?? 'infinity';
}
