/** Who used one application, and whose addresses were. */
import type * as facts from '../contract/facts.ts';
import type { Sources } from './address-store.ts';
import { judgingOf } from './application-store.ts';
import { counted, type Judging, judged, judgedPairs, ofKey, owners } from './judge-store.ts';
import { youngPart } from './pair-store.ts';
import { hosts, strongest } from './select-store.ts';
import { ch, type Fragment, joined, number, plain } from './statement.ts';
import { addressOf } from './verdict-store.ts';

const listMax = 10;
const pairsMax = 5;

/** Who used one application, from the pairs, or where none is kept from the facts (fallback attribution, NET-2.2.2). */
export async function readApplication(
  sources: Sources,
  range: facts.ViewRange & facts.ApplicationKey,
): Promise<facts.ApplicationDetail> {
  const { engine, db } = sources;
  const judging = await judgingOf(sources, range);
  const young = await youngPart(db(), judging);
  const pairs = judgedPairs(young, ofKey(range));
  const sums = plain('toInt64(max(owns)) as known, toInt64(sumIf(inbound + outbound, owns)) as bytes');
  const [found] = await engine.rows<{ pairs: number }>(
    ch`select toFloat64(count()) as pairs from endpoint_pairs where ${counted(young)} and ${ofKey(range)}`,
  );
  const isFallback = found!.pairs === 0;
  // What pairs tell of is their own time, not all of the range.
  const of = isFallback ? judging : young;
  const own = isFallback ? judged(judging, ofKey(range)) : pairs;
  const list = (columns: string, order: string, max: number, more: Fragment = plain('')) => ch`
    select *, toFloat64(count() over ()) as several from (select ${plain(columns)}, ${sums} from judged_pairs ${more} group by ${plain(
      columns,
    )}) order by known desc, bytes desc, ${plain(order)} limit ${number(max)}`;
  interface Entry {
    several: number;
    known: number;
    bytes: number;
    a: string;
    b: string;
  }
  const read = (part: Fragment, hexes: string) =>
    isFallback
      ? Promise.resolve([])
      : engine.rows<Entry>(ch`with ${owners(young)}, ${pairs}
        select ${plain(hexes)}, several, known, toFloat64(bytes) as bytes from (${part})`);
  const destinations = await read(
    list('server', 'length(server), server', listMax),
    "hex(server) as a, '' as b",
  );
  const ways = await read(
    list('client, server', 'length(client), client, length(server), server', pairsMax),
    'hex(client) as a, hex(server) as b',
  );
  const devices = await engine.rows<Entry>(ch`
    with ${joined([owners(of), own, ownedAt(of)], ', ')},
    ends as (
      select o.device as end_device, if(end_device = '', j.local, '') as end_address, ${sums}
      from ${plain(isFallback ? 'judged' : 'judged_pairs')} j
      left join owned_at o on o.address = j.local and o.minute = j.minute and o.segment = j.segment
      where j.local != '' group by end_device, end_address)
    select end_device as a, hex(end_address) as b, known, toFloat64(bytes) as bytes, toFloat64(count() over ()) as several
    from ends order by known desc, ends.bytes desc, end_device = '', end_device, length(end_address), end_address
    limit ${number(listMax)}`);
  const bytesOf = (row: Entry) => (row.known === 1 ? row.bytes : null);
  return {
    destinations: destinations.map((row) => ({ address: addressOf(row.a), bytes: bytesOf(row) })),
    destinationCount: destinations[0]?.several ?? 0,
    devices: devices.map((row) => ({
      deviceKey: row.a || null,
      address: row.b === '' ? null : addressOf(row.b),
      bytes: bytesOf(row),
    })),
    deviceCount: devices[0]?.several ?? 0,
    pairs: ways.map((row) => ({ client: addressOf(row.a), server: addressOf(row.b), bytes: bytesOf(row) })),
    pairCount: ways[0]?.several ?? 0,
    isFallback,
  };
}

/**
 * `owned_at`: whose addresses were, minute by minute, at each one's strongest capture. What has no segment itself is of the only one
 * that there was. It reads `strongest` once: ClickHouse plans and reads a named part again wherever it is named.
 */
export const ownedAt = (judging: Judging): Fragment => ch`${hosts(judging)}, ${strongest},
owned_at as (
  select address, minute, tupleElement(owner, 1) as segment, tupleElement(owner, 2) as device
  from (select address, minute, groupArray((segment, device_key)) as found,
      arrayJoin(if(length(found) = 1 and tupleElement(found[1], 1) != '', [found[1], ('', tupleElement(found[1], 2))], found)) as owner
    from strongest where device_key != '' group by address, minute))`;
