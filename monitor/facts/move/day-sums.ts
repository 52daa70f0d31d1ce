/** What a day of a site holds in an engine, by table, as two engines are compared by it. */

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
