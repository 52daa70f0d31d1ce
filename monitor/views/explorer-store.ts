/** What the dimensions of a query mean at a site: servers and accounts of addresses, sensors, devices, names of applications. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ServerAddress } from './address-store.ts';

export interface OwnedAddress extends ServerAddress {
  /** Of an address that is not unique; else blank. */
  segment: string;
  serverName: string;
  /** The billing account that operations named; null: of no allocation of this server. */
  accountId: number | null;
}

/** Which servers of the site's clusters have which addresses now; of several the first, in an order that lasts. */
export async function listOwnedAddresses(db: Queryable, siteId: number): Promise<OwnedAddress[]> {
  const { rows } = await sql<OwnedAddress>`
    with owned as (
      select a.address, '' as segment, a.cluster_id, a.virtual_machine_id as vm_id
      from allocation_targets a join site_clusters c on c.cluster_id = a.cluster_id and c.site_id = ${siteId}
      union
      select p.address, case when p.is_unique then '' else p.segment end, p.cluster_id, p.vm_id
      from vm_placements p join site_clusters c on c.cluster_id = p.cluster_id and c.site_id = ${siteId}
      where p.ended_at is null and p.address is not null),
    accounts as (
      select cluster_id, virtual_machine_id as vm_id, min(billing_account_id) as account_id
      from allocation_targets group by 1, 2)
    select distinct on (o.address, o.segment) host(o.address) as address, o.segment, o.cluster_id, o.vm_id as server_id,
      coalesce(v.name, 'VM ' || o.vm_id) as server_name, n.account_id
    from owned o left join inventory_vms v on v.cluster_id = o.cluster_id and v.vm_id = o.vm_id
    left join accounts n on n.cluster_id = o.cluster_id and n.vm_id = o.vm_id
    order by o.address, o.segment, o.cluster_id, o.vm_id`.execute(db);
  return rows;
}

/** Every sensor that the site ever had, the present ones first. */
export async function listSensorNames(
  db: Queryable,
  siteId: number,
): Promise<{ id: number; hostName: string; node: string }[]> {
  const { rows } = await sql<{ id: number; hostName: string; node: string }>`
    select id, host_name, node from sensors where site_id = ${siteId}
    order by revoked_at is not null, id`.execute(db);
  return rows;
}

/** `segment|MAC` of the site's devices with one of these MACs or names. */
export async function findDeviceKeys(
  db: Queryable,
  siteId: number,
  texts: readonly string[],
): Promise<{ text: string; deviceKey: string }[]> {
  const { rows } = await sql<{ text: string; deviceKey: string }>`
    select t.text, d.segment || '|' || d.mac as device_key
    from devices d left join device_names n on n.mac = d.mac
    join unnest(${[...texts]}::text[]) t(text)
      on lower(t.text) in (lower(d.mac), lower(d.segment || '|' || d.mac), lower(n.name), lower(d.matched_vm_name))
    where d.site_id = ${siteId} order by 1, 2`.execute(db);
  return rows;
}

/** Names of applications as they are kept, for texts in any case. */
export async function findApplicationNames(
  db: Queryable,
  siteId: number,
  texts: readonly string[],
): Promise<{ text: string; name: string }[]> {
  const { rows } = await sql<{ text: string; name: string }>`
    select t.text, a.name from application_names a join unnest(${[...texts]}::text[]) t(text) on lower(t.text) = lower(a.name)
    where a.site_id = ${siteId} order by 1, 2`.execute(db);
  return rows;
}

/** Names of the site's applications that hold this text, those that begin with it first. */
export async function completeApplications(db: Queryable, siteId: number, text: string, limit: number) {
  const part = text.toLowerCase();
  const { rows } = await sql<{ name: string }>`
    select name from application_names where site_id = ${siteId} and position(${part} in lower(name)) > 0
    order by position(${part} in lower(name)) > 1, lower(name), name limit ${limit}`.execute(db);
  return rows.map((row) => row.name);
}

/** Devices of the site whose name, MAC or segment holds this text. */
export async function completeDevices(
  db: Queryable,
  siteId: number,
  text: string,
  limit: number,
): Promise<{ deviceKey: string; name: string | null }[]> {
  const { rows } = await sql<{ deviceKey: string; name: string | null }>`
    select d.segment || '|' || d.mac as device_key, coalesce(n.name, d.matched_vm_name) as name
    from devices d left join device_names n on n.mac = d.mac
    where d.site_id = ${siteId} and d.archived_at is null
      and position(${text.toLowerCase()} in lower(concat_ws(' ', n.name, d.matched_vm_name, d.segment || '|' || d.mac))) > 0
    order by lower(coalesce(n.name, d.matched_vm_name)), 1 limit ${limit}`.execute(db);
  return rows;
}
