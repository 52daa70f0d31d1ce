/**
 * Reads of devices and of addresses over ranges. A device's bytes are those of the addresses that it owned, minute by
 * minute, each at the one capture that counts; what nobody is known to have owned is no device's (NET-2.2.9, 2.2.10).
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as facts from './facts.ts';
import { type Coverage, inSpans } from './span-store.ts';

const unionAll = (parts: readonly RawBuilder<unknown>[]) => sql.join(parts, sql` union all `);

/** Minutes of addresses as `device_minutes`: what each exchanged, and internally, with who owned it then. */
export function deviceMinutes(
  coverage: Pick<Coverage, 'siteId' | 'spans'>,
  addresses: readonly string[] | null,
): RawBuilder<unknown> {
  const { siteId, spans } = coverage;
  const ofAddresses = addresses === null ? sql`true` : sql`address = any(${[...addresses]}::inet[])`;
  const nothing = sql`select null::inet as address, null::timestamptz as minute, null::text as device_key, null::bigint as rx,
    null::bigint as tx, null::bigint as packets, null::bigint as lan_rx, null::bigint as lan_tx where false`;
  const parts = spans.flatMap((span) => {
    const call = sql`(${siteId}, to_timestamp(${span.from}), to_timestamp(${span.to})) where ${ofAddresses}`;
    return [
      sql`select address, minute, device_key, rx_bytes as rx, tx_bytes as tx, packets, null::bigint as lan_rx, null::bigint as lan_tx
        from strongest_host_minutes${call}`,
      sql`select address, minute, device_key, null, null, null, rx_bytes, tx_bytes from strongest_lan_minutes${call}`,
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

const sums = sql`sum(rx)::float8 as "wanRx", sum(tx)::float8 as "wanTx",
  coalesce(sum(lan_rx), 0)::float8 as "lanRx", coalesce(sum(lan_tx), 0)::float8 as "lanTx"`;

export async function sumDevices(
  db: Queryable,
  coverage: Coverage,
  deviceKeys: readonly string[],
): Promise<facts.Limited<facts.DeviceTotals>> {
  const keys = [...new Set(deviceKeys)].slice(0, facts.deviceBudget.keys);
  const source = await findAddresses(db, coverage, keys);
  const { rows } = await sql<SumRow>`
    with ${deviceMinutes({ ...coverage, spans: source.spans }, source.addresses)}
    select device_key as "deviceKey", ${sums} from device_minutes
    where device_key = any(${keys}::text[]) group by device_key`.execute(db);
  const found = new Map(rows.map((row) => [row.deviceKey, row]));
  return {
    items: deviceKeys.map((deviceKey) => ({ deviceKey, ...toValues(found.get(deviceKey)) })),
    sourceLimited: source.isLimited || keys.length < new Set(deviceKeys).size,
  };
}

export async function stepDevice(
  db: Queryable,
  coverage: Coverage,
  options: { deviceKey: string; stepSeconds: number },
): Promise<facts.Limited<facts.DeviceStep>> {
  const { deviceKey, stepSeconds } = options;
  const source = await findAddresses(db, coverage, [deviceKey]);
  const { rows } = await sql<SumRow & { timeMs: number }>`
    with ${deviceMinutes({ ...coverage, spans: source.spans }, source.addresses)}
    select floor(extract(epoch from minute) / ${stepSeconds}) * ${stepSeconds * 1000}::float8 as "timeMs", ${sums}
    from device_minutes where device_key = ${deviceKey} group by 1 order by 1`.execute(db);
  return {
    items: rows.map((row) => ({ timeMs: row.timeMs, ...toValues(row) })),
    sourceLimited: source.isLimited,
  };
}

function toValues(row: SumRow | undefined): Pick<facts.DeviceTotals, 'wan' | 'lan'> {
  if (!row) return { wan: null, lan: null };
  const { wanRx, wanTx, lanRx, lanTx } = row;
  return {
    wan: wanRx === null || wanTx === null ? null : { rxBytes: wanRx, txBytes: wanTx },
    lan: lanRx === null || lanTx === null ? null : { rxBytes: lanRx, txBytes: lanTx },
  };
}

/**
 * The addresses that any capture gave to one of these devices, because selection must see all captures of them. Beyond
 * the budget of rows the newest spans are read, beyond that of addresses the first ones.
 */
async function findAddresses(db: Queryable, coverage: Coverage, deviceKeys: readonly string[]) {
  const { rows } = await sql<{ address: string; rows: number }>`
    select host(address) as address, count(*)::int as rows from host_minutes
    where site_id = ${coverage.siteId} and ${inSpans(coverage.spans)} and address in (
      select address from host_minutes where site_id = ${coverage.siteId} and ${inSpans(coverage.spans)}
        and device_key = any(${[...deviceKeys]}::text[]))
    group by address order by host_minutes.address limit ${facts.deviceBudget.addresses + 1}`.execute(db);
  const addresses: string[] = [];
  let read = 0;
  for (const row of rows) {
    read += row.rows;
    if (addresses.length >= facts.deviceBudget.addresses || read > facts.deviceBudget.rows) break;
    addresses.push(row.address);
  }
  return { addresses, spans: coverage.spans, isLimited: addresses.length < rows.length };
}

export async function sumOwned(db: Queryable, coverage: Coverage): Promise<facts.OwnedShare> {
  const { rows } = await sql<facts.OwnedShare>`
    with ${deviceMinutes(coverage, null)}
    select coalesce(sum(rx + tx), 0)::float8 as bytes,
      coalesce(sum(rx + tx) filter (where device_key <> ''), 0)::float8 as "ownedBytes"
    from device_minutes`.execute(db);
  return rows[0]!;
}

export async function listTopAddresses(
  db: Queryable,
  coverage: Coverage,
  limit: number,
): Promise<facts.TopAddress[]> {
  const { rows } = await sql<facts.TopAddress>`
    with ${deviceMinutes(coverage, null)},
    pieces as (select address, rx, tx, packets, minute as last_minute from device_minutes where rx is not null)
    select host(address) as address, sum(rx)::float8 as "rxBytes", sum(tx)::float8 as "txBytes",
      sum(packets)::float8 as packets, extract(epoch from max(last_minute))::float8 as "lastSeenMinute"
    from pieces group by address order by sum(rx) + sum(tx) desc, address limit ${limit}`.execute(db);
  return rows;
}
