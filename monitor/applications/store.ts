/** The application tables. Minutes cross this border as seconds since 1970, sums as doubles (exact to 2^53). */
import { sql } from 'kysely';
import type { TelemetryEvidence, TelemetryUsageRow } from '#contracts/sensor-api/telemetry-codec.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Exact endpoint pairs live this long (NET-2.2.7). */
export const pairsKeptMs = 24 * 3_600_000;

export interface ApplicationFact {
  scope: 'internet' | 'internal' | 'transit';
  direction: TelemetryUsageRow['direction'];
  localAddress: string | null;
  name: string;
  protocol: number;
  serverPort: number | null;
  evidence: TelemetryEvidence;
  isAttributed: boolean;
  /** To and from the local endpoint. */
  inboundBytes: number;
  outboundBytes: number;
  packets: number;
  /** Unix milliseconds at which the local endpoint last sent; 0 for never. */
  lastSentMs: number;
}

export interface EndpointPair extends TelemetryUsageRow {
  scope: ApplicationFact['scope'];
}

export interface FactOrigin {
  siteId: number;
  captureId: number;
  vantage: 'uplink' | 'bridge';
  minute: number;
}

/** Makes a day's partition of facts and an hour's of pairs, once each. */
export function createPartitionMaker(): {
  ensure(db: Queryable, minutes: readonly number[], nowMs: number): Promise<void>;
} {
  const known = new Set<string>();
  const ensureOne = async (db: Queryable, parent: string, start: number, span: string) => {
    const key = `${parent} ${start}`;
    if (known.has(key)) return;
    await sql`select ensure_fact_partition(${parent}, to_timestamp(${start}), ${span}::interval)`.execute(db);
    if (known.size > 32) known.clear();
    known.add(key);
  };
  return {
    async ensure(db, minutes, nowMs) {
      for (const minute of minutes) {
        await ensureOne(db, 'application_facts', Math.floor(minute / 86_400) * 86_400, '1 day');
        if (minute * 1000 <= nowMs - pairsKeptMs) continue;
        await ensureOne(db, 'endpoint_pairs', Math.floor(minute / 3600) * 3600, '1 hour');
      }
    },
  };
}

export async function insertFacts(
  trx: Queryable,
  origin: FactOrigin,
  facts: readonly ApplicationFact[],
): Promise<void> {
  const all = <T>(read: (fact: ApplicationFact) => T) => facts.map(read);
  await sql`
    insert into application_facts (site_id, minute, capture_id, vantage, scope, direction, local_address, name, protocol,
      server_port, evidence, is_attributed, inbound_bytes, outbound_bytes, packets, last_sent_at)
    select ${origin.siteId}::bigint, to_timestamp(${origin.minute}::float8), ${origin.captureId}::bigint, ${origin.vantage},
      scope, direction, local_address, name, protocol, server_port, evidence, is_attributed, inbound_bytes, outbound_bytes,
      packets, to_timestamp(nullif(last_sent_ms, 0) / 1000)
    from unnest(${all((f) => f.scope)}::text[], ${all((f) => f.direction)}::text[], ${all((f) => f.localAddress)}::inet[],
      ${all((f) => f.name)}::text[], ${all((f) => f.protocol)}::smallint[], ${all((f) => f.serverPort)}::int[],
      ${all((f) => f.evidence)}::text[], ${all((f) => f.isAttributed)}::boolean[],
      ${all((f) => f.inboundBytes)}::bigint[], ${all((f) => f.outboundBytes)}::bigint[], ${all((f) => f.packets)}::bigint[],
      ${all((f) => f.lastSentMs)}::float8[])
      as given (scope, direction, local_address, name, protocol, server_port, evidence, is_attributed, inbound_bytes,
        outbound_bytes, packets, last_sent_ms)`.execute(trx);
}

export async function insertPairs(
  trx: Queryable,
  origin: FactOrigin,
  pairs: readonly EndpointPair[],
): Promise<void> {
  const all = <T>(read: (pair: EndpointPair) => T) => pairs.map(read);
  await sql`
    insert into endpoint_pairs (site_id, minute, capture_id, vantage, scope, direction, client, server, name, protocol,
      server_port, evidence, client_bytes, server_bytes, packets)
    select ${origin.siteId}::bigint, to_timestamp(${origin.minute}::float8), ${origin.captureId}::bigint, ${origin.vantage}, given.*
    from unnest(${all((p) => p.scope)}::text[], ${all((p) => p.direction)}::text[], ${all((p) => p.client)}::inet[],
      ${all((p) => p.server)}::inet[], ${all((p) => p.name)}::text[], ${all((p) => p.protocol)}::smallint[],
      ${all((p) => p.serverPort)}::int[], ${all((p) => p.evidence)}::text[], ${all((p) => p.clientBytes)}::bigint[],
      ${all((p) => p.serverBytes)}::bigint[], ${all((p) => p.packets)}::bigint[]) as given`.execute(trx);
}

export interface AddressApplication {
  /** Start of the UTC minute, seconds since 1970. */
  minute: number;
  /** `outbound`: the address is the client; `inbound`: it hosts the service. */
  direction: 'outbound' | 'inbound';
  name: string;
  /** IP protocol number. */
  protocol: number;
  serverPort: number | null;
  /** The strongest that named it in this minute. */
  evidence: TelemetryEvidence;
  /** False where only the remote address is known, which must never leave the monitor. */
  isAttributed: boolean;
  /** To and from the address. */
  inboundBytes: number;
  outboundBytes: number;
  /** Unix milliseconds at which the address last sent; null: it did not. */
  lastSentMs: number | null;
}

const evidenceStrength = sql`array_position(array['none', 'dns', 'tls_outer', 'http_connect', 'http_host', 'tls_sni', 'ip_protocol'], f.evidence)`;

/**
 * Of each minute and direction one capture counts: the uplink where it saw bytes, else the strongest. Captures overlap,
 * so two are never added.
 */
export async function readAddressApplications(
  db: Queryable,
  range: { siteId: number; address: string; fromMinute: number; toMinute: number },
): Promise<AddressApplication[]> {
  const { rows } = await sql<AddressApplication>`
    with f as materialized (
      select * from application_facts
      where site_id = ${range.siteId} and local_address = ${range.address}::inet and scope = 'internet'
        and minute >= to_timestamp(${range.fromMinute}) and minute < to_timestamp(${range.toMinute})),
    owners as (
      select distinct on (minute, direction) minute, direction, capture_id
      from (select minute, direction, capture_id, vantage, sum(inbound_bytes + outbound_bytes) as bytes
        from f group by minute, direction, capture_id, vantage) seen
      order by minute, direction, (vantage = 'uplink' and bytes > 0) desc, bytes desc, capture_id)
    select extract(epoch from f.minute)::float8 as minute, f.direction, f.name, f.protocol, f.server_port as "serverPort",
      (array_agg(f.evidence order by ${evidenceStrength} desc))[1] as evidence, bool_or(f.is_attributed) as "isAttributed",
      sum(f.inbound_bytes)::float8 as "inboundBytes", sum(f.outbound_bytes)::float8 as "outboundBytes",
      (extract(epoch from max(f.last_sent_at)) * 1000)::float8 as "lastSentMs"
    from f join owners using (minute, direction, capture_id)
    group by f.minute, f.direction, f.name, f.protocol, f.server_port
    order by f.minute, f.direction, f.name, f.protocol, f.server_port`.execute(db);
  return rows;
}

export interface ApplicationRow {
  name: string;
  protocol: number;
  serverPort: number | null;
  evidence: TelemetryEvidence;
  isAttributed: boolean;
  /** Null for a name that only a bridge saw beside the uplink that counts (NET-2.2.5). */
  inboundBytes: number | null;
  outboundBytes: number | null;
  vantage: 'uplink' | 'bridge';
  /** Local addresses that used it. */
  addresses: number;
  lastSentMs: number | null;
  /** The pair with the most bytes of the last 24 hours, and how many there are; null where none is kept. */
  topConnection: { client: string; server: string; pairs: number } | null;
}

export interface ApplicationUse {
  rows: ApplicationRow[];
  /** Rows before the limit. */
  total: number;
  /** Bytes of all of them, and of those with a name. */
  bytes: number;
  attributedBytes: number;
}

export interface ViewRange {
  siteId: number;
  /** Null: every scope and direction. */
  scope: string | null;
  direction: string | null;
  fromMs: number;
  toMs: number;
}

const inView = (range: ViewRange) => sql`site_id = ${range.siteId}
    and minute >= to_timestamp(${range.fromMs / 1000}) and minute < to_timestamp(${range.toMs / 1000})
    and (${range.scope}::text is null or (scope = ${range.scope} and direction = ${range.direction}))`;

/**
 * The facts of a view as `judged`, each with whether its vantage owns its site-minute, scope and direction: the uplink
 * for Internet traffic when it saw bytes, the bridges for internal traffic; the other stands in only where the owner is
 * idle or absent. What the other saw beside it keeps its names and no bytes.
 */
const judgedFacts = (
  range: ViewRange,
) => sql`f as materialized (select * from application_facts where ${inView(range)}),
    owners as (
      select minute, scope, direction, case
        when scope = 'internal' then case when bool_or(vantage = 'bridge' and bytes > 0) then 'bridge' else 'uplink' end
        else case when bool_or(vantage = 'uplink' and bytes > 0) then 'uplink' else 'bridge' end end as vantage
      from (select minute, scope, direction, vantage, sum(inbound_bytes + outbound_bytes) as bytes
        from f group by minute, scope, direction, vantage) seen
      group by minute, scope, direction),
    judged as (select f.*, o.vantage = f.vantage as owns from f join owners o using (minute, scope, direction))`;

/** A range's applications by bytes, largest first, with the busiest pair of each. */
export async function sumApplications(
  db: Queryable,
  options: ViewRange & { limit: number },
): Promise<ApplicationUse> {
  const inRange = inView(options);
  const { rows } = await sql<ApplicationRow & { total: number; allBytes: number; attributedBytes: number }>`
    with ${judgedFacts(options)},
    named as (
      select name, protocol, server_port, (array_agg(evidence order by ${evidenceStrength} desc))[1] as evidence,
        bool_or(is_attributed) as is_attributed, max(vantage) filter (where owns) as owner,
        sum(inbound_bytes) filter (where owns) as inbound, sum(outbound_bytes) filter (where owns) as outbound,
        count(distinct local_address) as addresses, max(last_sent_at) as last_sent_at
      from judged f group by name, protocol, server_port
      -- A bridge's row beside the uplink's is worth a line only where it brings a name.
      having bool_or(owns) or bool_or(is_attributed)),
    pairs as (
      select distinct on (p.name, p.protocol, p.server_port) p.name, p.protocol, p.server_port, p.client, p.server,
        count(*) over (partition by p.name, p.protocol, p.server_port) as pairs
      from (select name, protocol, server_port, client, server, sum(client_bytes + server_bytes) as bytes
        from endpoint_pairs where ${inRange} and minute >= svc_now() - interval '24 hours'
        group by name, protocol, server_port, client, server) p
      order by p.name, p.protocol, p.server_port, p.bytes desc, p.client, p.server)
    select n.name, n.protocol, n.server_port as "serverPort", n.evidence, n.is_attributed as "isAttributed",
      n.inbound::float8 as "inboundBytes", n.outbound::float8 as "outboundBytes",
      coalesce(n.owner, 'bridge') as vantage, n.addresses::int as addresses,
      (extract(epoch from n.last_sent_at) * 1000)::float8 as "lastSentMs",
      case when p.client is not null then jsonb_build_object('client', host(p.client), 'server', host(p.server), 'pairs', p.pairs) end
        as "topConnection",
      count(*) over ()::int as total, coalesce(sum(n.inbound + n.outbound) over (), 0)::float8 as "allBytes",
      coalesce(sum(n.inbound + n.outbound) filter (where n.is_attributed) over (), 0)::float8 as "attributedBytes"
    from named n left join pairs p on p.name = n.name and p.protocol = n.protocol
      and p.server_port is not distinct from n.server_port
    order by coalesce(n.inbound + n.outbound, -1) desc, n.name, n.protocol, n.server_port
    limit ${options.limit}`.execute(db);
  const first = rows[0];
  return {
    rows: rows.map(({ total: _, allBytes: __, attributedBytes: ___, ...row }) => row),
    total: first?.total ?? 0,
    bytes: first?.allBytes ?? 0,
    attributedBytes: first?.attributedBytes ?? 0,
  };
}

export interface ApplicationStep {
  timeMs: number;
  /** Null: all that are not among the names asked for. */
  name: string | null;
  bytes: number;
}

/** Bytes of these names in steps, both directions together, at the owning vantage; the rest under null. */
export async function sumApplicationSteps(
  db: Queryable,
  range: ViewRange & { stepSeconds: number; names: readonly string[] },
): Promise<ApplicationStep[]> {
  const step = range.stepSeconds;
  const { rows } = await sql<ApplicationStep>`
    with ${judgedFacts(range)}
    select floor(extract(epoch from minute) / ${step}) * ${step * 1000}::float8 as "timeMs",
      case when name = any(${[...range.names]}::text[]) then name end as name,
      sum(inbound_bytes + outbound_bytes)::float8 as bytes
    from judged where owns group by 1, 2`.execute(db);
  return rows;
}
