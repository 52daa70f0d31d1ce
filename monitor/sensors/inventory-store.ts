/** The newest inventory of each host. */
import { sql } from 'kysely';
import type { HostInterface, HostInventory } from '#contracts/sensor-api/telemetry.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function upsertInventory(
  trx: Queryable,
  sensorId: number,
  inventory: HostInventory,
): Promise<void> {
  await sql`
    insert into host_inventories as held (sensor_id, observed_at, interfaces, interfaces_left_out, neighbours,
      neighbours_left_out)
    values (${sensorId}, to_timestamp(${inventory.observedAtMs / 1000}::float8), ${JSON.stringify(inventory.interfaces)}::jsonb,
      ${inventory.interfacesLeftOut}, ${inventory.neighbours.length}, ${inventory.neighboursLeftOut})
    on conflict (sensor_id) do update set observed_at = excluded.observed_at, interfaces = excluded.interfaces,
      interfaces_left_out = excluded.interfaces_left_out, neighbours = excluded.neighbours,
      neighbours_left_out = excluded.neighbours_left_out
    where excluded.observed_at >= held.observed_at`.execute(trx);
}

export interface HostInterfaces {
  sensorId: number;
  hostName: string;
  observedAtMs: number;
  interfaces: HostInterface[];
  interfacesLeftOut: number;
  neighbours: number;
}

export async function listInterfaces(db: Queryable, siteId: number): Promise<HostInterfaces[]> {
  const { rows } = await sql<HostInterfaces>`
    select s.id as "sensorId", s.host_name as "hostName", i.interfaces, i.neighbours,
      (extract(epoch from i.observed_at) * 1000)::float8 as "observedAtMs", i.interfaces_left_out as "interfacesLeftOut"
    from host_inventories i join sensors s on s.id = i.sensor_id
    where s.site_id = ${siteId} and s.revoked_at is null order by lower(s.host_name), s.id`.execute(db);
  return rows;
}
