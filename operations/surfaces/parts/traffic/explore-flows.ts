/** Flows of the range: customer to server to application, as far as applications are kept. */
import type { Exploration, Flow } from '#operations/protect/index.ts';
import { type FlowEnd, type FlowPair, flowGraph, flowNamesMax } from '#service-kit/explorer/index.ts';
import { type Content, formatBytes, sankey } from '#service-kit/pages/index.ts';
import { nothingIn } from './explore-tables.ts';
import { type ExplorerPlace, nameOf } from './place.ts';
import { onlyHref, type TrafficView } from './traffic-view.ts';

/** Flows that are read, largest first. */
const flowsMax = 2_000;

const endOf = ({ label, value }: { label: string; value: string }): FlowEnd => ({ key: value, label, value });

/** Pairs of neighbouring columns; each server's flows are summed to those of its customer. */
export async function readFlows(explored: Exploration, place: ExplorerPlace): Promise<FlowPair[]> {
  const flows = await explored.flows(flowsMax);
  const hasCustomers = place.flowColumns[0] === 'customer';
  const last = place.flowColumns.length - 2;
  const pairs = flows.map(({ server, application, bytes }) => ({
    ...{ column: last, from: endOf(server), to: endOf(application), size: bytes },
  }));
  if (!hasCustomers) return pairs;
  const sums = Map.groupBy(flows, ({ customer, server }) => JSON.stringify([customer.value, server.value]));
  const first = [...sums.values()].map((of: Flow[]) => ({
    column: 0,
    from: endOf(of[0]!.customer),
    to: endOf(of[0]!.server),
    size: of.reduce((sum, flow) => sum + flow.bytes, 0),
  }));
  return [...first, ...pairs];
}

export function exploreFlows(place: ExplorerPlace, view: TrafficView, pairs: readonly FlowPair[]): Content {
  const columns = place.flowColumns;
  const graph = flowGraph(pairs, {
    top: columns.map((_, column) => largest(pairs, column)),
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
    source: 'applications, which are shown for 24 hours',
    emptyText: nothingIn(view),
  });
}

/** The largest values of a column, by what goes through them. */
function largest(pairs: readonly FlowPair[], column: number): Map<string, number> {
  const sums = new Map<string, number>();
  // A column in the middle is counted once, from its left.
  const isCounted = (pair: FlowPair) => pair.column === (column === 0 ? 0 : column - 1);
  for (const pair of pairs.filter(isCounted)) {
    const { key } = column === 0 ? pair.from : pair.to;
    sums.set(key, (sums.get(key) ?? 0) + pair.size);
  }
  return new Map([...sums].sort(([, a], [, b]) => b - a).slice(0, flowNamesMax));
}
