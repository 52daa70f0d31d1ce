/** Countries and autonomous systems of the peers of a range, named at the time of reading: nothing of them is stored. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Exploration, Explored, ExploredFilter, FactStore, PeerNetwork } from '#monitor/facts/index.ts';
import type { NetworkRecord } from '#monitor/peers/index.ts';
import type { Limit, Query } from './query.ts';
import { isOfNetwork, noSuchValue, uses } from './resolve.ts';

/** Records of addresses, in their order. */
export type DescribeNetworks = (addresses: readonly string[]) => Promise<NetworkRecord[]>;

/** The largest peers are named; a busy day has more than one can look up in a page's time. */
const peersMax = 50_000;
/** Look-ups before others get their turn. */
const describedAtOnce = 2_000;

export interface PeerNetworks {
  networks: PeerNetwork[];
  /** Filters by country and AS as filters by peer. */
  filters: ExploredFilter[];
  /** By the text of an AS. */
  asNames: ReadonlyMap<string, string>;
  limits: Limit[];
}

const asText = (number: number) => `AS${number}`;

/** The largest peers of a question, and the records of these in their order. */
export interface DescribedPeers {
  found: Explored;
  peers: string[];
  records: NetworkRecord[];
}

export async function describePeers(
  facts: Pick<FactStore, 'explore'>,
  describe: DescribeNetworks,
  asked: Exploration,
): Promise<DescribedPeers> {
  const found = await facts.explore(asked);
  const peers = found.rows.flatMap(({ key }) => key[0] ?? []);
  return { found, peers, records: await describeAll(describe, peers) };
}

/**
 * `asked` is the query with all of its other filters; `before`: seconds before its range that are compared with it. `describe` is null
 * where networks are not known.
 */
export async function readPeerNetworks(
  describe: ((asked: Exploration) => Promise<DescribedPeers>) | null,
  query: Pick<Query, 'by' | 'filters'>,
  asked: Exploration,
  before: number,
): Promise<PeerNetworks> {
  if (!uses(query, 'country', 'as')) return { networks: [], filters: [], asNames: new Map(), limits: [] };
  const limits: Limit[] = [];
  if (describe === null)
    limits.push({
      code: 'no_network_file',
      dimension: 'country',
      message: 'Countries and ASs are unknown: set SVC_MONITOR_NETWORK_FILE to files that name them.',
    });
  const described = describe === null ? null : await describe(peersOf(asked, before));
  const { found = null, peers = [], records = [] } = described ?? {};
  if (found && found.groups > found.rows.length)
    limits.push({
      code: 'networks_of_largest_peers',
      dimension: 'country',
      message: `Of ${found.groups.toLocaleString('en-US')} peers, countries and ASs of the ${peersMax.toLocaleString('en-US')} largest are known here. Add a filter or choose a shorter range.`,
    });
  const networks = peers.map((peer, i): PeerNetwork => {
    const { country, asNumber } = records[i]!;
    return { peer, country, as: asNumber === null ? null : asText(asNumber) };
  });
  const filters = query.filters.filter(isOfNetwork).map(({ dimension, is, values }): ExploredFilter => {
    const within = networks.filter((one) => one[dimension] !== null && values.includes(one[dimension]));
    const seen = new Set(within.map((one) => one[dimension]));
    if (describe !== null)
      for (const value of values) if (!seen.has(value)) limits.push(noSuchValue(dimension, value));
    return { dimension: 'peer', is, values: within.map((one) => one.peer) };
  });
  return { networks, filters, asNames: namesOf(records), limits };
}

/** The largest peers of the facts of a question. */
const peersOf = (asked: Exploration, before: number): Exploration => ({
  ...asked,
  fromMinute: asked.fromMinute - before,
  ...{ by: ['peer'], owners: [], networks: [], stepSeconds: null, measure: 'bytes', order: 'size' },
  rows: { limit: peersMax },
});

async function describeAll(
  describe: DescribeNetworks,
  addresses: readonly string[],
): Promise<NetworkRecord[]> {
  const records: NetworkRecord[] = [];
  for (let at = 0; at < addresses.length; at += describedAtOnce) {
    if (at > 0) await nextTurn();
    records.push(...(await describe(addresses.slice(at, at + describedAtOnce))));
  }
  return records;
}

function namesOf(records: readonly NetworkRecord[]): Map<string, string> {
  return new Map(
    records.flatMap(({ asNumber, asName }) =>
      asNumber === null || asName === null ? [] : [[asText(asNumber), asName] as const],
    ),
  );
}
