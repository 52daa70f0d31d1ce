/** The newest inventory of each host. */
import { sql } from 'kysely';
import type { HostInterface, HostInventory } from '#contracts/sensor-api/telemetry.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** What a sensor told of its host. */
export interface SensorInventory {
  sensorId: number;
  inventory: HostInventory;
}

/** Keeps the newest of each sensor. Rows are taken in the order of their sensors, as in every transaction. */
export async function upsertInventories(trx: Queryable, found: readonly SensorInventory[]): Promise<void> {
  if (found.length === 0) return;
  const all = <T>(read: (inventory: HostInventory) => T) => found.map(({ inventory }) => read(inventory));
  await sql`
    insert into host_inventories as held (sensor_id, observed_at, interfaces, interfaces_left_out, neighbours,
      neighbours_left_out)
    select distinct on (sensor_id) sensor_id, to_timestamp(observed_ms / 1000), interfaces, interfaces_left_out, neighbours,
      neighbours_left_out
    from unnest(${found.map(({ sensorId }) => sensorId)}::bigint[], ${all((one) => one.observedAtMs)}::float8[],
      ${all((one) => JSON.stringify(one.interfaces))}::jsonb[], ${all((one) => one.interfacesLeftOut)}::int[],
      ${all((one) => one.neighbours.length)}::int[], ${all((one) => one.neighboursLeftOut)}::int[])
      as given (sensor_id, observed_ms, interfaces, interfaces_left_out, neighbours, neighbours_left_out)
    order by sensor_id, observed_ms desc
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
    select s.id as sensor_id, s.host_name, i.interfaces, i.neighbours,
      (extract(epoch from i.observed_at) * 1000)::float8 as observed_at_ms, i.interfaces_left_out
    from host_inventories i join sensors s on s.id = i.sensor_id
    where s.site_id = ${siteId} and s.revoked_at is null order by lower(s.host_name), s.id`.execute(db);
  return rows;
}
