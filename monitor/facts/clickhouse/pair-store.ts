/** Reads of exact pairs, which are kept for 24 hours. */
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { directionOf, evidenceOf } from '../contract/codes.ts';
import * as facts from '../contract/facts.ts';
import { type Sources, scopeOf } from './address-store.ts';
import type { Engine } from './engine-store.ts';
import { inDirection, type Judging, judgedPairs, owners } from './judge-store.ts';
import { within } from './select-store.ts';
import { ch, type Fragment, number, plain, texts } from './statement.ts';
import { addressOf } from './verdict-store.ts';

/** The part of a range of which pairs are kept. */
export async function youngPart<T extends facts.SiteRange>(db: Queryable, range: T): Promise<T> {
  const oldest = Math.ceil(((await readNowMs(db)) - facts.pairsKeptMs) / 1000);
  return { ...range, fromMinute: Math.min(Math.max(range.fromMinute, oldest), range.toMinute) };
}

/** Order of pairs: the most bytes first, those without known bytes last. */
const pairsInOrder = plain(`(-known, -bytes, length(client), client, length(server), server)`);

/** The busiest pair of each of these applications, and how many there are. */
export async function findTopPairs(
  { engine, db }: Sources,
  judging: Judging,
  keys: readonly facts.ApplicationKey[],
): Promise<Map<string, NonNullable<facts.ApplicationRow['topConnection']>>> {
  const young = await youngPart(db(), judging);
  if (keys.length === 0 || young.fromMinute === young.toMinute) return new Map();
  const isAsked = ch`(name, protocol, server_port) in (select arrayJoin(arrayZip(${texts(keys.map((one) => one.name))},
    arrayMap(p -> toUInt8(p), ${texts(keys.map((one) => String(one.protocol)))}),
    arrayMap(p -> toInt32(p), ${texts(keys.map((one) => String(one.serverPort ?? -1)))}))))`;
  const rows = await engine.rows<{
    name: string;
    protocol: number;
    port: number;
    top: [string, string];
    pairs: number;
  }>(ch`
    with ${owners(young)}, ${judgedPairs(young, isAsked)},
    ways as (
      select name, protocol, server_port, client, server, toInt64(max(owns)) as known,
        toInt64(sumIf(inbound + outbound, owns)) as bytes
      from judged_pairs group by name, protocol, server_port, client, server)
    select name, protocol, server_port as port, argMin((hex(client), hex(server)), ${pairsInOrder}) as top, toFloat64(count()) as pairs
    from ways group by name, protocol, server_port`);
  return new Map(
    rows.map((row) => [
      facts.keyText({ ...row, serverPort: portOf(row.port) }),
      { client: addressOf(row.top[0]), server: addressOf(row.top[1]), pairs: row.pairs },
    ]),
  );
}

/** Exact pairs and what named them, by minute, the busiest first. */
export async function listPairs(
  sources: Sources,
  range: facts.ViewRange,
  limit: number,
): Promise<facts.PairClassification[]> {
  const { engine, db } = sources;
  const scope = await youngPart(db(), await scopeOf(sources, range));
  return await readPairs(
    engine,
    limit,
    ch`${within(scope)} and ${inDirection(range.direction)} and not (${scope.foreign('local')})`,
  );
}

async function readPairs(
  engine: Engine,
  limit: number,
  isAsked: Fragment,
): Promise<facts.PairClassification[]> {
  const rows = await engine.rows<{
    at: number;
    direction: number;
    c: string;
    s: string;
    name: string;
    protocol: number;
    port: number;
    evidence: number;
    captures: number;
    best: [number, number, number];
  }>(ch`
    select toUnixTimestamp(minute) as at, direction, hex(client) as c, hex(server) as s, name, protocol, server_port as port, evidence,
      toFloat64(count()) as captures,
      argMax((toFloat64(from_client), toFloat64(from_server), toFloat64(sent)), (from_client + from_server, from_client, sent)) as best
    from (
      select minute, direction, client, server, toString(name) as name, protocol, server_port, evidence, capture_id,
        sum(client_bytes) as from_client, sum(server_bytes) as from_server, sum(packets) as sent
      from endpoint_pairs where ${isAsked}
      group by minute, direction, client, server, name, protocol, server_port, evidence, capture_id)
    group by minute, direction, client, server, name, protocol, server_port, evidence
    order by best.1 + best.2 desc, minute desc, length(client), client, length(server), server, name, protocol, ${portsInOrder},
      evidence, direction
    limit ${number(limit)}`);
  return rows.map((row) => ({
    minute: row.at,
    direction: directionOf(row.direction),
    client: addressOf(row.c),
    server: addressOf(row.s),
    name: row.name,
    protocol: row.protocol,
    serverPort: portOf(row.port),
    evidence: evidenceOf(row.evidence),
    captures: row.captures,
    clientBytes: row.best[0],
    serverBytes: row.best[1],
    packets: row.best[2],
  }));
}

// Columns of services, and what they are in answers.

/** A port as the tables hold it. */
export const portOf = (port: number): number | null => (port < 0 ? null : port);

/** Those without a port last. */
export const portsInOrder = plain('server_port = -1, server_port');
