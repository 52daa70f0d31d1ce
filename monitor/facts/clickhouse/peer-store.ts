/** Reads of peer networks, from what captures counted of each network in each minute. */
import type * as facts from '../contract/facts.ts';
import {
  hoursOf,
  type PeerList,
  type PeerOfNetwork,
  type PeerUse,
  peerNetworkOf,
} from '../contract/peer-networks.ts';
import type { Sources } from './address-store.ts';
import { judgingOf } from './application-store.ts';
import { owners } from './judge-store.ts';
import { isInNetworks } from './prefix-match.ts';
import { isAmong, within } from './select-store.ts';
import { ch, type Fragment, number, plain, text } from './statement.ts';
import { addressOf } from './verdict-store.ts';

interface PeerRow {
  hex: string;
  local: string;
  segment: string;
  inboundBytes: number;
  outboundBytes: number;
  packets: number;
  minutes: number;
  directions: number[];
  firstHour: number;
  lastHour: number;
  total: number;
  allInbound: number;
  allOutbound: number;
  allPackets: number;
}

/**
 * Hours that came from PostgreSQL with a move, which keeps no pairs and no captures of them: rows of no capture, one for each of
 * their minutes with everything in the first. They count, and what comes later for a minute that they know does not, as in PostgreSQL.
 */
const hours = (range: facts.SiteRange): Fragment => ch`
  select moved.minute + toIntervalMinute(nth) as minute, direction, toString(local) as local, toString(segment) as segment, network,
    if(nth = nths[1], moved.inbound_bytes, 0) as inbound_bytes, if(nth = nths[1], moved.outbound_bytes, 0) as outbound_bytes,
    if(nth = nths[1], moved.packets, 0) as packets
  from (select *, bitPositionsToArray(minutes) as nths from peer_minutes where ${within(range)} and capture_id = 0) moved
  array join nths as nth`;

async function readPeers(
  sources: Sources,
  range: facts.SiteRange,
  limit: number,
  of: { rows: Fragment; owned: Fragment; key: string },
): Promise<PeerList<PeerRow>> {
  const judging = await judgingOf(sources, hoursOf(range));
  const hour = (read: 'min' | 'max') => plain(`intDiv(toUnixTimestamp(${read}(minute)), 3600) * 3600`);
  const key = plain(of.key);
  const rows = await sources.engine.rows<PeerRow>(ch`
    with ${owners(judging)},
    hours as (${hours(judging)}),
    counted as (
      select minute, direction, local, network, inbound_bytes, outbound_bytes, packets, of_segment
      from (
        select p.minute as minute, p.direction as direction, p.local as local, network, inbound_bytes, outbound_bytes, packets,
          o.segment as of_segment
        from (select minute, direction, local, capture_id, vantage, network, inbound_bytes, outbound_bytes, packets
          from peer_minutes where ${within(judging)} and capture_id != 0 and not (${judging.foreign('local')}) and ${of.rows}
            and (minute, direction, local) not in (select minute, direction, local from hours)) p
        inner join owners o on o.minute = p.minute and o.direction = p.direction and o.local = p.local
          and o.capture_id = p.capture_id and o.vantage = p.vantage
        union all
        select minute, direction, local, network, inbound_bytes, outbound_bytes, packets, segment as of_segment
        from hours where ${of.rows})
      where ${of.owned}),
    peers as (
      select ${key}, network, sum(inbound_bytes) as inbound, sum(outbound_bytes) as outbound, sum(packets) as sent,
        uniqExact(minute) as several, arraySort(groupUniqArray(direction)) as directions, ${hour('min')} as first, ${hour('max')} as last
      from counted group by ${key}, network)
    select hex(network) as hex, hex(of_local) as local, segment, toFloat64(inbound) as inboundBytes, toFloat64(outbound) as outboundBytes,
      toFloat64(sent) as packets, toFloat64(several) as minutes, directions, first as firstHour, last as lastHour,
      toFloat64(count() over ()) as total, toFloat64(sum(inbound) over ()) as allInbound,
      toFloat64(sum(outbound) over ()) as allOutbound, toFloat64(sum(sent) over ()) as allPackets
    from (select *, ${plain(of.key === '1' ? "'' as of_local, '' as segment" : 'local as of_local, of_segment as segment')} from peers)
    order by inboundBytes + outboundBytes desc, length(of_local), of_local, segment, length(network), network
    limit ${number(limit)}`);
  const first = rows[0];
  return {
    items: rows,
    total: first?.total ?? 0,
    inboundBytes: first?.allInbound ?? 0,
    outboundBytes: first?.allOutbound ?? 0,
    packets: first?.allPackets ?? 0,
  };
}

function toUse({ hex, inboundBytes, outboundBytes, packets, minutes, directions, ...row }: PeerRow): PeerUse {
  return {
    network: peerNetworkOf(addressOf(hex))!,
    ...{ inboundBytes, outboundBytes, packets, minutes },
    openedBy: directions.length > 1 ? 'both' : directions[0] === 1 ? 'address' : 'network',
    firstHour: row.firstHour,
    lastHour: row.lastHour,
  };
}

export async function listPeerNetworks(
  sources: Sources,
  range: facts.AddressRange,
  limit: number,
): Promise<PeerList<PeerUse>> {
  const list = await readPeers(sources, range, limit, {
    rows: isAmong(plain('local'), [range.address]),
    owned: range.segment === undefined ? plain('1') : ch`of_segment in ('', ${text(range.segment)})`,
    key: '1',
  });
  return { ...list, items: list.items.map(toUse) };
}

export async function findPeers(
  sources: Sources,
  range: facts.SiteRange & { prefix: string },
  limit: number,
): Promise<PeerList<PeerOfNetwork>> {
  const list = await readPeers(sources, range, limit, {
    rows: isInNetworks(plain('network'), [range.prefix]),
    owned: plain('1'),
    key: 'local, of_segment',
  });
  return {
    ...list,
    items: list.items.map((row) => ({ address: addressOf(row.local), segment: row.segment, ...toUse(row) })),
  };
}
