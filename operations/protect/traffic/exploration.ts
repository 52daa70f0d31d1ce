/** What an exploration of traffic asks and answers: values of a dimension with their bytes, and lines of a chart. */
import type { Amount, Dimension, ExplorerBox, Filter, Measure } from '#service-kit/explorer/index.ts';
import type { TrafficServer } from './explorer-store.ts';

/** What traffic is grouped by, in the order in which it is offered; `service` is an application with its port. */
export const rankedDimensions = [
  'server',
  'customer',
  'address',
  'application',
  'service',
  'port',
  'transport',
  'node',
  'cluster',
] as const satisfies readonly Dimension[];
export type RankedDimension = (typeof rankedDimensions)[number];

/** What operators can ask. */
export const staffBox: ExplorerBox = {
  groups: rankedDimensions,
  filters: [...rankedDimensions.filter((one) => one !== 'service'), 'side'],
  ...{ hasSegments: false, topMax: 50 },
};
/** Whose servers they are is the customer; who else is on a node, and where, is not theirs to know. */
const ofStaff: readonly Dimension[] = ['customer', 'node', 'cluster'];
export const customerBox: ExplorerBox = {
  ...staffBox,
  groups: staffBox.groups.filter((one) => !ofStaff.includes(one)),
  filters: staffBox.filters.filter((one) => !ofStaff.includes(one)),
};

/** `share`: of the measure. */
export const rankOrders = ['share', 'in', 'out', 'packets', 'change', 'name', 'last', 'p95'] as const;
export type RankOrder = (typeof rankOrders)[number];

export interface ExplorationAsk {
  fromMs: number;
  toMs: number;
  /** The step that a chart of one server has; with many servers it is longer. */
  stepSeconds: number;
  filters: readonly Filter[];
  /**
   * Default: bytes. A minute has the packets of an address, both directions together (NET-2.4.2): nothing is known of them by
   * application or by direction, so that answers of applications stay those of bytes.
   */
  measure?: Measure;
}

/** Bytes of one value of a dimension. */
export interface RankedValue {
  /** As a filter takes it; null for what has no name. */
  value: string | null;
  label: string;
  /** The port of a `service`. */
  service: string | null;
  /** Of a server, an address or a customer. */
  serverId: number | null;
  tenantId: number | null;
  inboundBytes: number;
  outboundBytes: number;
  /** Both directions; null where they are not known or not asked for. */
  packets: number | null;
  /** Of the measure, of all that the filters let pass; null where there is nothing. */
  share: number | null;
  /** Of the time before; null where it was not observed. Its packets are null also where a part of them is not known. */
  previous: Amount | null;
  lastSentAt: Date | null;
  /** Bits per second, of the observed minutes; null where it was not read. */
  inboundP95: number | null;
  outboundP95: number | null;
}

export interface Ranking {
  dimension: RankedDimension;
  rows: RankedValue[];
  /** Values that are not among the rows, and their bytes. */
  others: { count: number; inboundBytes: number; outboundBytes: number; packets: number | null };
  /** Bytes that no value of this dimension is known of, such as those without an application. */
  unnamed: { inboundBytes: number; outboundBytes: number } | null;
  /** Bytes of the provider's own port scans, which are of no value; null where nothing is said of them. */
  ownScans: { inboundBytes: number; outboundBytes: number } | null;
}

/** A line of a chart; values are bits or packets per second, null in a gap. */
export interface ExploredLine {
  value: string | null;
  label: string;
  isRest: boolean;
  rates: (number | null)[];
}

export interface ExploredLines {
  /** Of every value of the lines. */
  times: Date[];
  lines: ExploredLine[];
}

/** In and out of everything that passes, step by step. */
export interface ExploredCourse {
  times: Date[];
  inboundBps: (number | null)[];
  outboundBps: (number | null)[];
  /** Packets per second, both directions together. */
  pps: (number | null)[];
  inboundBytes: number[];
  outboundBytes: number[];
  /** Observed minutes of each step. */
  minutes: number[];
}

export interface ExploredTotal {
  inboundBytes: number;
  outboundBytes: number;
  /** Of the same length of time before; null where it was not observed or is not kept. Its packets are null also where a part of them is not known. */
  previous: Amount | null;
  inboundP95: number | null;
  outboundP95: number | null;
  /** Null where no minute has them or they were not asked for. */
  packets: number | null;
  /** Packets per second. */
  packetsP95: number | null;
  /** Some observed minutes have no packets: the figures are those of the others. */
  arePacketsPartial: boolean;
  /** Of what the 95th percentiles are: the length of their means, 60 for the minutes themselves. */
  percentileSeconds: number;
}

/** What an application of a server used. */
export interface Flow {
  customer: { label: string; value: string };
  server: { label: string; value: string };
  application: { label: string; value: string };
  bytes: number;
}

/** A name by which it is filtered is a number where the name alone means several, or looks like one. */
const filterValue = (id: number, name: string, isAlone: boolean) =>
  isAlone && !/^\d+$/.test(name) ? name : String(id);

/** How often each name is there, in any case of its letters; each thing counts once. */
function countNames(names: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) {
    const key = name.toLowerCase();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

type NamedServer = Pick<TrafficServer, 'id' | 'name'>;

/** The name by which a server of these is filtered: with its number where the name alone means several. */
export function serverNamer(servers: readonly NamedServer[]): (server: NamedServer) => string {
  const counts = countNames(servers.map(({ name }) => name));
  return ({ id, name }) => filterValue(id, name, counts.get(name.toLowerCase()) === 1);
}

/** The same of customers. */
export function customerValues(servers: readonly TrafficServer[]): Map<number, string> {
  const names = new Map<number, string>();
  for (const { tenantId, tenantName } of servers) names.set(tenantId, tenantName);
  const counts = countNames(names.values());
  const values = new Map<number, string>();
  for (const [id, name] of names) values.set(id, filterValue(id, name, counts.get(name.toLowerCase()) === 1));
  return values;
}
