/** Days of sites in ClickHouse, as the source and as the target of a move. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Engine } from '../clickhouse/engine-store.ts';
import { ch, type Fragment, number, plain, second } from '../clickhouse/statement.ts';
import { readForeign } from '../clickhouse/verdict-store.ts';
import type { SiteDay } from '../control/engine-use-store.ts';

/** A day of a site with the number of its captures' minutes. */
export interface MeasuredDay extends SiteDay {
  captureMinutes: number;
}

/** Days from that minute on. */
export async function listDays(engine: Engine, fromMinute: number): Promise<MeasuredDay[]> {
  return await engine.rows<MeasuredDay>(ch`
    select site_id as siteId, intDiv(toUnixTimestamp(minute), 86400) * 86400 as day, toFloat64(count()) as captureMinutes
    from capture_minutes where minute >= ${second(fromMinute)} group by siteId, day`);
}

/** Removes a day of a site; returns when it is removed. */
export async function clearDay(engine: Engine, { siteId, day }: SiteDay): Promise<void> {
  for (const table of comparedTables)
    await engine.run(ch`
      alter table ${plain(table)} delete where site_id = ${number(siteId)} and minute >= ${second(day)} and minute < ${second(day + 86_400)}
      settings mutations_sync = 1`);
}

/** Sums of a day; with `peersFrom` at the end of time of all networks of peers. */
export async function sumDay(
  engine: Engine,
  db: Queryable,
  siteId: number,
  bounds: SumBounds,
): Promise<DaySums> {
  const { fromMinute, toMinute, pairsFrom, peersFrom, peerPairsFrom } = bounds;
  const foreign = await readForeign(db, { siteIds: [siteId], fromMinute, toMinute });
  const within = (from: number) =>
    ch`site_id = ${number(siteId)} and minute >= ${second(Math.max(from, fromMinute))} and minute < ${second(toMinute)}`;
  const sum = (bytes: string, isForeign: Fragment) =>
    ch`toString(count()) as rows, toString(sum(toInt128(${plain(bytes)}))) as bytes, toString(sum(toInt128(packets))) as packets,
      toString(countIf(${isForeign})) as foreign`;
  const one = async (statement: Fragment): Promise<TableSums> =>
    (await engine.rows<TableSums>(statement))[0]!;
  const between = 'inbound_bytes + outbound_bytes';
  return {
    capture_minutes: await one(ch`
      select ${sum('ip_bytes', plain('0'))} from (
        select least(sum(ip_bytes), 9007199254740991) as ip_bytes, least(sum(packets), 9007199254740991) as packets
        from (select minute as at, capture_id, ip_bytes, packets from capture_minutes where ${within(fromMinute)})
        group by at, capture_id)`),
    host_minutes: await one(ch`
      select ${sum('rx_bytes + tx_bytes + lan_rx_bytes + lan_tx_bytes + own_scan_rx_bytes + own_scan_tx_bytes + dropped_rx_bytes + dropped_tx_bytes', foreign('address'))} from host_minutes where ${within(fromMinute)}`),
    application_facts: await one(
      ch`select ${sum(between, foreign('local'))} from application_facts where ${within(fromMinute)}`,
    ),
    endpoint_pairs: await one(
      ch`select ${sum('client_bytes + server_bytes', foreign('local'))} from endpoint_pairs where ${within(pairsFrom)}`,
    ),
    peer_minutes: await one(ch`
      select ${sum(between, foreign('local'))} from peer_minutes
      where ${within(fromMinute)} and (minute < ${second(peersFrom)} or minute >= ${second(peerPairsFrom)})`),
  };
}

// What a day of a site holds in an engine, by table, as two engines are compared by it.

/** Tables of facts as ClickHouse has them; PostgreSQL keeps networks of peers in other ones. */
export const comparedTables = [
  'capture_minutes',
  'host_minutes',
  'application_facts',
  'endpoint_pairs',
  'peer_minutes',
] as const;
export type ComparedTable = (typeof comparedTables)[number];

/** Whole numbers as text: sums may be larger than a double holds exactly. */
export interface TableSums {
  rows: string;
  bytes: string;
  packets: string;
  /** Rows of addresses that a server of another node had. */
  foreign: string;
}

export type DaySums = Record<ComparedTable, TableSums>;

/** What of a day is compared, seconds: what is older is being removed by both engines, each at its own time. */
export interface SumBounds {
  fromMinute: number;
  toMinute: number;
  pairsFrom: number;
  /** Networks of peers of hours from this one on are made of exact pairs. */
  peersFrom: number;
  /** Networks of peers of these hours are compared only as long as the pairs are there. */
  peerPairsFrom: number;
}

export interface DayDifference {
  siteId: number;
  day: number;
  table: ComparedTable;
  what: keyof TableSums;
  source: string;
  target: string;
}

export function compareSums(
  { siteId, day }: { siteId: number; day: number },
  source: DaySums,
  target: DaySums,
): DayDifference[] {
  return comparedTables.flatMap((table) =>
    (['rows', 'bytes', 'packets', 'foreign'] as const)
      .filter((what) => source[table][what] !== target[table][what])
      .map((what) => ({
        ...{ siteId, day, table, what },
        source: source[table][what],
        target: target[table][what],
      })),
  );
}

const dayText = (day: number) => new Date(day * 1000).toISOString().slice(0, 10);

export const describeDifference = ({ siteId, day, table, what, source, target }: DayDifference): string =>
  `site ${siteId}, ${dayText(day)}, ${table}: ${source} ${what} and ${target} in the copy`;
