import { sql } from 'kysely';
import type { SetAsideHost } from '#contracts/sensor-api/set-aside.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Counters of an address and minute that were left out. */
export interface SetAsideRow extends SetAsideHost {
  siteId: number;
  sensorId: number;
}

export async function insertRows(trx: Queryable, rows: readonly SetAsideRow[]): Promise<void> {
  await sql`
    insert into set_aside_hosts (site_id, sensor_id, address, minute, capture)
    select "siteId", "sensorId", address, to_timestamp(minute), capture
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as given("siteId" bigint, "sensorId" bigint, address inet, minute float8, capture text)
    on conflict do nothing`.execute(trx);
}

export async function listMinutes(
  db: Queryable,
  range: { siteId: number; address: string; fromMinute: number; toMinute: number },
): Promise<number[]> {
  const { rows } = await sql<{ minute: number }>`
    select distinct extract(epoch from minute)::float8 as minute from set_aside_hosts
    where site_id = ${range.siteId} and address = ${range.address}::inet
      and minute >= to_timestamp(${range.fromMinute}) and minute < to_timestamp(${range.toMinute})`.execute(
    db,
  );
  return rows.map((row) => row.minute);
}

export async function listOfSensor(
  db: Queryable,
  siteId: number,
  sensorId: number,
  limit: number,
): Promise<SetAsideHost[]> {
  const { rows } = await sql<SetAsideHost>`
    select host(address) as address, extract(epoch from minute)::float8 as minute, capture from set_aside_hosts
    where site_id = ${siteId} and sensor_id = ${sensorId} order by minute desc, address limit ${limit}`.execute(
    db,
  );
  return rows;
}
