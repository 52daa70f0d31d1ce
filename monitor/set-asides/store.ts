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

/** Number of rows of a sensor that were left out. */
export interface LeftOutCount {
  sensorId: number;
  /** In minutes, and in live windows. */
  minuteRows: number;
  liveRows: number;
}

/** In the order of the sensors, so that two transactions can not deadlock. */
export async function addCounts(db: Queryable, counts: readonly LeftOutCount[]): Promise<void> {
  if (counts.length === 0) return;
  await sql`
    insert into sensor_set_asides as kept (sensor_id, minute_rows, live_rows)
    select "sensorId", "minuteRows", "liveRows"
    from jsonb_to_recordset(${JSON.stringify(counts)}::jsonb)
      as given("sensorId" bigint, "minuteRows" bigint, "liveRows" bigint)
    order by "sensorId"
    on conflict (sensor_id) do update set minute_rows = kept.minute_rows + excluded.minute_rows,
      live_rows = kept.live_rows + excluded.live_rows, last_at = svc_now()`.execute(db);
}

/** An address and a range of minutes, seconds since 1970. */
export interface AddressMinutes {
  siteId: number;
  address: string;
  fromMinute: number;
  toMinute: number;
}

export async function listMinutes(db: Queryable, ranges: readonly AddressMinutes[]): Promise<number[][]> {
  const { rows } = await sql<{ n: number; minute: number }>`
    select distinct (q.n - 1)::int as n, extract(epoch from s.minute)::float8 as minute
    from unnest(${ranges.map((one) => one.siteId)}::bigint[], ${ranges.map((one) => one.address)}::inet[],
      ${ranges.map((one) => one.fromMinute)}::float8[], ${ranges.map((one) => one.toMinute)}::float8[])
      with ordinality as q(site_id, address, from_second, to_second, n)
    join set_aside_hosts s on s.site_id = q.site_id and s.address = q.address
      and s.minute >= to_timestamp(q.from_second) and s.minute < to_timestamp(q.to_second)`.execute(db);
  const minutes = ranges.map((): number[] => []);
  for (const { n, minute } of rows) minutes[n]!.push(minute);
  return minutes;
}

export async function listOfSensor(
  db: Queryable,
  siteId: number,
  sensorId: number,
  limit: number,
): Promise<SetAsideHost[]> {
  const { rows } = await sql<SetAsideHost>`
    select host(address) as address, extract(epoch from minute)::float8 as minute, capture from set_aside_hosts
    where site_id = ${siteId} and sensor_id = ${sensorId} order by minute desc, address
    limit ${limit}`.execute(db);
  return rows;
}
