/** Whose the address of an attack is, as the inventory and not the reporting sensor says. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** `server`: of a server on a node whose sensor reports the incident; `host`: of a host of the site, such as a gateway. */
export type AttackedOwner = 'server' | 'host' | 'unknown';

/**
 * In the order of the targets. A sensor whose node has no server, such as one at a router, speaks for all servers of its site. What
 * hosts say of their own interfaces takes no address from a server.
 */
export async function findAttackedOwners(
  trx: Queryable,
  targets: readonly { siteId: number; incidentId: string; address: string }[],
): Promise<AttackedOwner[]> {
  const { rows } = await sql<{ owner: AttackedOwner }>`
    with placed as (
      select p.address, p.node, p.cluster_id, c.site_id
      from vm_placements p join site_clusters c on c.cluster_id = p.cluster_id
      where p.ended_at is null and p.address is not null),
    hosts as (
      select distinct s.site_id, host(a::inet) as address
      from host_inventories h join sensors s on s.id = h.sensor_id, jsonb_array_elements(h.interfaces) as i,
        jsonb_array_elements_text(i -> 'addresses') as a
      where s.site_id = any(${targets.map(({ siteId }) => siteId)}::bigint[]))
    select case
      when exists (
        select 1 from incident_observations o join sensors s on s.id = o.sensor_id
        join placed p on p.site_id = s.site_id and p.address = t.address::inet
        where o.incident_id = t."incidentId" and s.site_id = t."siteId" and (
          p.node = s.node and coalesce(p.cluster_id = s.cluster_id, true)
          or not exists (select 1 from placed q where q.site_id = s.site_id and q.node = s.node))) then 'server'
      when exists (select 1 from hosts h where h.site_id = t."siteId" and h.address = t.address) then 'host'
      else 'unknown' end as owner
    from rows from (jsonb_to_recordset(${JSON.stringify(targets)}::jsonb) as ("siteId" bigint, "incidentId" uuid, address text))
      with ordinality as t("siteId", "incidentId", address, n) order by n`.execute(trx);
  return rows.map(({ owner }) => owner);
}
