/** What a server's traffic page is asked beside its explorer, and where its files are. */
import { Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import { filterTextMax, readUrl, type UrlValues } from '#service-kit/explorer/index.ts';
import { type Html, type Range, tabs, withQuery } from '#service-kit/pages/index.ts';
import { readTrafficRange } from '../../parts/index.ts';

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }));

export const TrafficQuery = Type.Object({
  ...{ range: text(20), from: text(40), to: text(40) },
  /** Only this address. */
  address: text(64),
  /** Filters, such as `app:example.com port:443`. */
  q: text(filterTextMax),
  ...{ by: text(20), tables: text(100), table: text(20), use: text(10) },
});

export const trafficPath = (serverId: number): string => `/client/servers/${serverId}/traffic`;

export interface TrafficAsk {
  range: Range;
  address: string | null;
  /** Usage by month instead of by day. */
  isByMonth: boolean;
}

export function readAsk(query: UrlValues, nowMs: number): TrafficAsk {
  const address = readUrl(query).text('address');
  return {
    range: readTrafficRange(query, nowMs, '6h'),
    address: address && (canonicalAddress(address) ?? address),
    isByMonth: query.use === 'month',
  };
}

/** A range that begins with the server: nothing is drawn before there was anything to observe. */
export function sinceCreation(range: Range, createdMs: number, firstStepMs: number | undefined): Range {
  const stepMs = range.stepSeconds * 1000;
  const beginMs = Math.floor(Math.min(createdMs, firstStepMs ?? createdMs) / stepMs) * stepMs;
  if (beginMs <= range.fromMs) return range;
  // At least one step stays, or an axis would have no length.
  return { ...range, fromMs: Math.min(beginMs, range.toMs - stepMs) };
}

const labels = { now: 'Now', applications: 'Applications', minutes: 'Minutes', usage: 'Usage' } as const;
type TrafficTab = keyof typeof labels;

/** `url` is that of the page. */
export function trafficTabs(serverId: number, current: TrafficTab, url: string): Html {
  const path = trafficPath(serverId);
  const asked = new URLSearchParams(url.split('?')[1]);
  const kept = Object.fromEntries(
    ['range', 'from', 'to', 'address'].map((name) => [name, asked.get(name) ?? undefined]),
  );
  const pages = {
    now: withQuery(path, kept),
    applications: withQuery(path, { ...kept, by: 'application' }),
    minutes: withQuery(`${path}/minutes`, kept),
    usage: `${path}/usage`,
  };
  return tabs(
    'Pages of the traffic',
    Object.entries(labels).map(([name, label]) => ({
      ...{ label, href: pages[name as TrafficTab], current: name === current },
    })),
  );
}
