/** Who used one application, what one address used, and which pairs there were. */

import { type RawBuilder, sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { directionOf, evidenceOf } from '../contract/codes.ts';
import type * as facts from '../contract/facts.ts';
import { inDirection, judgedFacts, judgedPairs, noAddress, ofKey } from './judge-store.ts';
import { type Coverage, inHours, inSpans, type Span } from './span-store.ts';

const listMax = 10;
const pairsMax = 5;

/**
 * `owned`: whose the addresses of these spans were, minute by minute, at each one's strongest capture. What has no segment
 * itself is of the only one that there was. `locals`: of these addresses alone.
 */
export function ownedMinutes(
  siteId: number,
  spans: readonly Span[],
  locals: readonly string[] | null = null,
): RawBuilder<unknown> {
  const isLocal = locals === null ? sql`true` : sql`address = any(${[...locals]}::inet[])`;
  const each = spans.map(
    (span) => sql`select address, minute, segment, device_key
      from strongest_host_minutes(${siteId}, to_timestamp(${span.from}), to_timestamp(${span.to}))
      where device_key <> '' and ${isLocal}`,
  );
  const nothing = sql`select null::inet as address, null::timestamptz as minute, null::text as segment,
    null::text as device_key where false`;
  return sql`owned_at as materialized (${each.length === 0 ? nothing : sql.join(each, sql` union all `)}),
    owned as materialized (select * from owned_at union all
      select address, minute, '', min(device_key) from owned_at o group by address, minute
      having count(*) = 1 and min(segment) <> '')`;
}

/** Lists are cut after counting; a row of the result is one entry of one list. */
const cutLists = sql`
    destinations as (select server, sum(bytes) as bytes from pieces where client is not null group by server),
    ends as (select device_key, case when device_key is null then local end as address, sum(bytes) as bytes
      from pieces where local is not null group by 1, 2),
    ways as (select client, server, sum(bytes) as bytes from pieces where client is not null group by client, server)
    (select 'destination' as list, host(server) as a, null as b, bytes::float8 as bytes, (select count(*)::int from destinations) as count
      from destinations order by destinations.bytes desc nulls last, server limit ${listMax})
    union all
    (select 'device', device_key, host(address), bytes::float8, (select count(*)::int from ends)
      from ends order by ends.bytes desc nulls last, device_key collate "C", address limit ${listMax})
    union all
    (select 'pair', host(client), host(server), bytes::float8, (select count(*)::int from ways)
      from ways order by ways.bytes desc nulls last, client, server limit ${pairsMax})`;

interface Entry {
  list: 'destination' | 'device' | 'pair';
  a: string | null;
  b: string | null;
  bytes: number | null;
  count: number;
}

/** From the pairs, or where none is kept from the facts (fallback attribution, NET-2.2.2). */
export async function readApplication(
  db: Queryable,
  coverage: Coverage,
  options: facts.ApplicationKey & { direction: facts.Direction | null },
): Promise<facts.ApplicationDetail> {
  const { siteId, spans, hours, pairs } = coverage;
  const { direction, name, protocol, serverPort } = options;
  const key = { name, protocol, serverPort };
  const judging = { siteId, direction, key, judged: coverage.judged, unjudged: coverage.unjudged };
  const judgingPairs = { ...judging, judged: pairs.judged, unjudged: pairs.unjudged };
  const fromPairs = await sql<Entry>`
    with ${judgedFacts(judgingPairs)}, ${judgedPairs(judgingPairs)},
    ${ownedMinutes(siteId, pairs.spans)},
    pieces as (
      select client, server, nullif(local, ${noAddress}) as local, device_key, bytes
      from pair_hours where site_id = ${siteId} and ${inHours(pairs.hours)} and ${inDirection(direction)} and ${ofKey(key)}
      union all
      select p.client, p.server, case when p.direction <> 4 then p.local end as local, o.device_key,
        sum(p.client_bytes + p.server_bytes) filter (where p.owns) as bytes
      from judged_pairs p left join owned o on o.address = p.local and o.minute = p.minute and o.segment = p.segment
      group by 1, 2, 3, 4),
    ${cutLists}`.execute(db);
  if (fromPairs.rows.length > 0) return toDetail(fromPairs.rows, false);
  const fromFacts = await sql<Entry>`
    with ${judgedFacts(judging)}, ${ownedMinutes(siteId, spans)},
    pieces as (
      select null::inet as client, null::inet as server, nullif(local, ${noAddress}) as local, device_key,
        inbound_bytes + outbound_bytes as bytes
      from application_hours where site_id = ${siteId} and ${inHours(hours)} and ${inDirection(direction)} and ${ofKey(key)}
      union all
      select null::inet as client, null::inet as server, case when j.direction <> 4 then j.local end as local, o.device_key,
        sum(j.inbound_bytes + j.outbound_bytes) filter (where j.owns) as bytes
      from judged j left join owned o on o.address = j.local and o.minute = j.minute and o.segment = j.segment
      group by 1, 2, 3, 4),
    ${cutLists}`.execute(db);
  return toDetail(fromFacts.rows, true);
}

function toDetail(rows: readonly Entry[], isFallback: boolean): facts.ApplicationDetail {
  const of = (list: Entry['list']) => rows.filter((row) => row.list === list);
  const countOf = (list: Entry['list']) => of(list)[0]?.count ?? 0;
  return {
    destinations: of('destination').map((row) => ({ address: row.a!, bytes: row.bytes })),
    destinationCount: countOf('destination'),
    devices: of('device').map((row) => ({ deviceKey: row.a, address: row.b, bytes: row.bytes })),
    deviceCount: countOf('device'),
    pairs: of('pair').map((row) => ({ client: row.a!, server: row.b!, bytes: row.bytes })),
    pairCount: countOf('pair'),
    isFallback,
  };
}

/** What an address used and hosted over the Internet, from judged facts as the site's list is. */
export async function sumAddressApplications(
  db: Queryable,
  coverage: Coverage,
  { address, segment }: Pick<facts.AddressRange, 'address' | 'segment'>,
): Promise<facts.AddressUse[]> {
  const { siteId, hours, judged, unjudged } = coverage;
  const ofSegment = segment === undefined ? sql`true` : sql`segment in ('', ${segment})`;
  const { rows } = await sql<
    Omit<facts.AddressUse, 'direction' | 'evidence'> & { direction: number; evidence: number }
  >`
    with ${judgedFacts({ siteId, judged, unjudged, direction: null, local: address })},
    pieces as (
      select direction, name, protocol, server_port, evidence, is_attributed, inbound_bytes, outbound_bytes, last_sent_at
      from application_hours where site_id = ${siteId} and local = ${address}::inet and ${inHours(hours)} and ${ofSegment}
      union all
      select direction, name, protocol, server_port, evidence, is_attributed, case when owns then inbound_bytes end,
        case when owns then outbound_bytes end, last_sent_at
      from judged where ${ofSegment})
    select direction, name, protocol, server_port, max(evidence) as evidence, bool_or(is_attributed) as is_attributed,
      sum(inbound_bytes)::float8 as inbound_bytes, sum(outbound_bytes)::float8 as outbound_bytes,
      (extract(epoch from max(last_sent_at)) * 1000)::float8 as last_sent_ms
    from pieces where direction in (1, 2) group by direction, name, protocol, server_port
    order by coalesce(sum(inbound_bytes) + sum(outbound_bytes), -1) desc, direction, name collate "C", protocol, server_port`.execute(
    db,
  );
  return rows.map((row) => ({
    ...row,
    direction: directionOf(row.direction) as 'outbound' | 'inbound',
    evidence: evidenceOf(row.evidence),
  }));
}

/** Pairs by minute with what named them; of several captures the strongest's counts. */
export async function listPairs(
  db: Queryable,
  range: facts.ViewRange,
  limit: number,
): Promise<facts.PairClassification[]> {
  const spans = [{ from: range.fromMinute, to: range.toMinute }];
  const direction = range.direction === null ? null : range.direction;
  const { rows } = await sql<
    Omit<facts.PairClassification, 'direction' | 'evidence'> & { direction: number; evidence: number }
  >`
    with seen as (
      select minute, direction, client, server, name, protocol, server_port, evidence, capture_id, sum(client_bytes) as client_bytes,
        sum(server_bytes) as server_bytes, sum(packets) as packets
      from endpoint_pairs where site_id = ${range.siteId} and ${inSpans(spans)} and minute >= svc_now() - ${sql.lit(kept.pairs)}::interval and not is_foreign
        and (${direction}::text is null or direction = array_position(array['outbound', 'inbound', 'internal', 'transit'], ${direction}::text))
      group by 1, 2, 3, 4, 5, 6, 7, 8, 9)
    select extract(epoch from minute)::float8 as minute, direction, host(client) as client, host(server) as server, name,
      protocol, server_port, evidence, client_bytes::float8 as client_bytes, server_bytes::float8 as server_bytes,
      packets::float8 as packets, captures
    from (
      select distinct on (minute, direction, client, server, name, protocol, server_port, evidence) *,
        (count(*) over (partition by minute, direction, client, server, name, protocol, server_port, evidence))::int as captures
      from seen
      order by minute, direction, client, server, name, protocol, server_port, evidence, client_bytes + server_bytes desc,
        client_bytes desc, packets desc) strongest
    order by client_bytes + server_bytes desc, strongest.minute desc, strongest.client, strongest.server, name collate "C",
      protocol, server_port, evidence, direction
    limit ${limit}`.execute(db);
  return rows.map((row) => ({
    ...row,
    direction: directionOf(row.direction),
    evidence: evidenceOf(row.evidence),
  }));
}
