/** Flows of the range: customer to server to application, as far as applications are kept. */
import type { Exploration, Flow } from '#operations/protect/index.ts';
import {
  type Content,
  coloursOf,
  formatBytes,
  REST_COLOUR,
  type SankeyLink,
  type SankeyNode,
  sankey,
} from '#service-kit/pages/index.ts';
import { type ExplorerPlace, nameOf } from './place.ts';
import { onlyHref, type TrafficView } from './traffic-view.ts';

/** Names in one column; the others are one. */
const namesMax = 8;
/** Flows that are read, largest first. */
const flowsMax = 2_000;

interface End {
  label: string;
  value: string;
}

interface Pair {
  column: number;
  from: End;
  to: End;
  bytes: number;
}

/** Pairs of neighbouring columns; each server's flows are summed to those of its customer. */
export async function readFlows(explored: Exploration, place: ExplorerPlace): Promise<Pair[]> {
  const flows = await explored.flows(flowsMax);
  const hasCustomers = place.flowColumns[0] === 'customer';
  const last = place.flowColumns.length - 2;
  const pairs = flows.map(({ server, application, bytes }) => ({
    ...{ column: last, from: server, to: application, bytes },
  }));
  if (!hasCustomers) return pairs;
  const sums = Map.groupBy(flows, ({ customer, server }) => JSON.stringify([customer.value, server.value]));
  const first = [...sums.values()].map((of: Flow[]) => ({
    column: 0,
    from: of[0]!.customer,
    to: of[0]!.server,
    bytes: of.reduce((sum, flow) => sum + flow.bytes, 0),
  }));
  return [...first, ...pairs];
}

export function exploreFlows(place: ExplorerPlace, view: TrafficView, pairs: readonly Pair[]): Content {
  const columns = place.flowColumns;
  const top = columns.map((_, column) => largest(pairs, column));
  const colours = coloursOf([...top.at(-1)!.keys()]);
  const nodes = new Map<string, SankeyNode>();
  const links = new Map<string, SankeyLink>();
  const nodeOf = ({ label, value }: End, column: number): SankeyNode => {
    const dimension = columns[column]!;
    if (!top[column]!.has(value)) {
      const many = `other ${nameOf(dimension).toLowerCase()}s`;
      return { id: `${column} rest`, label: many, column, colour: REST_COLOUR };
    }
    const href = onlyHref(view, dimension, value);
    const colour = dimension === 'app' ? colours.get(value) : undefined;
    // A space can't begin a value, so this is no name of the rest.
    return { id: `${column}  ${value}`, label, column, href, colour };
  };
  for (const pair of pairs) {
    const [from, to] = [nodeOf(pair.from, pair.column), nodeOf(pair.to, pair.column + 1)];
    nodes.set(from.id, from);
    nodes.set(to.id, to);
    const key = JSON.stringify([from.id, to.id]);
    const flow = links.get(key) ?? { from: from.id, to: to.id, value: 0, colour: to.colour };
    flow.value += pair.bytes;
    links.set(key, flow);
  }
  return sankey({
    id: 'flows',
    title: 'Which application on which server',
    columns: columns.map(nameOf),
    nodes: [...nodes.values()],
    links: [...links.values()],
    format: formatBytes,
    source: 'applications, which are shown for 24 hours',
    emptyText: 'No application of this range passes the filters. Remove a filter or choose another range.',
  });
}

/** The largest values of a column, by what goes through them. */
function largest(pairs: readonly Pair[], column: number): Map<string, number> {
  const sums = new Map<string, number>();
  // A column in the middle is counted once, from its left.
  const isCounted = (pair: Pair) => pair.column === (column === 0 ? 0 : column - 1);
  for (const pair of pairs.filter(isCounted)) {
    const { value } = column === 0 ? pair.from : pair.to;
    sums.set(value, (sums.get(value) ?? 0) + pair.bytes);
  }
  return new Map([...sums].sort(([, a], [, b]) => b - a).slice(0, namesMax));
}
