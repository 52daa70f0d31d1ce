/**
 * Reads of devices and of addresses over ranges. A device's bytes are those of the addresses that it owned, minute by
 * minute, each at the one capture that counts; traffic without a known owner counts for no device (NET-2.2.9, 2.2.10).
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as facts from '../contract/facts.ts';
import {
  type Coverage,
  hourSeconds,
  inHours,
  inSpans,
  type Parts,
  spansOf,
  uniteSpans,
} from './span-store.ts';

const unionAll = (parts: readonly RawBuilder<unknown>[]) => sql.join(parts, sql` union all `);

/** Minutes of addresses as `device_minutes`: what each exchanged, and internally, with who owned it then. */
export function deviceMinutes(
  coverage: Pick<Coverage, 'siteId' | 'spans'>,
  addresses: readonly string[] | null,
) {
  const { siteId, spans } = coverage;
  const ofAddresses = addresses === null ? sql`true` : sql`address = any(${[...addresses]}::inet[])`;
  const nothing = sql`select null::inet as address, null::timestamptz as minute, null::text as device_key, null::bigint as rx,
    null::bigint as tx, null::bigint as packets, null::bigint as lan_rx, null::bigint as lan_tx, null::text as segment,
    null::bigint as own_scan_bytes, null::bigint as own_scan_packets where false`;
  const parts = spans.flatMap((span) => {
    const call = sql`(${siteId}, to_timestamp(${span.from}), to_timestamp(${span.to})) where ${ofAddresses}`;
    return [
      sql`select address, minute, device_key, rx_bytes as rx, tx_bytes as tx, packets, null::bigint as lan_rx, null::bigint as lan_tx, segment,
          own_scan_rx_bytes + own_scan_tx_bytes as own_scan_bytes, own_scan_packets
        from strongest_host_minutes${call}`,
      sql`select address, minute, device_key, null, null, null, rx_bytes, tx_bytes, segment, null, null
        from strongest_lan_minutes${call}`,
    ];
  });
  return sql`device_minutes as (${parts.length === 0 ? nothing : unionAll(parts)})`;
}

interface SumRow {
  deviceKey: string;
  wanRx: number | null;
  wanTx: number | null;
  lanRx: number | null;
  lanTx: number | null;
}

const sums = sql`sum(rx)::float8 as wan_rx, sum(tx)::float8 as wan_tx, coalesce(sum(lan_rx), 0)::float8 as lan_rx,
  coalesce(sum(lan_tx), 0)::float8 as lan_tx`;

const ofDevices = (deviceKeys: readonly string[]) => sql`device_key = any(${[...deviceKeys]}::text[])`;

/** Rolled-up hours and minutes alike as `pieces`: a start, an owner, bytes. */
const devicePieces = (siteId: number, source: Source, deviceKeys: readonly string[]) => sql`
  ${deviceMinutes({ siteId, spans: source.spans }, source.addresses)},
  pieces as (
    select hour as start, device_key, rx_bytes as rx, tx_bytes as tx, lan_rx_bytes as lan_rx, lan_tx_bytes as lan_tx
    from address_hours where site_id = ${siteId} and ${inHours(source.hours)} and ${ofDevices(deviceKeys)}
    union all
    select minute, device_key, rx, tx, lan_rx, lan_tx from device_minutes where ${ofDevices(deviceKeys)})`;

export async function sumDevices(
  db: Queryable,
  coverage: Coverage,
  deviceKeys: readonly string[],
): Promise<facts.Limited<facts.DeviceTotals>> {
  const keys = [...new Set(deviceKeys)].slice(0, facts.deviceBudget.keys);
  const source = await findSource(db, coverage, keys);
  const { rows } = await sql<SumRow>`
    with ${devicePieces(coverage.siteId, source, keys)}
    select device_key, ${sums} from pieces group by device_key`.execute(db);
  const found = new Map(rows.map((row) => [row.deviceKey, row]));
  return {
    items: deviceKeys.map((deviceKey) => ({ deviceKey, ...toValues(found.get(deviceKey)) })),
    sourceLimited: source.isLimited || keys.length < new Set(deviceKeys).size,
  };
}

/** Steps of less than an hour are read from minutes throughout. */
export async function stepDevice(
  db: Queryable,
  coverage: Coverage,
  options: { deviceKey: string; stepSeconds: number },
): Promise<facts.Limited<facts.DeviceStep>> {
  const { deviceKey, stepSeconds } = options;
  const source = await findSource(db, coverage, [deviceKey]);
  if (stepSeconds % hourSeconds !== 0) {
    source.spans = uniteSpans(source.spans, spansOf(source.hours, hourSeconds));
    source.hours = [];
  }
  const { rows } = await sql<Omit<SumRow, 'deviceKey'> & { timeMs: number }>`
    with ${devicePieces(coverage.siteId, source, [deviceKey])}
    select floor(extract(epoch from start) / ${stepSeconds}) * ${stepSeconds * 1000}::float8 as time_ms, ${sums}
    from pieces group by 1 order by 1`.execute(db);
  return {
    items: rows.map((row) => ({ timeMs: row.timeMs, ...toValues(row) })),
    sourceLimited: source.isLimited,
  };
}

function toValues(row: Omit<SumRow, 'deviceKey'> | undefined): Pick<facts.DeviceTotals, 'wan' | 'lan'> {
  if (!row) return { wan: null, lan: null };
  const { wanRx, wanTx, lanRx, lanTx } = row;
  return {
    wan: wanRx === null || wanTx === null ? null : { rxBytes: wanRx, txBytes: wanTx },
    lan: lanRx === null || lanTx === null ? null : { rxBytes: lanRx, txBytes: lanTx },
  };
}

interface Source extends Parts {
  /** Those that may have belonged to one of the devices. */
  addresses: string[];
  isLimited: boolean;
}

/** Addresses that any capture gave to one of these devices, in order; at most `limit`, or all. */
export async function listDeviceAddresses(
  db: Queryable,
  { siteId, spans, hours }: Pick<Coverage, 'siteId' | 'spans' | 'hours'>,
  deviceKeys: readonly string[],
  limit: number | null,
): Promise<string[]> {
  const ofSite = sql`site_id = ${siteId}`;
  const { rows } = await sql<{ address: string }>`
    select host(address) as address from (
      select address from host_minutes where ${ofSite} and ${inSpans(spans)} and ${ofDevices(deviceKeys)} and not is_foreign
      union select address from address_hours where ${ofSite} and ${inHours(hours)} and ${ofDevices(deviceKeys)}) a
    order by a.address limit ${limit}`.execute(db);
  return rows.map((row) => row.address);
}

/**
 * What has to be read: the addresses that any capture gave to one of these devices, because selection must see all
 * captures of them, and the hours. Beyond the budgets the first addresses and the newest hours are read.
 */
async function findSource(db: Queryable, coverage: Coverage, deviceKeys: readonly string[]): Promise<Source> {
  const { siteId, spans } = coverage;
  const ofSite = sql`site_id = ${siteId}`;
  const owned = await listDeviceAddresses(db, coverage, deviceKeys, facts.deviceBudget.addresses + 1);
  const addresses = owned.slice(0, facts.deviceBudget.addresses);
  const { rows: sizes } = await sql<{ hour: number; rows: number }>`
    select extract(epoch from hour)::float8 as hour, count(*)::int as rows from address_hours
    where ${ofSite} and ${inHours(coverage.hours)} and ${ofDevices(deviceKeys)}
    group by hour order by hour desc`.execute(db);
  let room = facts.deviceBudget.rows;
  const hours: number[] = [];
  for (const size of sizes) {
    room -= size.rows;
    if (room >= 0) hours.push(size.hour);
  }
  const isLimited = owned.length > addresses.length || hours.length < sizes.length;
  return { addresses, spans, hours: hours.toReversed(), isLimited };
}

export async function listTopAddresses(
  db: Queryable,
  coverage: Coverage,
  limit: number,
): Promise<facts.TopAddress[]> {
  const { siteId, hours } = coverage;
  const { rows } = await sql<facts.TopAddress>`
    with ${deviceMinutes(coverage, null)},
    pieces as (
      select address, segment, rx_bytes as rx, tx_bytes as tx, packets, last_minute from address_hours
      where site_id = ${siteId} and ${inHours(hours)} and rx_bytes is not null
      union all select address, segment, rx, tx, packets, minute from device_minutes where rx is not null)
    select host(address) as address, segment, sum(rx)::float8 as rx_bytes, sum(tx)::float8 as tx_bytes,
      sum(packets)::float8 as packets, extract(epoch from max(last_minute))::float8 as last_seen_minute
    from pieces group by address, segment order by sum(rx) + sum(tx) desc, address, segment collate "C"
    limit ${limit}`.execute(db);
  return rows;
}
