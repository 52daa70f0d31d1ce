/** Random queries of the traffic pages: every dimension and every filter, with values of the asker's and of another customer's. */
import type { Random } from '../customer-api/random.ts';

/** What a customer has, as it can be named in a query. */
export interface Named {
  serverIds: readonly number[];
  serverNames: readonly string[];
  addresses: readonly string[];
  applications: readonly string[];
}

const dimensions = ['server', 'address', 'app', 'port', 'transport', 'direction'] as const;
const groups = ['direction', 'server', 'app', 'port', 'sensor'] as const;
const ofAll = ['chart.json', 'servers.json', 'applications.json', 'servers.csv', 'applications.csv'] as const;
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
  const length = 1 + random.below(hours * 60);
  const fromMs = endMs - hours * 3_600_000 + random.below(hours * 60) * 60_000;
  const utc = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  const query = new URLSearchParams({
    range: 'custom',
    from: utc(fromMs),
    to: utc(Math.min(endMs, fromMs + length * 60_000)),
    by: pick(groups),
    ...(filters.length > 0 && { q: filters.join(' ') }),
    ...(random.below(5) === 0 && { address: pick(whose().addresses) }),
  });
  const place =
    random.below(2) === 0
      ? `/client/traffic/${pick(ofAll)}`
      : `/client/servers/${pick(whose().serverIds)}/traffic/${pick(ofServer)}`;
  return `${place}?${query}`;
}
