/**
 * Reads of devices and of addresses over ranges. A device's bytes are those of the addresses that it owned, minute by minute,
 * each at the one capture that counts; traffic without a known owner counts for no device (NET-2.2.9, 2.2.10).
 */
import * as facts from '../contract/facts.ts';
import { type Sources, scopeOf } from './address-store.ts';
import { hosts, type Scope, strongest, strongestLan } from './select-store.ts';
import { stepMs } from './site-store.ts';
import { ch, type Fragment, number, plain, texts } from './statement.ts';
import { addressOf } from './verdict-store.ts';

/** `owned`: what each address and minute adds to a device. */
const owned = (scope: Scope): Fragment => ch`${hosts(scope)}, ${strongest}, ${strongestLan},
owned as (
  select minute, toString(device_key) as device, best_rx as rx, best_tx as tx, 0 as lan_rx, 0 as lan_tx, 1 as is_wan from strongest
  union all
  select minute, device_key, 0, 0, best_lan_rx, best_lan_tx, 0 from strongest_lan)`;

const sums = plain(`toFloat64(sum(rx)) as wanRx, toFloat64(sum(tx)) as wanTx, toFloat64(sum(lan_rx)) as lanRx,
  toFloat64(sum(lan_tx)) as lanTx, max(is_wan) as hasWan`);

interface SumRow {
  wanRx: number;
  wanTx: number;
  lanRx: number;
  lanTx: number;
  hasWan: number;
}

function toValues(row: SumRow | undefined): Pick<facts.DeviceTotals, 'wan' | 'lan'> {
  if (!row) return { wan: null, lan: null };
  return {
    wan: row.hasWan === 0 ? null : { rxBytes: row.wanRx, txBytes: row.wanTx },
    lan: { rxBytes: row.lanRx, txBytes: row.lanTx },
  };
}

export async function sumDevices(
  sources: Sources,
  range: facts.SiteRange,
  deviceKeys: readonly string[],
): Promise<facts.Limited<facts.DeviceTotals>> {
  const keys = [...new Set(deviceKeys)].slice(0, facts.deviceBudget.keys);
  const scope = await scopeOf(sources, range);
  const rows = await sources.engine.rows<SumRow & { device: string }>(ch`
    with ${owned(scope)} select device, ${sums} from owned where device in ${texts(keys)} group by device`);
  const found = new Map(rows.map((row) => [row.device, row]));
  return {
    items: deviceKeys.map((deviceKey) => ({ deviceKey, ...toValues(found.get(deviceKey)) })),
    sourceLimited: keys.length < new Set(deviceKeys).size,
  };
}

export async function stepDevice(
  sources: Sources,
  range: facts.SiteRange & { deviceKey: string; stepSeconds: number },
): Promise<facts.Limited<facts.DeviceStep>> {
  const scope = await scopeOf(sources, range);
  const rows = await sources.engine.rows<SumRow & { timeMs: number }>(ch`
    with ${owned(scope)}
    select ${stepMs(ch`minute`, range.stepSeconds)} as timeMs, ${sums} from owned
    where device in ${texts([range.deviceKey])} group by timeMs order by timeMs`);
  return { items: rows.map((row) => ({ timeMs: row.timeMs, ...toValues(row) })), sourceLimited: false };
}

export async function listTopAddresses(
  sources: Sources,
  range: facts.SiteRange,
  limit: number,
): Promise<facts.TopAddress[]> {
  const scope = await scopeOf(sources, range);
  const rows = await sources.engine.rows<Omit<facts.TopAddress, 'address'> & { hex: string }>(ch`
    with ${hosts(scope)}, ${strongest}
    select hex(address) as hex, segment, toFloat64(sum(best_rx)) as rxBytes, toFloat64(sum(best_tx)) as txBytes,
      toFloat64(sum(best_packets)) as packets, toUnixTimestamp(max(minute)) as lastSeenMinute
    from strongest group by address, segment
    order by rxBytes + txBytes desc, length(address), address, segment limit ${number(limit)}`);
  return rows.map(({ hex, ...row }) => ({ address: addressOf(hex), ...row }));
}
