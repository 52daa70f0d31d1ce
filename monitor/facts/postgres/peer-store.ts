/** Reads of peer networks: of hours that are rolled up, and of the others as the roll-up would make them. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AddressRange } from '../contract/facts.ts';
import type { PeerList, PeerOfNetwork, PeerUse } from '../contract/peer-networks.ts';
import { peerHours } from './peer-hour-store.ts';
import { type Coverage, inHours } from './span-store.ts';

interface Reading {
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
  { local, only, by, shown, order, limit }: Reading,
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
    select ${shown} network::text as network, inbound_bytes::float8 as "inboundBytes", outbound_bytes::float8 as "outboundBytes",
      packets::float8 as packets, minutes::float8 as minutes,
      case when first <> last then 'both' when first = 1 then 'address' else 'network' end as "openedBy",
      extract(epoch from first_hour)::float8 as "firstHour", extract(epoch from last_hour)::float8 as "lastHour",
      (sum(inbound_bytes) over ())::float8 as "sumInbound", (sum(outbound_bytes) over ())::float8 as "sumOutbound",
      (sum(packets) over ())::float8 as "sumPackets", (count(*) over ())::int as total
    from listed order by listed.inbound_bytes + listed.outbound_bytes desc, ${order} limit ${limit}`.execute(
    db,
  );
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
