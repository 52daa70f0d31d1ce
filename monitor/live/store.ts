/** The table of live windows. */
import { sql } from 'kysely';
import type { LiveHost, LiveWindow } from '#contracts/sensor-api/live.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Lets one upload of a site at a time change its windows, until the transaction ends. */
export async function lockSite(trx: Queryable, siteId: number): Promise<{ nowMs: number }> {
  await sql`select pg_advisory_xact_lock(7318103, ${siteId}::int)`.execute(trx);
  const { rows } = await sql<{ nowMs: number }>`
    select (extract(epoch from svc_now()) * 1000)::float8 as "nowMs"`.execute(trx);
  return rows[0]!;
}

/** False when the window is there already. */
export async function insertWindow(
  trx: Queryable,
  sensor: Pick<EnrolledSensor, 'id' | 'siteId'>,
  runId: string,
  window: LiveWindow,
): Promise<boolean> {
  const { totals, hosts } = window;
  const { rows } = await sql`
    insert into live_windows (site_id, sensor_id, run_id, capture, role, started_at, observed_ms, packets, ip_bytes,
      parser_dropped, kernel_dropped, merged_frames, addresses, rx_bytes, tx_bytes, host_packets, hosts_left_out)
    values (${sensor.siteId}, ${sensor.id}, ${runId}, ${window.capture}, ${window.role},
      to_timestamp(${window.startedAtMs / 1000}::float8), ${window.observedMs}, ${totals.packets}, ${totals.ipBytes},
      ${totals.parserDropped}, ${totals.kernelDropped}, ${totals.mergedFrames ?? 0},
      ${hosts.map((host) => host.address)}::inet[], ${hosts.map((host) => host.rxBytes)}::bigint[],
      ${hosts.map((host) => host.txBytes)}::bigint[], ${hosts.map((host) => host.packets)}::bigint[],
      ${window.hostsLeftOut})
    on conflict (sensor_id, run_id, capture, started_at) do nothing returning 1`.execute(trx);
  return rows.length === 1;
}

/** Forgets windows that began longer ago than that, of one site or of all. */
export async function deleteAged(
  db: Queryable,
  siteId: number | null,
  historySeconds: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with gone as (delete from live_windows
      where (${siteId}::bigint is null or site_id = ${siteId}::bigint)
        and started_at <= svc_now() - make_interval(secs => ${historySeconds}) returning 1)
    select count(*)::int as count from gone`.execute(db);
  return rows[0]!.count;
}

/** Keeps the newest windows of a site. */
export async function deleteOverLength(trx: Queryable, siteId: number, historyMax: number): Promise<void> {
  await sql`delete from live_windows where id in (
    select id from live_windows where site_id = ${siteId} order by started_at desc, id desc offset ${historyMax})`.execute(
    trx,
  );
}

export interface StoredWindow {
  sensorId: number;
  capture: string;
  role: 'uplink' | 'bridge';
  startedAtMs: number;
  observedMs: number;
  packets: number;
  ipBytes: number;
  parserDropped: number;
  kernelDropped: number;
  hosts: LiveHost[];
  hostsLeftOut: number;
}

interface WindowRow extends Omit<StoredWindow, 'hosts'> {
  addresses: string[];
  rxBytes: number[];
  txBytes: number[];
  hostPackets: number[];
}

/** Filters by age too, because what is over age goes only with the next upload or the hourly run. */
export async function listWindows(
  db: Queryable,
  range: { siteId: number; sinceMs: number; historySeconds: number; limit: number },
): Promise<StoredWindow[]> {
  const { rows } = await sql<WindowRow>`
    select sensor_id as "sensorId", capture, role, (extract(epoch from started_at) * 1000)::float8 as "startedAtMs",
      observed_ms as "observedMs", packets, ip_bytes as "ipBytes", parser_dropped as "parserDropped",
      kernel_dropped as "kernelDropped", hosts_left_out as "hostsLeftOut",
      array(select host(address) from unnest(addresses) with ordinality as listed (address, place) order by place) as addresses,
      rx_bytes::float8[] as "rxBytes", tx_bytes::float8[] as "txBytes", host_packets::float8[] as "hostPackets"
    from live_windows
    where site_id = ${range.siteId} and started_at >= to_timestamp(${range.sinceMs / 1000}::float8)
      and started_at > svc_now() - make_interval(secs => ${range.historySeconds})
    order by started_at desc, id desc limit ${range.limit}`.execute(db);
  return rows.map(({ addresses, rxBytes, txBytes, hostPackets, ...window }) => ({
    ...window,
    hosts: addresses.map((address, i) => ({
      address,
      rxBytes: rxBytes[i]!,
      txBytes: txBytes[i]!,
      packets: hostPackets[i]!,
    })),
  }));
}

/** What a capture said last. */
export interface LiveRate {
  sensorId: number;
  capture: string;
  startedAtMs: number;
  observedMs: number;
  ipBytes: number;
  packets: number;
}

export async function listRates(db: Queryable, siteId: number, historySeconds: number): Promise<LiveRate[]> {
  const { rows } = await sql<LiveRate>`
    select distinct on (sensor_id, capture) sensor_id as "sensorId", capture,
      (extract(epoch from started_at) * 1000)::float8 as "startedAtMs", observed_ms as "observedMs", ip_bytes as "ipBytes",
      packets
    from live_windows
    where site_id = ${siteId} and started_at > svc_now() - make_interval(secs => ${Math.min(historySeconds, 120)})
    order by sensor_id, capture, started_at desc, id desc`.execute(db);
  return rows;
}
