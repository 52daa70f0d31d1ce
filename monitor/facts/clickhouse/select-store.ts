/**
 * Selection, as expressions of ClickHouse: which capture of an address and minute counts, and whose the address was.
 *
 * Nothing is joined but the captures' own minutes, of which there are few, and the segments of addresses that have one.
 */
import type { SiteRange } from '../contract/facts.ts';
import { ch, type Fragment, number, plain, second, texts } from './statement.ts';
import { type ForeignExpression, hexOf } from './verdict-store.ts';

/** Of a site, in some minutes, what is not foreign. */
export interface Scope extends SiteRange {
  foreign: ForeignExpression;
}

/** Sums of captures are limited to values that a double holds exactly. */
const limited = (column: string) => plain(`least(sum(${column}), 9007199254740991)`);

export const within = ({ siteId, fromMinute, toMinute }: SiteRange): Fragment =>
  ch`site_id = ${number(siteId)} and minute >= ${second(fromMinute)} and minute < ${second(toMinute)}`;

/** Addresses given as text, as a condition over a column. */
export const isAmong = (column: Fragment, addresses: readonly string[]): Fragment =>
  ch`${column} in (select arrayJoin(arrayMap(h -> unhex(h), ${texts(addresses.map(hexOf))})))`;

/**
 * The place of a row's capture by its name among those of the table, from the largest number down: the last thing that captures are
 * compared by. Compared as numbers, since the largest of numbers is found several times faster than the largest of lists.
 */
export const nameOrder = (table: 'capture_minutes' | 'application_facts', range: SiteRange): Fragment =>
  ch`(4294967295 - transform(toString(capture),
    (select arraySort(groupUniqArray(toString(capture))) from ${plain(table)} where ${within(range)}) as names,
    arrayEnumerate(names), 0))`;

/** `captured`: captures' minutes; rows of one window add up (NET-2.2.9). */
export const captured = (range: SiteRange): Fragment => ch`captured as (
  select minute, capture_id, any(sensor_id) as of_sensor, toString(any(capture)) as of_capture, min(vantage) as of_vantage,
    any(${nameOrder('capture_minutes', range)}) as name_order,
    least(sum(observed_ms), 60000) as observed, ${limited('packets')} as all_packets,
    ${limited('kernel_dropped')} as lost_kernel, ${limited('parser_dropped')} as lost_parser,
    ${limited('detail_truncated')} as truncated, ${limited('merged_frames')} as merged
  from capture_minutes where ${within(range)} group by minute, capture_id)`;

/** How captures are compared, the most first, as one number: bytes, time observed, the uplink, bytes received, sensor and name. */
const strengthOf = (rx: string, tx: string, uplinkFirst: string) =>
  plain(`
  ((((toUInt256(${rx} + ${tx}) * 65536 + observed) * 4 + toUInt8(${uplinkFirst})) * 9007199254740992 + ${rx}) * 4294967296
    + toUInt32(4294967295 - of_sensor)) * 4294967296 + toUInt32(name_order)`);

/**
 * `captured` and `hosts`: of each address and minute what each capture told. What has no segment itself is of the only one that
 * there was; of several it is left out.
 */
export function hosts(scope: Scope, addresses: readonly string[] | null = null): Fragment {
  const isAsked = ch`${within(scope)} and not (${scope.foreign('address')})
    and ${addresses === null ? plain('1') : isAmong(plain('address'), addresses)}`;
  return ch`${captured(scope)},
told_hosts as (
  select address, minute, capture_id, ${limited('rx_bytes')} as rx, ${limited('tx_bytes')} as tx, ${limited('packets')} as sent,
    ${limited('lan_rx_bytes')} as lan_rx, ${limited('lan_tx_bytes')} as lan_tx, ${limited('own_scan_rx_bytes')} as own_rx,
    ${limited('own_scan_tx_bytes')} as own_tx, ${limited('own_scan_packets')} as own_sent,
    (sum(dropped_rx_bytes), sum(dropped_tx_bytes), sum(dropped_rx_packets), sum(dropped_tx_packets)) as dropped, min(toString(device_key)) as device_first,
    max(toString(device_key)) as device_last, max(toString(segment)) as own
  from host_minutes where ${isAsked} group by address, minute, capture_id),
host_segments as (
  select address, minute, min(toString(segment)) as only, max(toString(segment)) as last_segment
  from host_minutes where ${isAsked} and segment != '' and (minute, capture_id) in (select minute, capture_id from captured)
  group by address, minute),
hosts as (
  select t.address as address, t.minute as minute, capture_id, if(own != '', own, only) as segment, rx, tx, sent, lan_rx, lan_tx,
    own_rx, own_tx, own_sent, dropped, if(device_first = device_last, device_first, '') as device,
    device_first != device_last as is_disputed, of_sensor, of_vantage,
    observed, all_packets, lost_kernel, lost_parser, merged, ${strengthOf('rx', 'tx', '3 - of_vantage')} as strength,
    ${strengthOf('lan_rx', 'lan_tx', '0')} as lan_strength
  from told_hosts t inner join captured using (minute, capture_id)
  left join host_segments s on s.address = t.address and s.minute = t.minute
  where own != '' or only = last_segment)`;
}

const best = (columns: Readonly<Record<string, string>>, strength: string) =>
  plain(
    Object.entries(columns)
      .map(([name, column]) => `argMax(${column}, ${strength}) as best_${name}`)
      .join(', '),
  );

/** Of what filters dropped, by sensor and direction: all of it, or what passes a condition over `x.1`, the sensor. */
const droppedSum = (direction: 'rx' | 'tx', what: 'bytes' | 'packets', condition = '1') =>
  `arraySum(x -> if(${condition}, x.${(direction === 'rx' ? 2 : 3) + (what === 'bytes' ? 0 : 2)}, 0), drops)`;
/** What the capture that counts had counted before it was dropped: on the way in behind it, on the way out at its own host's uplinks. */
const countedSum = (direction: 'rx' | 'tx', what: 'bytes' | 'packets') =>
  direction === 'rx'
    ? droppedSum(direction, what, 'x.1 != best_sensor')
    : droppedSum(direction, what, 'best_vantage = 2 and x.1 = best_sensor');
const less = (told: string, own: string, counted: string) =>
  `toInt64(least(toInt64(${counted}), toInt64(${told}) - toInt64(${own})))`;

/**
 * `strongest`: of each address, minute and segment what the capture that counts told (`told_…`), what of it was delivered (`best_…`), what
 * filters dropped (`dropped_…`), and who owned the address by all captures that know; after `hosts`.
 */
export const strongest = ch`strongest as (
  select address, minute, segment, ${best(
    {
      ...{ id: 'capture_id', sensor: 'of_sensor', vantage: 'of_vantage' },
      ...{ observed: 'observed', all_packets: 'all_packets', kernel: 'lost_kernel', parser: 'lost_parser' },
      ...{ merged: 'merged', own_rx: 'own_rx', own_tx: 'own_tx', own_packets: 'own_sent' },
    },
    'strength',
  )},
    argMax(rx, strength) as told_rx, argMax(tx, strength) as told_tx, argMax(sent, strength) as told_packets,
    groupArrayIf((of_sensor, dropped.1, dropped.2, dropped.3, dropped.4), dropped.3 + dropped.4 > 0) as drops,
    ${plain(`${less('told_rx', 'best_own_rx', countedSum('rx', 'bytes'))} as counted_rx,
    ${less('told_tx', 'best_own_tx', countedSum('tx', 'bytes'))} as counted_tx,
    ${less('told_packets', 'best_own_packets', `${countedSum('rx', 'packets')} + ${countedSum('tx', 'packets')}`)} as counted_packets,
    toUInt64(told_rx - counted_rx) as best_rx, toUInt64(told_tx - counted_tx) as best_tx,
    toUInt64(told_packets - counted_packets) as best_packets,
    ${droppedSum('rx', 'bytes')} as dropped_rx, ${droppedSum('tx', 'bytes')} as dropped_tx,
    ${droppedSum('rx', 'packets')} as dropped_rx_packets, ${droppedSum('tx', 'packets')} as dropped_tx_packets`)},
    if(max(is_disputed) = 0 and minIf(device, device != '') = max(device), max(device), '') as device_key,
    max(rx) as most_rx, max(tx) as most_tx
  from hosts group by address, minute, segment)`;

/** `strongest_lan`: the same of internal bytes, at the bridges where they saw any; after `hosts`. */
export const strongestLan = ch`strongest_lan as (
  select address, minute, segment, ${best({ lan_rx: 'lan_rx', lan_tx: 'lan_tx' }, 'lan_strength')},
    argMax(device, lan_strength) as device_key
  from (select *, max(of_vantage) over (partition by minute) as owner from hosts where lan_rx + lan_tx > 0)
  where of_vantage = owner group by address, minute, segment)`;

/** Of `strongest`: how much of the minute the capture that counts saw; null where no capture has both maxima. */
export const coverage = plain(`if(best_parser > 0 or told_rx < most_rx or told_tx < most_tx, null,
  best_observed / 60000.0 * if(best_all_packets + best_kernel > 0, best_all_packets / (best_all_packets + best_kernel), 1))`);
