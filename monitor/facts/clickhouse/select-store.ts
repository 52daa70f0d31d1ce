/**
 * Selection, as expressions of ClickHouse: which capture of an address and minute counts, and whose the address was.
 *
 * Captures' rows of an address and minute are gathered into one list, `told`, and the rules are applied to lists: nothing is joined
 * but the captures' own minutes, of which there are few.
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

/** `captured`: captures' minutes; rows of one window add up (NET-2.2.9). */
export const captured = (range: SiteRange): Fragment => ch`captured as (
  select minute, capture_id, any(sensor_id) as of_sensor, toString(any(capture)) as of_capture, min(vantage) as of_vantage,
    least(sum(observed_ms), 60000) as observed, ${limited('packets')} as all_packets,
    ${limited('kernel_dropped')} as lost_kernel, ${limited('parser_dropped')} as lost_parser,
    ${limited('detail_truncated')} as truncated, ${limited('merged_frames')} as merged
  from capture_minutes where ${within(range)} group by minute, capture_id)`;

/** One capture's sums of an address and minute. `own` is its segment, `seg` the one that it belongs to. */
const toldType = `Tuple(id UInt32, sensor UInt32, capture String, rx Int64, tx Int64, packets Int64, lan_rx Int64, lan_tx Int64,
  device String, disputed UInt8, own String, vantage UInt8, observed Int64, all_packets UInt64, kernel UInt64, parser UInt64,
  truncated UInt64, merged UInt64)`;

/** `captured` and `hosts`: of each address and minute what captures told, those of an unknown segment left out. */
export const hosts = (
  scope: Scope,
  addresses: readonly string[] | null = null,
): Fragment => ch`${captured(scope)},
told_hosts as (
  select address, minute, capture_id, ${limited('rx_bytes')} as rx, ${limited('tx_bytes')} as tx, ${limited('packets')} as sent,
    ${limited('lan_rx_bytes')} as lan_rx, ${limited('lan_tx_bytes')} as lan_tx, min(toString(device_key)) as device_first,
    max(toString(device_key)) as device_last, max(toString(segment)) as own, minIf(toString(segment), segment != '') as first_segment
  from host_minutes
  where ${within(scope)} and not (${scope.foreign('address')})
    and ${addresses === null ? plain('1') : isAmong(plain('address'), addresses)}
  group by address, minute, capture_id),
hosts as (
  select address, minute, minIf(first_segment, first_segment != '') as only, max(own) as last_segment,
    arrayFilter(c -> c.own != '' or only = last_segment, groupArray(cast(tuple(capture_id, of_sensor, of_capture, rx, tx, sent,
      lan_rx, lan_tx, if(device_first = device_last, device_first, ''), device_first != device_last, own, of_vantage, observed,
      all_packets, lost_kernel, lost_parser, truncated, merged), ${plain(`'${toldType}'`)}))) as told
  from told_hosts inner join captured using (minute, capture_id)
  group by address, minute)`;

const segmentOf = (one: string) => plain(`if(${one}.own != '', ${one}.own, only)`);

/**
 * `strongest`: of each address, minute and segment the capture that counts as `best`, and who owned the address by all captures
 * that know; after `hosts`.
 */
export const strongest = ch`strongest as (
  select address, minute, segment, arraySort(c -> (-(c.rx + c.tx), -c.observed, c.vantage, -c.rx, c.sensor, c.capture), of)[1] as best,
    arrayDistinct(arrayFilter(d -> d != '', arrayMap(c -> c.device, of))) as devices,
    if(length(devices) = 1 and not arrayExists(c -> c.disputed = 1, of), devices[1], '') as device_key,
    arrayMax(c -> c.rx, of) as most_rx, arrayMax(c -> c.tx, of) as most_tx
  from (select address, minute, segment, arrayFilter(c -> ${segmentOf('c')} = segment, told) as of
    from (select address, minute, told, only, arrayJoin(arrayDistinct(arrayMap(c -> ${segmentOf('c')}, told))) as segment from hosts)))`;

/** `strongest_lan`: the same of internal bytes, at the bridges where they saw any; after `hosts`. */
export const strongestLan = ch`strongest_lan as (
  select address, minute, segment, arraySort(c -> (-(c.lan_rx + c.lan_tx), -c.observed, -c.lan_rx, c.sensor, c.capture), of)[1] as best,
    best.device as device_key
  from (select address, minute, segment, arrayFilter(c -> ${segmentOf('c')} = segment and c.vantage = owner, internal) as of
    from (select address, minute, only, internal, owner, arrayJoin(arrayDistinct(arrayMap(c -> ${segmentOf('c')}, internal))) as segment
      from (select address, minute, only, internal, max(arrayMax(c -> c.vantage, internal)) over (partition by minute) as owner
        from (select address, minute, only, arrayFilter(c -> c.lan_rx + c.lan_tx > 0, told) as internal from hosts)
        where notEmpty(internal))))
  where notEmpty(of))`;

/** Of `strongest`: how much of the minute the capture that counts saw; null where no capture has both maxima. */
export const coverage = plain(`if(best.parser > 0 or best.rx < most_rx or best.tx < most_tx, null,
  best.observed / 60000.0 * if(best.all_packets + best.kernel > 0, best.all_packets / (best.all_packets + best.kernel), 1))`);
