/** Which servers had which addresses in the past, by what operations listed. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface AddressServer {
  clusterId: number;
  vmId: number;
  name: string;
}

export interface AddressPeriod {
  address: string;
  /** Blank: on any segment. */
  segment: string;
  /** Seconds since 1970, the end excluded. */
  from: number;
  to: number;
}

/** For each period the servers that had the address in it, in their order; usually one. */
export async function listServersOfAddresses(
  db: Queryable,
  siteId: number,
  periods: readonly AddressPeriod[],
): Promise<AddressServer[][]> {
  const servers: AddressServer[][] = periods.map(() => []);
  if (periods.length === 0) return servers;
  const { rows } = await sql<AddressServer & { index: number }>`
    with asked as (
      select * from unnest(${periods.map((one) => one.address)}::inet[], ${periods.map((one) => one.segment)}::text[],
        ${periods.map((one) => one.from)}::float8[], ${periods.map((one) => one.to)}::float8[])
        with ordinality as a(address, segment, starts, ends, index))
    select distinct (a.index - 1)::int as index, p.cluster_id as "clusterId", p.vm_id as "vmId",
      coalesce(v.name, 'VM ' || p.vm_id) as name
    from asked a join vm_placements p on p.address = a.address
      and p.began_at < to_timestamp(a.ends) and (p.ended_at is null or p.ended_at > to_timestamp(a.starts))
      and (p.is_unique or a.segment = '' or p.segment in ('', a.segment))
    join site_clusters c on c.cluster_id = p.cluster_id and c.site_id = ${siteId}
    left join inventory_vms v on v.cluster_id = p.cluster_id and v.vm_id = p.vm_id
    order by 1, 2, 3`.execute(db);
  for (const { index, ...server } of rows) servers[index]!.push(server);
  return servers;
}
