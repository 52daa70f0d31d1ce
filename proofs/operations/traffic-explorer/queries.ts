/** Random queries of the traffic pages: every dimension and every filter, with values of the asker's and of another customer's. */
import type { Random } from '../customer-api/random.ts';

/** What a customer has, as it can be named in a query. */
export interface Named {
  /** Stands in every name of theirs alone. */
  mark: string;
  serverIds: readonly number[];
  serverNames: readonly string[];
  addresses: readonly string[];
  applications: readonly string[];
}

const dimensions = ['server', 'address', 'app', 'port', 'transport', 'direction'] as const;
/** Of which operators have more than customers, and one is none. */
const groups = [
  ...(['direction', 'server', 'app', 'service', 'port', 'transport', 'address'] as const),
  ...(['customer', 'node', 'cluster', 'sensor'] as const),
];
const tables = ['server', 'app', 'service', 'port', 'transport', 'address', 'steps'] as const;
const orders = ['total', 'in', 'out', 'packets', 'change', 'name', 'last', 'p95', 'nothing'] as const;
const ofAll = ['chart.json', 'servers.json', 'applications.json', 'servers.csv', 'applications.csv'] as const;
/** Filters that operators alone have: for a customer they are none. */
const foreign = ['customer', 'node', 'cluster'] as const;
const ofServer = [
  'chart.json',
  'minutes.json',
  'minutes.csv',
  'applications.json',
  'applications.csv',
] as const;

/** `hours` before `endMs` are those with traffic. Returns the path under the portal. */
export function randomQuery(random: Random, own: Named, other: Named, endMs: number, hours: number): string {
  const pick = <T>(all: readonly T[]): T => all[random.below(all.length)]!;
  // A query that names the other customer has to find nothing of theirs; one that does not, nothing either.
  const whose = () => (random.below(2) === 0 ? own : other);
  const someValue = (dimension: (typeof dimensions)[number]): string => {
    switch (dimension) {
      case 'server':
        return random.below(2) === 0 ? pick(whose().serverNames) : String(pick(whose().serverIds));
      case 'address':
        return pick(whose().addresses);
      case 'app':
        return pick(whose().applications);
      case 'port':
        return pick(['443', 'tcp/443', '53', 'udp/53', '22']);
      case 'transport':
        return pick(['tcp', 'udp', 'sctp']);
      case 'direction':
        return pick(['in', 'out']);
    }
  };
  const filters = dimensions
    .filter(() => random.below(4) === 0)
    .map((dimension) => {
      const values = Array.from({ length: 1 + random.below(3) }, () => someValue(dimension));
      return `${random.below(3) === 0 ? '-' : ''}${dimension}:${values.map((one) => `"${one}"`).join(',')}`;
    });
  const file = pick(ofServer);
  // Some are so long that their steps are hours, which are read in another way; lists of minutes are never of so long a range.
  const days = random.below(4) === 0 && !file.startsWith('minutes') ? 20 + random.below(10) : 0;
  const length = 1 + days * 1440 + random.below(hours * 60);
  const fromMs = endMs - days * 86_400_000 - hours * 3_600_000 + random.below(hours * 60) * 60_000;
  const utc = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  if (random.below(6) === 0) filters.push(`${pick(foreign)}:"${whose().mark}"`);
  const query = new URLSearchParams({
    range: 'custom',
    from: utc(fromMs),
    to: utc(Math.min(endMs, fromMs + length * 60_000)),
    by: pick(groups),
    ...(random.below(3) === 0 && { sort1: pick(orders), dir1: pick(['asc', 'desc']) }),
    ...(random.below(4) === 0 && { compare: 'previous', shape: 'lines', top: pick(['5', '20', '50']) }),
    ...(random.below(3) === 0 && { measure: 'packets' }),
    ...(filters.length > 0 && { q: filters.join(' ') }),
    ...(random.below(5) === 0 && { address: pick(whose().addresses) }),
  });
  if (random.below(3) === 0) return explorerQuery(random, query, pick, () => someValue(pick(dimensions)));
  const place =
    random.below(2) === 0
      ? `/client/traffic/${pick(ofAll)}`
      : `/client/servers/${pick(whose().serverIds)}/traffic/${file}`;
  return `${place}?${query}`;
}

/** A file of one of the explorer's tables, or what its box offers for a beginning of a word. */
function explorerQuery(
  random: Random,
  query: URLSearchParams,
  pick: <T>(all: readonly T[]) => T,
  someValue: () => string,
): string {
  if (random.below(4) === 0) {
    const begun = `${pick(['server', pick(dimensions)])}:${someValue().slice(0, random.below(4))}`;
    query.set('q', begun);
    return `/client/traffic/complete?${query}`;
  }
  const table = pick(tables);
  if (table !== 'steps') query.set('by', table);
  query.set('table', table);
  query.set('format', pick(['csv', 'json']));
  return `/client/traffic/?${query}`;
}
