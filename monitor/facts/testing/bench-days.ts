/** Days of facts for measuring, made by PostgreSQL itself, and the room that they take. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FactClient } from '../clickhouse/engine-store.ts';
import type { BenchDatabase } from './bench-monitor.ts';

const hosts = 200;
const minutesAtOnce = 30;
/** An address of every day. */
export const benchAddress = '198.18.0.1';

export interface BenchDay {
  siteId: number;
  sensorId: number;
  day: number;
  /** Application facts of the day; 0: those of one address alone. */
  facts: number;
}

/** A day of two captures that see the same. */
export async function fillDay(db: Queryable, { siteId, sensorId, day, facts }: BenchDay): Promise<void> {
  await sql`insert into captures (site_id, sensor_id, name, role)
    values (${siteId}, ${sensorId}, 'uplink0', 'uplink'), (${siteId}, ${sensorId}, 'br0', 'bridge') on conflict do nothing`.execute(
    db,
  );
  const addresses = facts === 0 ? 1 : hosts;
  const each = Math.max(1, Math.round(facts / (1440 * addresses * 2)));
  const minutesFrom = (
    first: number,
    count: number,
  ) => sql`(select to_timestamp(${day}::float8 + 60 * n) as minute
    from generate_series(${first}::int, ${first + count - 1}::int) n) m
    cross join (select id, case role when 'uplink' then 1 else 2 end as vantage from captures where sensor_id = ${sensorId}) c`;
  const minutes = minutesFrom(0, 1440);
  const locals = sql`cross join (select '198.18.0.0'::inet + a as address, a from generate_series(1, ${addresses}::int) a) l`;
  await sql`insert into capture_minutes (site_id, minute, capture_id, vantage, observed_ms, packets, ip_packets, ip_bytes,
      non_ip_packets, parser_dropped, kernel_dropped, detail_truncated, merged_frames)
    select ${siteId}, minute, id, vantage, 60000, 1000, 1000, 90000, 0, 0, 0, 0, 0 from ${minutes}`.execute(
    db,
  );
  await sql`insert into host_minutes (site_id, minute, capture_id, address, rx_bytes, tx_bytes, packets, device_key, lan_rx_bytes,
      lan_tx_bytes, is_foreign, segment)
    select ${siteId}, minute, id, address, floor(random() * 1e6)::bigint, floor(random() * 1e6)::bigint,
      floor(random() * 1000)::bigint, 'br0|' || a, 0, 0, false, '' from ${minutes} ${locals}`.execute(db);
  // In pieces, because a statement may take two minutes only; two at once, on two processors.
  const pieces = Array.from({ length: 1440 / minutesAtOnce }, (_, i) => i * minutesAtOnce).values();
  const fill = async () => {
    for (const first of pieces)
      await sql`insert into application_facts (site_id, minute, capture_id, vantage, direction, local_address, name, protocol,
        server_port, evidence, is_attributed, inbound_bytes, outbound_bytes, packets, last_sent_at, is_foreign, segment)
      select ${siteId}, minute, id, vantage, 1, address, 'name' || floor(random() * 200)::int || '.example', 6, 443, 5, true,
        floor(random() * 1e5)::bigint, floor(random() * 1e4)::bigint, floor(random() * 100)::bigint,
        minute + make_interval(secs => round((random() * 59)::numeric, 3)::float8), false, ''
      from ${minutesFrom(first, minutesAtOnce)} ${locals} cross join generate_series(1, ${each}::int) e`.execute(
        db,
      );
  };
  await Promise.all([fill(), fill()]);
  await sql`insert into site_minute_marks (site_id, minute)
    select distinct ${siteId}::bigint, minute from ${minutes}`.execute(db);
}

/** Bytes of the tables of facts in both engines. */
export async function readRoom({ database }: BenchDatabase, client: FactClient): Promise<string[]> {
  const answer = await client.query({
    query: `select table, toFloat64(sum(rows)) as rows, toFloat64(sum(bytes_on_disk)) as bytes from system.parts
      where active and database = currentDatabase() group by table having rows > 100000 order by table`,
    format: 'JSONEachRow',
  });
  const lines: string[] = [];
  for (const { table, rows, bytes } of await answer.json<{ table: string; rows: number; bytes: number }>()) {
    const { rows: sizes } = await sql<{ bytes: number }>`
      select sum(pg_total_relation_size(inhrelid))::float8 as bytes from pg_inherits where inhparent = ${table}::regclass`.execute(
      database.db,
    );
    const own = sizes[0]!.bytes;
    lines.push(
      `${table}: ${rows} rows; ClickHouse ${(bytes / rows).toFixed(1)} bytes a row, PostgreSQL ${(own / rows).toFixed(1)} with indexes`,
    );
  }
  return lines;
}
