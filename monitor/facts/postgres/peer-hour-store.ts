/**
 * Peer networks of an hour: made of judged pairs while the hour has all of them, and of what arrived after that. The same
 * expression makes what is kept of an hour and what is read of one that is not rolled up.
 */

import { type RawBuilder, sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { peerLengths } from '../contract/peer-networks.ts';
import { type Judging, judgedOwners, judgedPairs } from './judge-store.ts';
import { inSpans, type Span, uniteSpans } from './span-store.ts';

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
