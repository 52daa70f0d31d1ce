/**
 * Who counts, decided in one place: per site-minute and direction the vantage, and of its captures the strongest for each
 * local address, and segment where it is not unique (NET-2.2.5). Settled minutes keep the decision, in `minute_owners`; it is the same expression that makes
 * it for minutes that are not judged yet, so an answer does not depend on which is which.
 */
import { type RawBuilder, sql } from 'kysely';
import type { ChangedAddress } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { directionCode } from '../contract/codes.ts';
import type * as facts from '../contract/facts.ts';
import type { SiteDay } from '../control/engine-use-store.ts';
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

/** What is older has been delivered, and shows as it was. */
const hoursMax = 24;
/** Addresses of one statement: with a day of minutes each it is answered in seconds. */
const batchSize = 100;

/** Writes verdicts that changed, and marks their minutes for the roll-up; returns their days. */
export async function rejudgeAddresses(
  trx: Queryable,
  changed: readonly ChangedAddress[],
): Promise<SiteDay[]> {
  const days: SiteDay[] = [];
  for (let i = 0; i < changed.length; i += batchSize)
    days.push(...(await rejudge(trx, changed.slice(i, i + batchSize))));
  return days;
}

/** Each table of facts, and the local address of its rows. */
const tables = [
  { table: 'host_minutes', local: sql`f.address` },
  { table: 'application_facts', local: sql`f.local_address` },
  { table: 'late_peer_minutes', local: sql`f.local` },
  {
    table: 'endpoint_pairs',
    local: sql`(case f.direction when 4 then null when 2 then f.server else f.client end)`,
  },
];

/**
 * Rows of a capture, minute, address and segment have one verdict, so it is found once for each of those. Where a server was
 * is looked up once for each address and sensor: a day has 1,440 minutes and one or two places. Only rows whose verdict
 * changes are looked up again.
 */
async function rejudge(trx: Queryable, changed: readonly ChangedAddress[]): Promise<SiteDay[]> {
  const since = changed.map((one) => (Number.isFinite(one.since) ? one.since : 0));
  const covers = sql`p.began_at < d.minute + interval '1 minute' and p.ended_at > d.minute
    and (p.is_unique or p.segment = '' or d.segment = '' or p.segment in (d.segment, d.name))`;
  const part = (table: string, name: string) => sql.ref(`${table}_${name}`);
  const judged = tables.map(
    ({ table, local }) => sql`
    ${part(table, 'told')} as materialized (
      select distinct g.address, f.site_id, f.minute, f.capture_id, f.segment, f.is_foreign, c.sensor_id, c.name
      from given g cross join (select distinct site_id as id from captures) t
      join ${sql.table(table)} f on f.site_id = t.id and ${local} = g.address
        and f.minute >= greatest(g.since, svc_now() - make_interval(hours => ${hoursMax})) - interval '1 minute'
      join captures c on c.id = f.capture_id),
    ${part(table, 'places')} as materialized (
      select s.address, s.sensor_id, p.*
      from (select distinct address, sensor_id from ${part(table, 'told')}) s
      cross join lateral address_placements(s.sensor_id, s.address) p),
    ${part(table, 'changed')} as materialized (
      select d.address, d.site_id, d.minute, d.capture_id, d.segment, d.is_foreign
      from ${part(table, 'told')} d
      left join ${part(table, 'places')} p on p.address = d.address and p.sensor_id = d.sensor_id and ${covers}
      group by d.address, d.site_id, d.minute, d.capture_id, d.segment, d.is_foreign
      having d.is_foreign <> (count(p.address) > 0 and not coalesce(bool_or(p.speaks), false))),
    ${part(table, 'written')} as (
      update ${sql.table(table)} f set is_foreign = not v.is_foreign from ${part(table, 'changed')} v
      where f.site_id = v.site_id and ${local} = v.address and f.minute = v.minute and f.capture_id = v.capture_id
        and f.segment = v.segment and f.is_foreign = v.is_foreign
      returning f.site_id, f.minute)`,
  );
  const written = tables.map(({ table }) => sql`select site_id, minute from ${part(table, 'written')}`);
  const { rows } = await sql<SiteDay>`
    with given as (
      select address, to_timestamp(since) as since
      from unnest(${changed.map((one) => one.address)}::inet[], ${since}::float8[]) as g(address, since)),
    ${sql.join(judged)},
    marked as (
      insert into site_minute_marks (site_id, minute) ${sql.join(written, sql` union `)} returning site_id, minute)
    select distinct site_id,
    (floor(extract(epoch from minute) / 86400) * 86400)::float8 as day from marked`.execute(trx);
  return rows;
}
