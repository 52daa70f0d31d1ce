/** Networks of peers of captures' minutes, made of exact pairs in PostgreSQL; `contract/sum-peers.ts` says the same of uploads. */
import { type RawBuilder, sql } from 'kysely';
import { peerLengths } from '../contract/peer-networks.ts';

const peer = sql`case direction when 2 then client else server end`;
const network = sql`host(network(set_masklen(${peer}, case family(${peer}) when 4 then ${sql.lit(peerLengths[4])} else ${sql.lit(peerLengths[6])} end)))::inet`;

/** Rows as `late_peer_minutes` has them. */
export function pairPeers(within: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`select minute, site_id, capture_id, vantage, direction, case direction when 2 then server else client end as local, segment,
      ${network} as peer, sum(case direction when 2 then client_bytes else server_bytes end) as inbound_bytes,
      sum(case direction when 2 then server_bytes else client_bytes end) as outbound_bytes, sum(packets) as packets, is_foreign
    from endpoint_pairs where direction in (1, 2) and ${within}
    group by minute, site_id, capture_id, vantage, direction, 6, segment, 8, is_foreign`;
}
