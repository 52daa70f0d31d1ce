/** Flows of the range: customer to server to application, as far as applications are kept. */
import type { Exploration, RankedValue } from '#operations/protect/index.ts';
import {
  type FlowEnd,
  type FlowPair,
  flowGraph,
  nameOf,
  nothingIn,
  onlyHref,
  unattributedPairs,
} from '#service-kit/explorer/index.ts';
import { type Content, formatBytes, sankey } from '#service-kit/pages/index.ts';
import type { ExplorerPlace } from './place.ts';
import type { TrafficView } from './traffic-view.ts';

/** Flows that are read, largest first. */
const flowsMax = 2_000;

const endOf = ({ label, value }: { label: string; value: string | null }): FlowEnd => ({
  key: value ?? `(${label})`,
  ...{ label, value },
});

/** Pairs of neighbouring columns. Each server has its whole traffic, of which applications hold a part. */
export async function readFlows(explored: Exploration, place: ExplorerPlace): Promise<FlowPair[]> {
  const limit = Math.max(1, explored.servers.length);
  const hasCustomers = place.flowColumns[0] === 'customer';
  const [flows, servers, customers] = await Promise.all([
    explored.flows(flowsMax),
    explored.rank('server', { limit }),
    hasCustomers ? explored.rank('customer', { limit }) : null,
  ]);
  const last = place.flowColumns.length - 2;
  const sizeOf = (row: RankedValue) => row.inboundBytes + row.outboundBytes;
  const totals = servers.rows.map((row) => ({ from: endOf(row), size: sizeOf(row) }));
  const known = flows.map(({ server, application, bytes }) => ({
    ...{ column: last, from: endOf(server), to: endOf(application), size: bytes },
  }));
  const customerOf = new Map(customers?.rows.map((row) => [row.tenantId, endOf(row)]));
  const first = servers.rows.flatMap((row) => {
    const from = customerOf.get(row.tenantId);
    return from ? [{ column: 0, from, to: endOf(row), size: sizeOf(row) }] : [];
  });
  return [...first, ...known, ...unattributedPairs(last, totals, known)];
}

export function exploreFlows(place: ExplorerPlace, view: TrafficView, pairs: readonly FlowPair[]): Content {
  const columns = place.flowColumns;
  const graph = flowGraph(pairs, {
    columns: columns.length,
    colourColumn: columns.length - 1,
    nameOf: (column) => nameOf(columns[column]!),
    hrefOf: (column, value) => onlyHref(view, columns[column]!, value),
  });
  return sankey({
    id: 'flows',
    title: 'Which application on which server',
    columns: columns.map(nameOf),
    ...graph,
    format: formatBytes,
    source:
      'counters of addresses; unattributed: no application is known, as of most packets of an attack, port scans, or before 24 hours',
    emptyText: nothingIn(view),
  });
}
