/**
 * Who counts, decided in one place: per site-minute and direction the vantage, and of its captures the strongest for each
 * local address, and segment where it is not unique (NET-2.2.5). Settled minutes keep the decision, in `minute_owners`; it is the same expression that makes
 * it for minutes that are not judged yet, so an answer does not depend on which is which.
 */
import { type RawBuilder, sql } from 'kysely';
import { directionCode } from '../contract/codes.ts';
import type * as facts from '../contract/facts.ts';
import { inSpans, type Span } from './span-store.ts';

/** What stands for the missing local endpoint of traffic between two foreign ones, so that rows of it compare. */
export const noAddress = sql`'0.0.0.0'::inet`;
const localOfPair = sql`case direction when 4 then ${noAddress} when 2 then server else client end`;

export const inDirection = (direction: facts.Direction | null) =>
  direction === null ? sql`true` : sql`direction = ${sql.lit(directionCode(direction))}`;

export const ofKey = (key: facts.ApplicationKey | null) =>
  key === null
    ? sql`true`
    : sql`name = ${key.name} and protocol = ${key.protocol} and server_port is not distinct from ${key.serverPort}::int`;

/** Facts to judge: those of minutes that keep their owners, and those of which every name is needed to decide. */
export interface Judging {
  siteId: number;
  judged: readonly Span[];
  unjudged: readonly Span[];
  direction: facts.Direction | null;
  /** Null: all applications. */
  key?: facts.ApplicationKey | null;
  /** Null: all local addresses. */
  local?: string | null;
  /** The same of several. */
  locals?: readonly string[] | null;
  /** Null: of all sensors. Others of judged minutes are then left out, among them those that don't count. */
  sensors?: readonly string[] | null;
}

/** Whether a capture is of one of these sensors; the ids are looked up once. */
export const isOfSensors = (
  captureId: RawBuilder<unknown>,
  sensors: readonly string[],
): RawBuilder<unknown> =>
  sql`${captureId} = any(array(select id from captures where sensor_id = any(${[...sensors]}::bigint[])))`;

/** `fresh_owners`: owners of minutes that are not judged yet; `owners`: in all of them. */
export function judgedOwners(judging: Judging): RawBuilder<unknown> {
  const { siteId, judged, unjudged, direction, locals = null, sensors = null } = judging;
  return sql`fresh as materialized (
      select minute, capture_id, vantage, direction, coalesce(local_address, ${noAddress}) as local, name, protocol, server_port,
        evidence, is_attributed, inbound_bytes, outbound_bytes, packets, last_sent_at, segment as own_segment
      from application_facts where site_id = ${siteId} and ${inSpans(unjudged)} and ${inDirection(direction)} and not is_foreign),
    sums as (
      select minute, direction, local, capture_id, vantage, sum(inbound_bytes + outbound_bytes) as bytes,
        max(own_segment collate "C") as own_segment
      from fresh group by minute, direction, local, capture_id, vantage),
    vantages as (
      select minute, direction, case
        when direction = 3 then case when bool_or(vantage = 2 and bytes > 0) or not bool_or(vantage = 1) then 2 else 1 end
        else case when bool_or(vantage = 1 and bytes > 0) or not bool_or(vantage = 2) then 1 else 2 end end as vantage
      from sums group by minute, direction),
    eligible as (select * from sums join vantages using (minute, direction, vantage)),
    -- Nearly always empty: the segments of addresses that are not unique.
    segments as (
      select minute, direction, local, min(own_segment collate "C") as first, max(own_segment collate "C") as last
      from eligible where own_segment <> '' group by minute, direction, local),
    fresh_owners as materialized (
      select distinct on (minute, direction, local, segment) minute, direction, local, capture_id, vantage, segment
      from (select e.*, coalesce(nullif(e.own_segment, ''), s.first, '') as segment
        from eligible e left join segments s using (minute, direction, local)
        where e.own_segment <> '' or s.first is not distinct from s.last) e join captures c on c.id = capture_id
      order by minute, direction, local, segment, bytes desc, c.sensor_id, c.name collate "C"),
    owners as materialized (
      select minute, direction, local, capture_id, vantage, segment from minute_owners
      where site_id = ${siteId} and ${inSpans(judged)} and ${inDirection(direction)} and ${isLocal('local', locals)}
        and ${ofSensors(sensors)}
      union all select * from fresh_owners)`;
}

const ofSensors = (sensors: readonly string[] | null) =>
  sensors === null ? sql`true` : isOfSensors(sql.ref('capture_id'), sensors);

/** Facts that sensors count: an index finds them by their local address; others don't count. */
function ofCounted({ sensors = null, local = null, locals = null }: Judging) {
  if (sensors === null || local !== null || locals !== null) return sql`true`;
  const counted = sql`select distinct local from owners where ${isOfSensors(sql.ref('capture_id'), sensors)}`;
  return sql`(local_address is null or local_address = any(array(${counted})))`;
}

const isLocal = (column: string, locals: readonly string[] | null) =>
  locals === null ? sql`true` : sql`${sql.ref(column)} = any(${[...locals]}::inet[])`;

/** `owners`: of each minute, direction, local address and segment the capture that counts; `judged`: the facts, each with whether it does. */
export function judgedFacts(judging: Judging): RawBuilder<unknown> {
  const { siteId, judged, direction, key = null, local = null, locals = null, sensors = null } = judging;
  const ofLocal = local === null ? sql`true` : sql`local_address = ${local}::inet`;
  const ofFreshLocal = local === null ? sql`true` : sql`local = ${local}::inet`;
  return sql`${judgedOwners(judging)},
    judged as (
      select f.*, o.capture_id is not null as owns, coalesce(o.segment, f.own_segment) as segment
      from (select minute, capture_id, vantage, direction, coalesce(local_address, ${noAddress}) as local, name, protocol,
          server_port, evidence, is_attributed, inbound_bytes, outbound_bytes, packets, last_sent_at, segment as own_segment
        from application_facts where site_id = ${siteId} and ${inSpans(judged)} and ${inDirection(direction)} and ${ofKey(key)}
          and ${ofLocal} and ${isLocal('local_address', locals)} and ${ofSensors(sensors)} and ${ofCounted(judging)} and not is_foreign
        union all select * from fresh where ${ofKey(key)} and ${ofFreshLocal}) f
      left join owners o using (minute, direction, local, capture_id, vantage))`;
}

/** `judged_pairs`: the pairs of these spans, each with whether it counts; after `judgedFacts` of spans that hold them. */
export function judgedPairs(judging: Judging): RawBuilder<unknown> {
  const { siteId, judged, unjudged, direction, key = null, sensors = null } = judging;
  return sql`judged_pairs as (
      select p.*, o.capture_id is not null as owns, coalesce(o.segment, p.own_segment) as segment
      from (select minute, capture_id, vantage, direction, client, server, name, protocol, server_port, client_bytes,
          server_bytes, packets, segment as own_segment, ${localOfPair} as local from endpoint_pairs
        where site_id = ${siteId} and ${inSpans([...judged, ...unjudged])} and ${inDirection(direction)} and ${ofKey(key)}
          and ${ofSensors(sensors)} and not is_foreign) p
      left join owners o using (minute, direction, local, capture_id, vantage))`;
}
