/** Reads of peer networks: of hours that are rolled up, and of the others as the roll-up would make them. */
import { type RawBuilder, sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AddressRange } from '../contract/facts.ts';
import { type PeerList, type PeerOfNetwork, type PeerUse, peerLengths } from '../contract/peer-networks.ts';
import { type Judging, judgedOwners, judgedPairs } from './judge-store.ts';
import { type Coverage, inHours, inSpans, type Span, uniteSpans } from './span-store.ts';

interface PeerQuery {
  /** Null: all local addresses. */
  local: string | null;
  only: RawBuilder<unknown>;
  /** Columns of one row of the list, and what they are sorted by after their bytes. */
  by: RawBuilder<unknown>;
  shown: RawBuilder<unknown>;
  order: RawBuilder<unknown>;
  limit: number;
}

interface Row extends PeerUse {
  /** Of lists of addresses only. */
  address?: string;
  segment?: string;
  sumInbound: number;
  sumOutbound: number;
  sumPackets: number;
  total: number;
}

type Listed = Omit<Row, 'sumInbound' | 'sumOutbound' | 'sumPackets' | 'total'>;

async function readPeers(
  db: Queryable,
  { siteId, hours, judged, unjudged, pairs }: Coverage,
  { local, only, by, shown, order, limit }: PeerQuery,
): Promise<PeerList<Listed>> {
  const ofLocal = local === null ? sql`true` : sql`local = ${local}::inet`;
  const columns = sql`hour, direction, local, segment, network, inbound_bytes, outbound_bytes, packets, minutes`;
  const sums = sql`sum(inbound_bytes) as inbound_bytes, sum(outbound_bytes) as outbound_bytes, sum(packets) as packets`;
  const { rows } = await sql<Row>`
    with ${peerHours({ siteId, judged, unjudged, pairs, local })},
    pieces as (
      select ${columns} from peer_network_hours where site_id = ${siteId} and ${inHours(hours)} and ${ofLocal} and ${only}
      union all select ${columns} from peers where ${only}),
    by_hour as (
      select hour, ${by}, ${sums}, bit_or(minutes) as minutes, min(direction) as first, max(direction) as last
      from pieces group by hour, ${by}),
    listed as (
      select ${by}, ${sums}, sum(bit_count(minutes::bit(64))) as minutes, min(first) as first, max(last) as last,
        min(hour) as first_hour, max(hour) as last_hour
      from by_hour group by ${by})
    select ${shown} network::text as network, inbound_bytes::float8 as inbound_bytes, outbound_bytes::float8 as outbound_bytes,
      packets::float8 as packets, minutes::float8 as minutes,
      case when first <> last then 'both' when first = 1 then 'address' else 'network' end as opened_by,
      extract(epoch from first_hour)::float8 as first_hour, extract(epoch from last_hour)::float8 as last_hour,
      (sum(inbound_bytes) over ())::float8 as sum_inbound, (sum(outbound_bytes) over ())::float8 as sum_outbound,
      (sum(packets) over ())::float8 as sum_packets, (count(*) over ())::int as total
    from listed order by listed.inbound_bytes + listed.outbound_bytes desc, ${order}
    limit ${limit}`.execute(db);
  const first = rows[0];
  return {
    items: rows.map(
      ({ sumInbound: _in, sumOutbound: _out, sumPackets: _packets, total: _all, ...row }) => row,
    ),
    total: first?.total ?? 0,
    inboundBytes: first?.sumInbound ?? 0,
    outboundBytes: first?.sumOutbound ?? 0,
    packets: first?.sumPackets ?? 0,
  };
}

export function listPeerNetworks(
  db: Queryable,
  coverage: Coverage,
  { address, segment }: Pick<AddressRange, 'address' | 'segment'>,
  limit: number,
): Promise<PeerList<PeerUse>> {
  return readPeers(db, coverage, {
    local: address,
    only: segment === undefined ? sql`true` : sql`segment in ('', ${segment})`,
    by: sql`network`,
    shown: sql``,
    order: sql`listed.network`,
    limit,
  });
}

export async function findPeers(
  db: Queryable,
  coverage: Coverage,
  prefix: string,
  limit: number,
): Promise<PeerList<PeerOfNetwork>> {
  const found = await readPeers(db, coverage, {
    local: null,
    only: sql`network <<= ${prefix}::cidr`,
    by: sql`local, segment, network`,
    shown: sql`host(local) as address, segment,`,
    order: sql`local, segment collate "C", listed.network`,
    limit,
  });
  return found as PeerList<PeerOfNetwork>;
}

// Peer networks of an hour: made of judged pairs while the hour has all of them, and of what arrived after that. The same
// expression makes what is kept of an hour and what is read of one that is not rolled up.

/** The hour of this column has all of its pairs; `svc_now` is the transaction's, so one transaction has one answer. */
const hasPairs = (hour: RawBuilder<unknown>) => sql`${hour} >= svc_now() - ${sql.lit(kept.pairs)}::interval`;

const networkOf = (address: RawBuilder<unknown>) =>
  sql`network(set_masklen(${address}, case family(${address}) when 4 then ${sql.lit(peerLengths[4])} else ${sql.lit(peerLengths[6])} end))`;

const hourOf = sql`date_trunc('hour', minute, 'UTC')`;
const minuteBit = sql`(1::bigint << extract(minute from minute at time zone 'UTC')::int)`;
const key = sql`hour, direction, local, segment, network`;
const columns = sql`${key}, inbound_bytes, outbound_bytes, packets, minutes, is_late`;

/** What to make peer networks of: whole hours, of which `pairs` are the minutes young enough for pairs. */
export interface PeerHours extends Pick<Judging, 'siteId' | 'judged' | 'unjudged'> {
  pairs: Pick<Judging, 'judged' | 'unjudged'>;
  /** Null: all local addresses. */
  local: string | null;
}

/** `peers`: rows as the table has them. */
export function peerHours({ siteId, judged, unjudged, pairs, local }: PeerHours): RawBuilder<unknown> {
  const of = { siteId, direction: null };
  const spans: Span[] = uniteSpans(judged, unjudged);
  const ofLocal = local === null ? sql`true` : sql`local = ${local}::inet`;
  const peer = sql`(case direction when 2 then client else server end)`;
  return sql`${judgedOwners({ ...of, judged, unjudged })}, ${judgedPairs({ ...of, ...pairs })},
    of_pairs as (
      select ${hourOf} as hour, direction, local, segment, ${networkOf(peer)} as network, minute,
        case direction when 2 then client_bytes else server_bytes end as inbound_bytes,
        case direction when 2 then server_bytes else client_bytes end as outbound_bytes, packets
      from judged_pairs where owns and direction in (1, 2) and ${ofLocal} and ${hasPairs(hourOf)}),
    known as materialized (
      select ${key}, sum(inbound_bytes) as inbound_bytes, sum(outbound_bytes) as outbound_bytes, sum(packets) as packets,
        bit_or(${minuteBit}) as minutes, false as is_late
      from of_pairs group by ${key}
      union all select ${columns} from peer_network_hours
      where site_id = ${siteId} and ${inSpans(spans, 'hour')} and not is_late and not ${hasPairs(sql`hour`)} and ${ofLocal}),
    known_minutes as (
      select hour, direction, local, bit_or(minutes) as minutes from known group by hour, direction, local),
    late as (
      select ${hourOf} as hour, direction, local, coalesce(o.segment, l.segment) as segment, minute, peer, inbound_bytes,
        outbound_bytes, packets
      from late_peer_minutes l join owners o using (minute, direction, local, capture_id, vantage)
      where l.site_id = ${siteId} and ${inSpans(spans)} and not l.is_foreign and ${ofLocal}),
    peers as (
      select ${columns} from known
      union all select hour, direction, local, segment, ${networkOf(sql`peer`)}, sum(inbound_bytes), sum(outbound_bytes),
        sum(packets), bit_or(${minuteBit}), true
      from late left join known_minutes k using (hour, direction, local)
      where coalesce(k.minutes, 0) & ${minuteBit} = 0
      group by hour, direction, local, segment, 5)`;
}

/** Makes an hour's peer networks anew, of judged minutes; what was made of pairs that are no longer kept stays. */
export async function recomputePeers(trx: Queryable, siteId: number, hour: number): Promise<void> {
  const spans = [{ from: hour, to: hour + 3600 }];
  const judging = { judged: spans, unjudged: [] };
  const isMadeAnew = sql`(is_late or ${hasPairs(sql`hour`)})`;
  // One statement would read what it deletes.
  await sql`delete from peer_network_hours
    where site_id = ${siteId} and hour = to_timestamp(${hour}::float8) and ${isMadeAnew}`.execute(trx);
  await sql`
    with ${peerHours({ siteId, ...judging, pairs: judging, local: null })}
    insert into peer_network_hours (site_id, ${columns})
    select ${siteId}::bigint, ${columns} from peers where ${isMadeAnew} order by local, network`.execute(trx);
}
