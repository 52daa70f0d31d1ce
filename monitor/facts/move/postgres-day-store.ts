/** Days of sites in PostgreSQL, as the source and as the target of a move. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SiteDay } from '../control/engine-use-store.ts';
import type { DaySums, MeasuredDay, SumBounds, TableSums } from './clickhouse-day-store.ts';
import { pairPeers } from './to-clickhouse-store.ts';

/** Days from that minute on. */
export async function listDays(db: Queryable, fromMinute: number): Promise<MeasuredDay[]> {
  const { rows } = await sql<MeasuredDay>`
    select site_id, (floor(extract(epoch from minute) / 86400) * 86400)::float8 as day, count(*)::int as capture_minutes
    from capture_minutes where minute >= to_timestamp(${fromMinute}) group by 1, 2`.execute(db);
  return rows;
}

/** Rows of a day that a move makes, each with the column that says when. */
const ofDay = [
  ['capture_minutes', 'minute'],
  ['host_minutes', 'minute'],
  ['application_facts', 'minute'],
  ['endpoint_pairs', 'minute'],
  ['late_peer_minutes', 'minute'],
  ['peer_network_hours', 'hour'],
] as const;

/** Removes a day of a site, and marks its minutes for the roll-up. */
export async function clearDay(trx: Queryable, siteDay: SiteDay): Promise<void> {
  await markDay(trx, siteDay);
  for (const [table, column] of ofDay)
    await sql`delete from ${sql.table(table)} where ${within(siteDay, column)}`.execute(trx);
}

/** Marks a day's minutes for the roll-up. */
export async function markDay(trx: Queryable, siteDay: SiteDay): Promise<void> {
  await sql`insert into site_minute_marks (site_id, minute)
    select distinct site_id, minute from capture_minutes where ${within(siteDay, 'minute')}`.execute(trx);
}

function within({ siteId, day }: SiteDay, column: string): RawBuilder<unknown> {
  return sql`site_id = ${siteId} and ${sql.ref(column)} >= to_timestamp(${day}) and ${sql.ref(column)} < to_timestamp(${day + 86_400})`;
}

/** Sums of a day; of the target of a move, networks of peers as it wrote them. */
export async function sumDay(
  db: Queryable,
  siteId: number,
  bounds: SumBounds,
  role: 'source' | 'target',
): Promise<DaySums> {
  const { fromMinute, toMinute, pairsFrom } = bounds;
  const between = (column: string, from: number, to = toMinute) =>
    sql`site_id = ${siteId} and ${sql.ref(column)} >= to_timestamp(${Math.max(from, fromMinute)})
      and ${sql.ref(column)} < to_timestamp(${Math.min(to, toMinute)})`;
  const sums = (
    bytes: string,
    foreign: string,
  ) => sql`count(*)::text as rows, coalesce(sum((${sql.raw(bytes)})::numeric), 0)::text as bytes,
    coalesce(sum(packets::numeric), 0)::text as packets, (count(*) filter (where ${sql.raw(foreign)}))::text as foreign`;
  const one = async (from: RawBuilder<unknown>, bytes: string, foreign = 'is_foreign') =>
    (await sql<TableSums>`select ${sums(bytes, foreign)} from ${from}`.execute(db)).rows[0]!;
  const table = (name: string, from = fromMinute) =>
    sql`(select * from ${sql.table(name)} where ${between('minute', from)}) of_day`;
  const inAndOut = 'inbound_bytes::numeric + outbound_bytes';
  const peers = sql`(select inbound_bytes, outbound_bytes, packets, is_foreign from late_peer_minutes
      where ${between('minute', fromMinute, role === 'source' ? bounds.peersFrom : toMinute)}
    union all select inbound_bytes, outbound_bytes, packets, false from peer_network_hours
      where ${between('hour', fromMinute, role === 'source' ? bounds.peersFrom : toMinute)} and not is_late
    union all select inbound_bytes, outbound_bytes, packets, is_foreign from (${pairPeers(between('minute', bounds.peerPairsFrom))}) made
      where ${sql.lit(role === 'source')}) of_day`;
  return {
    capture_minutes: await one(table('capture_minutes'), 'ip_bytes', 'false'),
    host_minutes: await one(
      table('host_minutes'),
      `rx_bytes::numeric + tx_bytes + lan_rx_bytes + lan_tx_bytes + own_scan_rx_bytes + own_scan_tx_bytes
        + coalesce(dropped_rx_bytes, 0) + coalesce(dropped_tx_bytes, 0)`,
    ),
    application_facts: await one(table('application_facts'), inAndOut),
    endpoint_pairs: await one(table('endpoint_pairs', pairsFrom), 'client_bytes::numeric + server_bytes'),
    peer_minutes: await one(peers, inAndOut),
  };
}

/** Tables of facts and of what is made of them; captures, gaps, notes of uploads and verdicts are not among them. */
const factTables = [
  ...['capture_minutes', 'host_minutes', 'application_facts', 'endpoint_pairs', 'late_peer_minutes'],
  ...[
    'pair_hours',
    'pair_name_hours',
    'pair_tens',
    'usage_tens',
    'address_hours',
    'address_tens',
    'application_hours',
    'peer_network_hours',
  ],
  ...[
    'minute_owners',
    'name_minutes',
    'name_tens',
    'rolled_tens',
    'name_hours',
    'name_hour_locals',
    'name_days',
  ],
  ...[
    'name_day_locals',
    'rolled_days',
    'name_pair_minutes',
    'name_pair_tens',
    'name_pair_hours',
    'site_hours',
  ],
  ...['rolled_hours', 'site_minutes', 'site_minute_marks', 'unjudged_minutes'],
];

/** Removes all facts. */
export async function deletePostgresFacts(db: Queryable): Promise<void> {
  await sql`truncate ${sql.join(factTables.map((name) => sql.table(name)))}`.execute(db);
}
