/** Reads of addresses. */
import { readCertainUntil } from '#monitor/views/server-history-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { vantageOf } from '../contract/codes.ts';
import * as facts from '../contract/facts.ts';
import { findCaptureGaps, findPlaces } from '../control/gap-store.ts';
import type { Engine } from './engine-store.ts';
import { coverage, hosts, isAmong, type Scope, strongest, within } from './select-store.ts';
import { ch, number, numbers, plain, second, seconds, texts } from './statement.ts';
import { addressOf, hexOf, readForeign } from './verdict-store.ts';

/** An inventory that is older than this is taken as it is. */
const inventoryStaleSeconds = 900;
const daySeconds = 86_400;

export interface Sources {
  engine: Engine;
  db: () => Queryable;
}

/** The scope of several reads of one site. */
export async function scopeOf({ db }: Sources, range: facts.SiteRange, backSeconds = 0): Promise<Scope> {
  const fromMinute = range.fromMinute - backSeconds;
  const foreign = await readForeign(db(), { ...range, fromMinute, siteIds: [range.siteId] });
  return { siteId: range.siteId, fromMinute: range.fromMinute, toMinute: range.toMinute, foreign };
}

/** Whether a capture's rows, of this segment, are of the one that is asked for or of none that is known. */
const isOf = (range: facts.AddressRange, own: string) =>
  range.segment === undefined || own === '' || own === range.segment;

/** In the order of the ranges. */
export async function readAddresses(
  sources: Sources,
  ranges: readonly facts.AddressRange[],
): Promise<facts.AddressFacts[]> {
  const found = new Map<facts.AddressRange, Omit<facts.AddressFacts, 'gaps' | 'listening'>>();
  for (const [siteId, ofSite] of Map.groupBy(ranges, (range) => range.siteId)) {
    const told = await readTold(sources, siteId, ofSite);
    for (const [i, range] of ofSite.entries()) found.set(range, told[i]!);
  }
  const captures = ranges.map((range) => {
    const { knownCaptures, seen } = found.get(range)!;
    return [...new Set([...knownCaptures, ...seen.map((row) => row.captureId)])];
  });
  const [listening, gaps] = await Promise.all([
    findListening(sources, ranges, captures),
    findCaptureGaps(sources.db(), ranges, captures),
  ]);
  return ranges.map((range, n) => ({
    ...found.get(range)!,
    listening: listening[n]!,
    gaps: gaps.get(n) ?? [],
  }));
}

interface SightingRow extends Omit<facts.Sighting, 'ownScan' | 'dropped'> {
  hex: string;
  segment: string;
  ownRx: number;
  ownTx: number;
  ownPackets: number;
  /** As `FilteredTraffic`, in its order. */
  drops: [number, number, number, number, number, number];
}

interface SeenRow {
  hex: string;
  minute: number;
  captureId: number;
  own: string;
}

async function readTold(sources: Sources, siteId: number, ranges: readonly facts.AddressRange[]) {
  const around = {
    siteId,
    fromMinute: ranges.reduce((least, one) => Math.min(least, one.fromMinute), Number.POSITIVE_INFINITY),
    toMinute: ranges.reduce((most, one) => Math.max(most, one.toMinute), 0),
  };
  const scope = await scopeOf(sources, around, daySeconds);
  const addresses = [...new Set(ranges.map((one) => one.address))];
  const { engine } = sources;
  const inRanges = isWithin(ranges);
  const sightings = await engine.rows<SightingRow>(ch`
    with ${hosts(scope, addresses)}, ${strongest}
    select hex(address) as hex, segment, toUnixTimestamp(minute) as minute, best_id as captureId,
      toFloat64(best_rx) as rxBytes, toFloat64(best_tx) as txBytes, if(best_merged = 0, toFloat64(best_packets), null) as packets,
      toFloat64(best_observed) as observedMs, ${coverage} as coverage, toFloat64(best_own_rx) as ownRx,
      toFloat64(best_own_tx) as ownTx, toFloat64(best_own_packets) as ownPackets,
      arrayMap(x -> toFloat64(x), [toInt64(dropped_rx), toInt64(dropped_tx), toInt64(dropped_rx_packets), toInt64(dropped_tx_packets),
        counted_rx + counted_tx, counted_packets]) as drops
    from strongest where ${inRanges} order by minute, rxBytes + txBytes desc, segment`);
  const seen = await engine.rows<SeenRow>(ch`
    select hex(address) as hex, toUnixTimestamp(minute) as minute, capture_id as captureId, max(toString(segment)) as own
    from host_minutes where ${within(scope)} and ${isAmong(plain('address'), addresses)} and not (${scope.foreign('address')})
      and ${inRanges}
    group by address, host_minutes.minute, captureId order by minute, captureId`);
  const known = await findLastCaptures(engine, scope, ranges);
  const sightingsOf = Map.groupBy(sightings, (row) => row.hex.toLowerCase());
  const seenOf = Map.groupBy(seen, (row) => row.hex.toLowerCase());
  return ranges.map((range, n) => {
    const hex = hexOf(range.address);
    const inRange = (row: { minute: number }) =>
      row.minute >= range.fromMinute && row.minute < range.toMinute;
    return {
      sightings: firstOfEachMinute(
        (sightingsOf.get(hex) ?? []).filter(
          (row) => inRange(row) && (range.segment === undefined || row.segment === range.segment),
        ),
      ),
      seen: (seenOf.get(hex) ?? [])
        .filter((row) => inRange(row) && isOf(range, row.own))
        .map(({ minute, captureId }) => ({ minute, captureId })),
      knownCaptures: known[n]!,
    };
  });
}

/** Rows of an address in one of the ranges about it: of many ranges of a day each, what lies between them is left out. */
function isWithin(ranges: readonly facts.AddressRange[]) {
  if (ranges.length === 1) return plain('1');
  return ch`arrayExists((a, f, t) -> unhex(a) = address and f <= toUnixTimestamp(minute) and t > toUnixTimestamp(minute),
    ${texts(ranges.map((one) => hexOf(one.address)))}, ${seconds(ranges.map((one) => one.fromMinute))},
    ${seconds(ranges.map((one) => one.toMinute))})`;
}

/** Of several segments of a minute the strongest, which stands first. */
function firstOfEachMinute(rows: readonly SightingRow[]): facts.Sighting[] {
  return rows
    .filter((row, i) => row.minute !== rows[i - 1]?.minute)
    .map(({ hex: _, segment: __, ownRx, ownTx, ownPackets, drops, ...sighting }) => {
      const [rxBytes, txBytes, rxPackets, txPackets, countedBytes, countedPackets] = drops;
      return {
        ...sighting,
        ...facts.ownScanOf(ownRx, ownTx, ownPackets),
        ...facts.droppedOf({ rxBytes, txBytes, rxPackets, txPackets, countedBytes, countedPackets }),
      };
    });
}

/** The captures that saw each address in its last minute before the range, at most a day earlier. */
async function findLastCaptures(
  engine: Engine,
  scope: Scope,
  ranges: readonly facts.AddressRange[],
): Promise<number[][]> {
  const hexes = texts(ranges.map((one) => hexOf(one.address)));
  const rows = await engine.rows<{ n: number; captures: number[] }>(ch`
    with asked as (
      select tupleElement(given, 1) as n, unhex(tupleElement(given, 2)) as of_address, tupleElement(given, 3) as until,
        tupleElement(given, 4) as any_segment, tupleElement(given, 5) as of_segment
      from (select arrayJoin(arrayZip(${numbers(ranges.map((_, n) => n))}, ${hexes}, ${seconds(ranges.map((one) => one.fromMinute))},
        ${numbers(
          ranges.map((one) => (one.segment === undefined ? 1 : 0)),
          'UInt8',
        )}, ${texts(ranges.map((one) => one.segment ?? ''))})) as given))
    select n, groupArray(capture_id) as captures
    from (
      select n, minute, capture_id
      from host_minutes inner join asked on address = of_address
      where site_id = ${number(scope.siteId)} and minute >= ${second(scope.fromMinute - daySeconds)}
        and minute < ${second(scope.toMinute)}
        and address in (select arrayJoin(arrayMap(h -> unhex(h), ${hexes}))) and not (${scope.foreign('address')})
        and toUnixTimestamp(minute) < until and toUnixTimestamp(minute) + ${number(daySeconds)} >= until
      group by n, minute, capture_id, any_segment, of_segment
      having any_segment = 1 or max(toString(segment)) in ('', of_segment)
      order by n, minute, capture_id)
    group by n, minute order by n, minute desc limit 1 by n`);
  const found = new Map(rows.map((row) => [row.n, row.captures.toSorted((a, b) => a - b)]));
  return ranges.map((_, n) => found.get(n) ?? []);
}

/**
 * When captures listened, leaving out minutes in which the server was not on the capture's node alone: what is not certain by the
 * next import is waited for, unless the inventory is old.
 */
async function findListening(
  { engine, db }: Sources,
  ranges: readonly facts.AddressRange[],
  captures: readonly (readonly number[])[],
): Promise<facts.Listening[][]> {
  const ids = [...new Set(captures.flat())];
  if (ids.length === 0) return ranges.map(() => []);
  // Read before: an import in between makes places newer than this time, which is then too early and never too late.
  const until = await readCertainUntil(db(), inventoryStaleSeconds);
  const places = await findPlaces(db(), ranges, captures, until);
  const asked = ranges.filter((_, n) => captures[n]!.length > 0);
  const from = asked.reduce((least, one) => Math.min(least, one.fromMinute), Number.POSITIVE_INFINITY);
  const to = asked.reduce((most, one) => Math.max(most, one.toMinute), 0);
  const rows = await engine.rows<facts.Listening>(ch`
    select toUnixTimestamp(minute) as minute, capture_id as captureId, toFloat64(least(sum(observed_ms), 60000)) as observedMs,
      if(sum(parser_dropped) > 0, null, observedMs / 60000.0 * if(sum(packets) + sum(kernel_dropped) > 0,
        sum(packets) / (sum(packets) + sum(kernel_dropped)), 1)) as coverage
    from capture_minutes
    where site_id in ${numbers([...new Set(asked.map((one) => one.siteId))])} and capture_minutes.minute >= ${second(from)}
      and capture_minutes.minute < ${second(to)} and capture_id in ${numbers(ids)}
    group by capture_minutes.minute, captureId order by minute, captureId`);
  const byCapture = Map.groupBy(rows, (row) => row.captureId);
  return ranges.map((range, n) => {
    const of = captures[n]!.flatMap((id) => {
      const mayNotSay = (places.get(n) ?? []).filter((place) => place.captureId === id);
      return (byCapture.get(id) ?? [])
        .filter(({ minute }) => minute >= range.fromMinute && minute < range.toMinute)
        .filter(
          ({ minute }) =>
            !mayNotSay.some((place) => place.fromSecond < minute + 60 && place.toSecond > minute),
        );
    });
    return of.sort((a, b) => a.minute - b.minute || a.captureId - b.captureId);
  });
}

/** Every capture's row, the chosen one of each minute first. */
export async function explainAddress(
  sources: Sources,
  range: facts.AddressRange,
): Promise<Omit<facts.CaptureRow, 'reason'>[]> {
  const scope = await scopeOf(sources, range);
  const segment = range.segment ?? '';
  const any = number(range.segment === undefined ? 1 : 0, 'UInt8');
  const rows = await sources.engine.rows<
    Omit<facts.CaptureRow, 'minute' | 'reason' | 'role' | 'isChosen' | 'isForeign'> & {
      at: number;
      vantage: number;
      chosen: number;
      foreign: number;
    }
  >(ch`
    with ${hosts(scope, [range.address])}, ${strongest},
    chosen as (select minute, argMin(best_id, (-(best_rx + best_tx), segment)) as chosen_id
      from strongest where ${any} = 1 or segment = ${texts([segment])}[1] group by minute),
    rows as (
      select minute, capture_id, toUInt8(${scope.foreign('address')}) as foreign, sum(rx_bytes) as rx, sum(tx_bytes) as tx,
        sum(packets) as sent, if(min(toString(device_key)) = max(toString(device_key)), min(toString(device_key)), '') as device
      from host_minutes where ${within(range)} and ${isAmong(plain('address'), [range.address])}
      group by minute, capture_id, foreign
      having ${any} = 1 or max(toString(segment)) in ('', ${texts([segment])}[1]))
    select toUnixTimestamp(r.minute) as at, r.capture_id as captureId, c.of_sensor as sensorId, c.of_capture as capture,
      c.of_vantage as vantage, toFloat64(r.rx) as rxBytes, toFloat64(r.tx) as txBytes, toFloat64(r.sent) as packets,
      r.device as deviceKey, toFloat64(c.observed) as observedMs, toFloat64(c.lost_kernel) as kernelDropped,
      toFloat64(c.lost_parser) as parserDropped, toFloat64(c.truncated) as detailTruncated, toFloat64(c.merged) as mergedFrames,
      h.chosen_id = r.capture_id and r.foreign = 0 as chosen, r.foreign as foreign
    from rows r inner join captured c on c.minute = r.minute and c.capture_id = r.capture_id
    left join chosen h on h.minute = r.minute
    order by at, h.chosen_id != r.capture_id, r.foreign, rxBytes + txBytes desc, sensorId, capture`);
  return rows.map(({ at, vantage, chosen, foreign, ...row }) => ({
    minute: at,
    ...row,
    role: vantageOf(vantage),
    isChosen: chosen === 1,
    isForeign: foreign === 1,
  }));
}

/** Captures that told of addresses in these minutes, and may. */
export async function listSpeakers(
  sources: Sources,
  siteId: number,
  asked: readonly facts.AddressMinute[],
): Promise<facts.Speaker[]> {
  if (asked.length === 0) return [];
  const minutes = asked.map(({ minute }) => minute);
  const scope = await scopeOf(sources, {
    siteId,
    fromMinute: minutes.reduce((a, b) => Math.min(a, b)),
    toMinute: minutes.reduce((a, b) => Math.max(a, b)) + 60,
  });
  const rows = await sources.engine.rows<{ hex: string; at: number; captureId: number }>(ch`
    select distinct hex(address) as hex, toUnixTimestamp(minute) as at, capture_id as captureId from host_minutes
    where ${within(scope)} and ${isAmong(plain('address'), [...new Set(asked.map(({ address }) => address))])}
      and not (${scope.foreign('address')})
      and (address, toUnixTimestamp(minute)) in (select arrayJoin(arrayZip(
        arrayMap(h -> unhex(h), ${texts(asked.map(({ address }) => hexOf(address)))}), ${seconds(minutes)})))`);
  return rows.map(({ hex, at, captureId }) => ({ address: addressOf(hex), minute: at, captureId }));
}

/** What sensors told of addresses that servers of other nodes had, the most bytes first. */
export async function listForeign(
  sources: Sources,
  range: facts.SiteRange & { sensorId: number | null },
  limit: number,
): Promise<facts.ForeignAddress[]> {
  const scope = await scopeOf(sources, range);
  const rows = await sources.engine.rows<Omit<facts.ForeignAddress, 'address'> & { hex: string }>(ch`
    select sensor_id as sensorId, hex(address) as hex, toFloat64(uniqExact(minute)) as minutes, toFloat64(sum(rx_bytes)) as rxBytes,
      toFloat64(sum(tx_bytes)) as txBytes, toUnixTimestamp(max(minute)) as lastMinute
    from host_minutes where ${within(scope)} and ${scope.foreign('address')}
      and ${range.sensorId === null ? plain('1') : ch`sensor_id = ${number(range.sensorId)}`}
    group by sensorId, address order by rxBytes + txBytes desc, sensorId, length(address), address limit ${number(limit)}`);
  return rows.map(({ hex, ...row }) => ({ ...row, address: addressOf(hex) }));
}
