/**
 * Reads of applications. Ownership is decided here, in `judged`: per site-minute and direction the vantage, and of its
 * captures the strongest for each local address (NET-2.2.5). Rolled-up hours were made by the same expression, so what
 * is composed of them and of finer rows is what the finer rows alone would give.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { directionCode, directionOf, evidenceOf, vantageOf } from './codes.ts';
import type * as facts from './facts.ts';
import { type Coverage, inHours, inSpans, type Span, spansOf, uniteSpans } from './span-store.ts';

const seconds = (column: string) => sql`extract(epoch from ${sql.ref(column)})::float8`;

/** What stands for the missing local endpoint of traffic between two foreign ones, so that rows of it compare. */
export const nobody = sql`'0.0.0.0'::inet`;
const localOfPair = sql`case direction when 4 then ${nobody} when 2 then server else client end`;

export const inDirection = (direction: facts.Direction | null) =>
  direction === null ? sql`true` : sql`direction = ${sql.lit(directionCode(direction))}`;

/**
 * `f`: the facts of these spans; `owners`: of each minute, direction and local address the capture that counts;
 * `judged`: the facts, each with whether it does.
 */
export function judgedFacts(
  siteId: number,
  spans: readonly Span[],
  direction: facts.Direction | null,
): RawBuilder<unknown> {
  return sql`f as materialized (
      select minute, capture_id, vantage, direction, coalesce(local_address, ${nobody}) as local, name, protocol, server_port,
        evidence, is_attributed, inbound_bytes, outbound_bytes, packets, last_sent_at
      from application_facts where site_id = ${siteId} and ${inSpans(spans)} and ${inDirection(direction)}),
    sums as (
      select minute, direction, local, capture_id, vantage, sum(inbound_bytes + outbound_bytes) as bytes
      from f group by minute, direction, local, capture_id, vantage),
    vantages as (
      select minute, direction, case
        when direction = 3 then case when bool_or(vantage = 2 and bytes > 0) or not bool_or(vantage = 1) then 2 else 1 end
        else case when bool_or(vantage = 1 and bytes > 0) or not bool_or(vantage = 2) then 1 else 2 end end as vantage
      from sums group by minute, direction),
    owners as materialized (
      select distinct on (minute, direction, local) minute, direction, local, capture_id, vantage
      from sums join vantages using (minute, direction, vantage) join captures c on c.id = capture_id
      order by minute, direction, local, bytes desc, c.sensor_id, c.name collate "C"),
    judged as (
      select f.*, o.capture_id is not null as owns
      from f left join owners o using (minute, direction, local, capture_id, vantage))`;
}

/** `judged_pairs`: the pairs of these spans, each with whether it counts; after `judgedFacts` of spans that hold them. */
export function judgedPairs(
  siteId: number,
  spans: readonly Span[],
  direction: facts.Direction | null,
  key: facts.ApplicationKey | null = null,
): RawBuilder<unknown> {
  return sql`judged_pairs as (
      select p.*, o.capture_id is not null as owns
      from (select *, ${localOfPair} as local from endpoint_pairs
        where site_id = ${siteId} and ${inSpans(spans)} and ${inDirection(direction)} and ${ofKey(key)}) p
      left join owners o using (minute, direction, local, capture_id, vantage))`;
}

export const ofKey = (key: facts.ApplicationKey | null) =>
  key === null
    ? sql`true`
    : sql`name = ${key.name} and protocol = ${key.protocol} and server_port is not distinct from ${key.serverPort}::int`;

interface RankedRow {
  name: string;
  protocol: number;
  serverPort: number | null;
  evidence: number;
  isAttributed: boolean;
  inboundBytes: number | null;
  outboundBytes: number | null;
  vantage: number;
  addresses: number;
  lastSentMs: number | null;
  client: string | null;
  server: string | null;
  pairs: number | null;
  total: number;
  allBytes: number;
  domainBytes: number;
  portBytes: number;
}

/** A range's applications by bytes, largest first, with the busiest pair of each. */
export async function rankApplications(
  db: Queryable,
  coverage: Coverage,
  options: { direction: facts.Direction | null; limit: number },
): Promise<facts.ApplicationUse> {
  const { siteId, spans, hours, pairs } = coverage;
  const { direction, limit } = options;
  const { rows } = await sql<RankedRow>`
    with ${judgedFacts(siteId, uniteSpans(spans, pairs.spans), direction)},
    pieces as (
      select name, protocol, server_port, nullif(local, ${nobody}) as local, inbound_bytes as inbound, outbound_bytes as outbound,
        evidence, is_attributed, owner, seen, last_sent_at
      from application_hours where site_id = ${siteId} and ${inHours(hours)} and ${inDirection(direction)}
      union all
      select name, protocol, server_port, nullif(local, ${nobody}) as local, sum(inbound_bytes) filter (where owns) as inbound,
        sum(outbound_bytes) filter (where owns) as outbound, max(evidence) as evidence, bool_or(is_attributed) as is_attributed,
        min(vantage) filter (where owns) as owner, min(vantage) as seen, max(last_sent_at) as last_sent_at
      from judged where ${inSpans(spans)} group by name, protocol, server_port, local),
    named as (
      select name, protocol, server_port, max(evidence) as evidence, bool_or(is_attributed) as is_attributed,
        sum(inbound) as inbound, sum(outbound) as outbound, min(owner) as owner, min(seen) as seen,
        count(distinct local) as addresses, max(last_sent_at) as last_sent_at
      from pieces group by name, protocol, server_port
      -- A row that another capture owns is worth a line only where it brings a name.
      having min(owner) is not null or bool_or(is_attributed)),
    ${judgedPairs(siteId, pairs.spans, direction)},
    pair_pieces as (
      select name, protocol, server_port, client, server, bytes
      from pair_hours where site_id = ${siteId} and ${inHours(pairs.hours)} and ${inDirection(direction)}
      union all
      select name, protocol, server_port, client, server, sum(client_bytes + server_bytes) filter (where owns) as bytes
      from judged_pairs group by name, protocol, server_port, client, server),
    pairs as (
      select distinct on (name, protocol, server_port) name, protocol, server_port, client, server,
        count(*) over (partition by name, protocol, server_port) as pairs
      from (select name, protocol, server_port, client, server, sum(bytes) as bytes from pair_pieces
        group by name, protocol, server_port, client, server) p
      order by name, protocol, server_port, bytes desc nulls last, client, server)
    select n.name, n.protocol, n.server_port as "serverPort", n.evidence, n.is_attributed as "isAttributed",
      n.inbound::float8 as "inboundBytes", n.outbound::float8 as "outboundBytes", coalesce(n.owner, n.seen) as vantage,
      n.addresses::int as addresses, (extract(epoch from n.last_sent_at) * 1000)::float8 as "lastSentMs",
      host(p.client) as client, host(p.server) as server, p.pairs::int as pairs,
      count(*) over ()::int as total, coalesce(sum(n.inbound + n.outbound) over (), 0)::float8 as "allBytes",
      coalesce(sum(n.inbound + n.outbound) filter (where n.evidence > 0) over (), 0)::float8 as "domainBytes",
      coalesce(sum(n.inbound + n.outbound) filter (where n.evidence = 0 and n.is_attributed) over (), 0)::float8 as "portBytes"
    from named n left join pairs p on p.name = n.name and p.protocol = n.protocol
      and p.server_port is not distinct from n.server_port
    order by coalesce(n.inbound + n.outbound, -1) desc, n.name collate "C", n.protocol, n.server_port
    limit ${limit}`.execute(db);
  const first = rows[0];
  return {
    rows: rows.map(toApplicationRow),
    total: first?.total ?? 0,
    bytes: first?.allBytes ?? 0,
    domainBytes: first?.domainBytes ?? 0,
    portBytes: first?.portBytes ?? 0,
  };
}

function toApplicationRow(row: RankedRow): facts.ApplicationRow {
  const { name, protocol, serverPort, isAttributed, inboundBytes, outboundBytes, addresses, lastSentMs } =
    row;
  const { client, server, pairs } = row;
  return {
    name,
    protocol,
    serverPort,
    evidence: evidenceOf(row.evidence),
    isAttributed,
    inboundBytes,
    outboundBytes,
    vantage: vantageOf(row.vantage),
    addresses,
    lastSentMs,
    topConnection: client === null || server === null ? null : { client, server, pairs: pairs! },
  };
}

/** Bytes of these names in steps, both directions together; the rest under null. */
export async function stepApplications(
  db: Queryable,
  coverage: Coverage,
  options: { direction: facts.Direction | null; stepSeconds: number; names: readonly string[] },
): Promise<facts.ApplicationStep[]> {
  const { stepSeconds, names, direction } = options;
  const { siteId, spans, hours } = coverage;
  const isNamed = sql`name = any(${[...names]}::text[])`;
  const { rows } = await sql<facts.ApplicationStep>`
    with ${judgedFacts(siteId, spans, direction)},
    pieces as (
      select minute, name, bytes from application_minutes
      where site_id = ${siteId} and ${inSpans(spansOf(hours))} and ${inDirection(direction)} and (${isNamed} or name is null)
      union all
      select minute, case when grouping(name) = 0 then name end, sum(inbound_bytes + outbound_bytes)
      from (select minute, case when ${isNamed} then name else '' end as name, inbound_bytes, outbound_bytes from judged where owns) j
      group by grouping sets ((minute, name), (minute))),
    steps as (
      select floor(extract(epoch from minute) / ${stepSeconds}) * ${stepSeconds * 1000}::float8 as "timeMs", name, sum(bytes) as bytes
      from pieces where name is null or ${isNamed} group by 1, 2)
    select "timeMs", name, bytes::float8 as bytes from (
      select "timeMs", name, case when name is null then 2 * bytes - sum(bytes) over (partition by "timeMs") else bytes end as bytes
      from steps) rest
    where bytes > 0 order by "timeMs", name collate "C" nulls last`.execute(db);
  return rows;
}

/** Of each minute and direction one capture counts: the uplink where it saw bytes, else the strongest. */
export async function readAddressApplications(
  db: Queryable,
  range: facts.AddressRange,
): Promise<facts.AddressApplication[]> {
  const { rows } = await sql<
    Omit<facts.AddressApplication, 'direction' | 'evidence'> & { direction: number; evidence: number }
  >`
    with f as materialized (
      select * from application_facts
      where site_id = ${range.siteId} and local_address = ${range.address}::inet and direction in (1, 2)
        and minute >= to_timestamp(${range.fromMinute}) and minute < to_timestamp(${range.toMinute})),
    owners as (
      select distinct on (minute, direction) minute, direction, capture_id
      from (select minute, direction, capture_id, vantage, sum(inbound_bytes + outbound_bytes) as bytes
        from f group by minute, direction, capture_id, vantage) seen join captures c on c.id = capture_id
      order by minute, direction, (vantage = 1 and bytes > 0) desc, bytes desc, c.sensor_id, c.name collate "C")
    select ${seconds('f.minute')} as minute, f.direction, f.name, f.protocol, f.server_port as "serverPort",
      max(f.evidence) as evidence, bool_or(f.is_attributed) as "isAttributed",
      sum(f.inbound_bytes)::float8 as "inboundBytes", sum(f.outbound_bytes)::float8 as "outboundBytes",
      (extract(epoch from max(f.last_sent_at)) * 1000)::float8 as "lastSentMs"
    from f join owners using (minute, direction, capture_id)
    group by f.minute, f.direction, f.name, f.protocol, f.server_port
    order by f.minute, f.direction = 1, f.name collate "C", f.protocol, f.server_port`.execute(db);
  return rows.map((row) => ({
    ...row,
    direction: directionOf(row.direction) as 'outbound' | 'inbound',
    evidence: evidenceOf(row.evidence),
  }));
}
