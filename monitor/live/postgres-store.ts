/**
 * Live windows in an UNLOGGED table: lost in a crash, and shared by all processes of one database.
 *
 * Finding those over a site's length reads its whole length, up to 20,000 windows, so a process does it only after it stored a
 * hundredth of the length. Until then the table has a few more, which no reader sees.
 */
import { sql } from 'kysely';
import type { LiveReceipt } from '#contracts/sensor-api/http.ts';
import type { LiveWindow } from '#contracts/sensor-api/live.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import {
  decodedBytes,
  isKept,
  type LiveBounds,
  type LiveRate,
  type LiveStore,
  rateSeconds,
  type StoredWindow,
  type WindowList,
  type WindowRange,
} from './live-store.ts';

/** Creates the default engine. */
export function createPostgresStore(db: () => Queryable, bounds: LiveBounds): LiveStore {
  const { historySeconds, historyMax } = bounds;
  const nowIn = async (from: Queryable) => bounds.now?.() ?? readNowMs(from);
  const cutoff = (nowMs: number) => nowMs - historySeconds * 1000;
  const slack = Math.floor(historyMax / 100);
  /** By site: windows that this process stored since it deleted those over length. */
  const storedSince = new Map<number, number>();
  return {
    async add(sensor, runId, windows) {
      const { siteId } = sensor;
      let isTrimmed = false;
      const receipt = await db()
        .transaction()
        .execute(async (trx) => {
          await lockSite(trx, siteId);
          const nowMs = await nowIn(trx);
          const receipt: LiveReceipt = { stored: 0, duplicates: 0, too_old: 0 };
          for (const window of windows) {
            if (!isKept(window.startedAtMs, nowMs, historySeconds)) receipt.too_old += 1;
            else if (await insertWindow(trx, sensor, runId, window)) receipt.stored += 1;
            else receipt.duplicates += 1;
          }
          await deleteAged(trx, siteId, cutoff(nowMs));
          isTrimmed = (storedSince.get(siteId) ?? slack) + receipt.stored > slack;
          if (isTrimmed) await deleteOverLength(trx, siteId, historyMax);
          return receipt;
        });
      storedSince.set(siteId, isTrimmed ? 0 : (storedSince.get(siteId) ?? 0) + receipt.stored);
      return receipt;
    },
    list: async (range) => listWindows(db(), range, cutoff(await nowIn(db())), historyMax),
    listRates: async (siteId) => {
      const nowMs = await nowIn(db());
      return listRates(db(), siteId, Math.max(cutoff(nowMs), nowMs - rateSeconds * 1000));
    },
    prune: async () => deleteAged(db(), null, cutoff(await nowIn(db()))),
    findProblem: async () => null,
    start: async () => {},
    stop: async () => {},
  };
}

/** Serializes uploads of a site until the transaction ends. */
async function lockSite(trx: Queryable, siteId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318103, ${siteId}::int)`.execute(trx);
}

/** Returns false when the window is already stored. */
async function insertWindow(
  trx: Queryable,
  sensor: { id: number; siteId: number },
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

/** Deletes windows that began at or before this time, of one site or of all. */
async function deleteAged(db: Queryable, siteId: number | null, cutoffMs: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with gone as (delete from live_windows
      where (${siteId}::bigint is null or site_id = ${siteId}::bigint)
        and started_at <= to_timestamp(${cutoffMs / 1000}::float8) returning 1)
    select count(*)::int as count from gone`.execute(db);
  return rows[0]!.count;
}

/** Keeps the newest windows of a site. */
async function deleteOverLength(trx: Queryable, siteId: number, historyMax: number): Promise<void> {
  await sql`delete from live_windows where id in (
    select id from live_windows where site_id = ${siteId}
    order by started_at desc, id desc offset ${historyMax})`.execute(trx);
}

interface WindowRow extends Omit<StoredWindow, 'hosts'> {
  matching: number;
  addresses: string[];
  rxBytes: number[];
  txBytes: number[];
  hostPackets: number[];
}

/** Filters by age too, because expired windows are deleted only with the next upload or the hourly run. */
async function listWindows(
  db: Queryable,
  range: WindowRange,
  cutoffMs: number,
  historyMax: number,
): Promise<WindowList> {
  const { rows } = await sql<WindowRow>`
    select sensor_id, capture, role, (extract(epoch from started_at) * 1000)::float8 as started_at_ms, observed_ms,
      packets, ip_bytes, parser_dropped, kernel_dropped, hosts_left_out, matching,
      array(select host(address) from unnest(addresses) with ordinality as listed (address, place) order by place) as addresses,
      rx_bytes::float8[] as rx_bytes, tx_bytes::float8[] as tx_bytes, host_packets::float8[] as host_packets
    from (
      select *, count(*) over ()::int as matching, row_number() over newest_first as place,
        sum(cardinality(addresses)) over newest_first as host_rows,
        sum(${decodedBytes.window}::int + ${decodedBytes.host}::int * cardinality(addresses)) over newest_first as bytes
      from live_windows
      where site_id = ${range.siteId} and started_at >= to_timestamp(${range.sinceMs / 1000}::float8)
        and started_at > to_timestamp(${cutoffMs / 1000}::float8)
      window newest_first as (order by started_at desc, id desc)
    ) listed
    where place <= ${Math.min(range.limit, historyMax)} 
      and (host_rows <= ${range.hostsMax} and bytes <= ${range.bytesMax} or place = 1)
    order by place`.execute(db);
  const windows = rows.map(({ addresses, rxBytes, txBytes, hostPackets, matching: _, ...window }) => ({
    ...window,
    hosts: addresses.map((address, i) => ({
      address,
      rxBytes: rxBytes[i]!,
      txBytes: txBytes[i]!,
      packets: hostPackets[i]!,
    })),
  }));
  return {
    windows,
    isLimited: rows.length > 0 && rows.length < Math.min(rows[0]!.matching, historyMax),
    isTrimmed: rows.length > 0 && rows[0]!.matching >= historyMax,
  };
}

async function listRates(db: Queryable, siteId: number, afterMs: number): Promise<LiveRate[]> {
  const { rows } = await sql<LiveRate>`
    select distinct on (sensor_id, capture collate "C") sensor_id, capture,
      (extract(epoch from started_at) * 1000)::float8 as started_at_ms, observed_ms, ip_bytes, packets,
      parser_dropped, kernel_dropped
    from live_windows
    where site_id = ${siteId} and started_at > to_timestamp(${afterMs / 1000}::float8)
    order by sensor_id, capture collate "C", started_at desc, id desc`.execute(db);
  return rows;
}
