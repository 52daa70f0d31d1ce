/**
 * Reads of applications. Lists and charts are composed of what is kept by name: whole days, hours and ten minutes, judged
 * minutes, and the facts of minutes that are not judged yet. All were made by the same expressions.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { evidenceOf, vantageOf } from '../contract/codes.ts';
import * as facts from '../contract/facts.ts';
import { inDirection, judgedFacts, judgedPairs } from './judge-store.ts';
import { judgedNames, judgedPairSums } from './name-store.ts';
import { countAddresses, findTopPair } from './packed.ts';
import {
  type Coverage,
  daySeconds,
  hourSeconds,
  inSpans,
  inStarts,
  tenSeconds,
  uniteSpans,
} from './span-store.ts';

interface RankedRow extends facts.ApplicationKey {
  evidence: number;
  isAttributed: boolean;
  inboundBytes: number | null;
  outboundBytes: number | null;
  vantage: number;
  lastSentMs: number | null;
  /** From minutes that are not judged yet; judged ones are read for the shown rows. */
  locals: Buffer | null;
  pairs: Buffer | null;
  total: number;
  allBytes: number;
  domainBytes: number;
  portBytes: number;
}

type View = { direction: facts.Direction | null };

/** What is kept by name of these parts, with a start; the rows without a name are the bytes of all. */
function namePieces(coverage: Pick<Coverage, 'siteId' | 'names'>, { direction }: View): RawBuilder<unknown> {
  const { siteId, names } = coverage;
  const ofSite = sql`site_id = ${siteId} and ${inDirection(direction)}`;
  const columns = sql`name, protocol, server_port, inbound_bytes, outbound_bytes, evidence, is_attributed, owner, seen, last_sent_at`;
  return sql`select day as start, ${columns} from name_days where ${ofSite} and ${inStarts(names.days, daySeconds, 'day')}
    union all
    select hour, ${columns} from name_hours where ${ofSite} and ${inStarts(names.hours, hourSeconds, 'hour')}
    union all
    select start, ${columns} from name_tens where ${ofSite} and ${inStarts(names.tens, tenSeconds, 'start')}
    union all
    select minute, ${columns} from name_minutes where ${ofSite} and ${inSpans(names.judged)}
    union all
    select minute, ${columns} from name_sums where ${inSpans(names.unjudged)}`;
}

const sameKey = (a: string, b: string) => sql`${sql.ref(`${a}.name`)} = ${sql.ref(`${b}.name`)}
  and ${sql.ref(`${a}.protocol`)} = ${sql.ref(`${b}.protocol`)}
  and ${sql.ref(`${a}.server_port`)} is not distinct from ${sql.ref(`${b}.server_port`)}`;

/** A range's applications by bytes, largest first, with the busiest pair of each. */
export async function rankApplications(
  db: Queryable,
  coverage: Coverage,
  options: View & Pick<facts.Ranking, 'limit' | 'nameContains' | 'topConnections'>,
): Promise<facts.ApplicationUse> {
  const { siteId, names, namePairs: pairs } = coverage;
  const { direction, limit, nameContains = '' } = options;
  const unjudged = uniteSpans(names.unjudged, pairs.unjudged);
  const { rows: found } = await sql<RankedRow | (Omit<RankedRow, 'name'> & { name: null })>`
    with ${judgedFacts({ siteId, judged: [], unjudged, direction })}, ${judgedNames},
    pieces as (${namePieces(coverage, options)}),
    named as (
      select name, protocol, server_port, max(evidence) as evidence, bool_or(is_attributed) as is_attributed,
        sum(inbound_bytes) as inbound, sum(outbound_bytes) as outbound, min(owner) as owner, min(seen) as seen,
        max(last_sent_at) as last_sent_at
      from pieces where name is not null group by name, protocol, server_port
      -- A row that another capture owns is worth a line only where it brings a name.
      having min(owner) is not null or bool_or(is_attributed)),
    sums_of_all as (
      select sum(inbound + outbound) as all_bytes, sum(inbound + outbound) filter (where evidence > 0) as domain_bytes,
        sum(inbound + outbound) filter (where evidence = 0 and is_attributed) as port_bytes
      from named),
    ranked as materialized (
      select *, count(*) over ()::int as total from named where position(lower(${nameContains}) in lower(name)) > 0
      order by coalesce(inbound + outbound, -1) desc, name collate "C", protocol, server_port limit ${limit}),
    locals as (
      select r.name, r.protocol, r.server_port, string_agg(p.locals, ''::bytea) as locals
      from ranked r join name_sums p on ${sameKey('p', 'r')} where ${inSpans(names.unjudged)}
      group by r.name, r.protocol, r.server_port),
    ${judgedPairs({ siteId, judged: [], unjudged: pairs.unjudged, direction })}, ${judgedPairSums},
    pairs as (
      select r.name, r.protocol, r.server_port, string_agg(p.pairs, ''::bytea) as pairs
      from ranked r join pair_sums p on ${sameKey('p', 'r')} group by r.name, r.protocol, r.server_port)
    select r.name, r.protocol, r.server_port, r.evidence, r.is_attributed, r.inbound::float8 as inbound_bytes,
      r.outbound::float8 as outbound_bytes, coalesce(r.owner, r.seen) as vantage, l.locals,
      (extract(epoch from r.last_sent_at) * 1000)::float8 as last_sent_ms, p.pairs, coalesce(r.total, 0) as total,
      coalesce(a.all_bytes, 0)::float8 as all_bytes, coalesce(a.domain_bytes, 0)::float8 as domain_bytes,
      coalesce(a.port_bytes, 0)::float8 as port_bytes
    from sums_of_all a left join ranked r on true left join locals l on ${sameKey('l', 'r')} left join pairs p on ${sameKey('p', 'r')}
    order by coalesce(r.inbound + r.outbound, -1) desc, r.name collate "C", r.protocol, r.server_port`.execute(
    db,
  );
  // The sums stand there even where no name is among them.
  const first = found[0]!;
  const rows = found.filter((row) => row.name !== null);
  const known = options.topConnections ?? new Map<string, facts.ApplicationRow['topConnection']>();
  const namesOf = (all: readonly RankedRow[]) => [...new Set(all.map((row) => row.name))];
  const kept = await readKeptLists(db, coverage, direction, {
    locals: namesOf(rows),
    pairs: namesOf(rows.filter((row) => !known.has(facts.keyText(row)))),
  });
  return {
    rows: rows.map((row) => toApplicationRow(row, kept, known.get(facts.keyText(row)))),
    total: first.total,
    bytes: first.allBytes,
    domainBytes: first.domainBytes,
    portBytes: first.portBytes,
  };
}

function toApplicationRow(
  row: RankedRow,
  kept: KeptLists,
  known: facts.ApplicationRow['topConnection'] | undefined,
): facts.ApplicationRow {
  const { name, protocol, serverPort, isAttributed, inboundBytes, outboundBytes, lastSentMs } = row;
  const packed = (list: 'locals' | 'pairs') =>
    Buffer.concat(
      [row[list], kept[list].get(facts.keyText(row))].filter((part) => part !== null && part !== undefined),
    );
  return {
    name,
    protocol,
    serverPort,
    evidence: evidenceOf(row.evidence),
    isAttributed,
    inboundBytes,
    outboundBytes,
    vantage: vantageOf(row.vantage),
    addresses: countAddresses(packed('locals')),
    lastSentMs,
    topConnection: known === undefined ? findTopPair(packed('pairs')) : known,
  };
}

/** By `keyText`: local addresses, and pairs with bytes, as `packed.ts` reads them. */
export interface KeptLists {
  locals: Map<string, Buffer>;
  pairs: Map<string, Buffer>;
}

/** Stored sums of a range under these names; minutes that are not judged yet are left out. */
export async function readKeptLists(
  db: Queryable,
  coverage: Coverage,
  direction: facts.Direction | null,
  wanted: Record<'locals' | 'pairs', readonly string[]>,
): Promise<KeptLists> {
  const part = (list: 'locals' | 'pairs', table: string, isIn: RawBuilder<unknown>) =>
    sql`select name, protocol, server_port, ${sql.ref(list)} as list from ${sql.table(table)}
      where site_id = ${coverage.siteId} and ${inDirection(direction)} and name = any(${[...wanted[list]]}::text[]) and ${isIn}`;
  const { names: all, namePairs: young } = coverage;
  return {
    locals: await readLists(db, [
      part('locals', 'name_day_locals', inStarts(all.days, daySeconds, 'day')),
      part('locals', 'name_hour_locals', inStarts(all.hours, hourSeconds, 'hour')),
      part('locals', 'name_tens', inStarts(all.tens, tenSeconds, 'start')),
      part('locals', 'name_minutes', inSpans(all.judged)),
    ]),
    pairs: await readLists(db, [
      part('pairs', 'name_pair_hours', inStarts(young.hours, hourSeconds, 'hour')),
      part('pairs', 'name_pair_tens', inStarts(young.tens, tenSeconds, 'start')),
      part('pairs', 'name_pair_minutes', inSpans(young.judged)),
    ]),
  };
}

async function readLists(db: Queryable, parts: readonly RawBuilder<unknown>[]): Promise<Map<string, Buffer>> {
  const { rows } = await sql<facts.ApplicationKey & { list: Buffer }>`
    select name, protocol, server_port, string_agg(list, ''::bytea) as list
    from (${sql.join(parts, sql` union all `)}) lists group by name, protocol, server_port`.execute(db);
  return new Map(rows.map((row) => [facts.keyText(row), row.list]));
}
