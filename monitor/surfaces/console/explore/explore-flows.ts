/** Flows of the range: server to application to peer, as far as connections are kept. */
import type { Answer, Dimension } from '#monitor/explorer/index.ts';
import {
  type Content,
  coloursOf,
  formatBytes,
  formatCount,
  REST_COLOUR,
  type SankeyLink,
  type SankeyNode,
  sankey,
} from '#service-kit/pages/index.ts';
import { type ExploreView, nameOf, onlyHref } from './explore-view.ts';

export const flowColumns = ['server', 'application', 'peer'] as const;
/** Names in one column; the others are one. */
const namesMax = 8;

export interface Flows {
  /** By server and application. */
  left: Answer;
  /** By application and peer. */
  right: Answer;
}

export function exploreFlows(view: ExploreView, { left, right }: Flows): Content {
  const isPackets = left.measure === 'packets';
  const pairs = [pairsOf(left, 0), pairsOf(right, 1)].flat();
  const top = flowColumns.map((_, column) => largest(pairs, column));
  const colours = coloursOf([...top[1]!.keys()]);
  const nodes = new Map<string, SankeyNode>();
  const links = new Map<string, SankeyLink>();
  for (const pair of pairs) {
    const [from, to] = [nodeOf(pair.from, pair.column), nodeOf(pair.to, pair.column + 1)];
    nodes.set(from.id, from);
    nodes.set(to.id, to);
    const key = `${from.id} ${to.id}`;
    const application = pair.column === 0 ? to : from;
    const link = links.get(key) ?? { from: from.id, to: to.id, value: 0, colour: application.colour };
    link.value += pair.size;
    links.set(key, link);
  }
  function nodeOf({ key, label, value }: End, column: number): SankeyNode {
    const dimension: Dimension = flowColumns[column]!;
    if (!top[column]!.has(key))
      return {
        id: `${column} rest`,
        label: `other ${nameOf(dimension).toLowerCase()}s`,
        column,
        colour: REST_COLOUR,
      };
    return {
      id: `${column} ${key}`,
      label,
      column,
      href: value === null ? undefined : onlyHref(view, dimension, value),
      colour: column === 1 ? colours.get(key) : undefined,
    };
  }
  return sankey({
    id: 'flows',
    title: 'Who talks to whom',
    columns: flowColumns.map(nameOf),
    nodes: [...nodes.values()],
    links: [...links.values()],
    format: isPackets ? (value) => `${formatCount(Math.round(value))} packets` : formatBytes,
    source: 'connections between exact addresses, which are kept for 24 hours',
    emptyText:
      right.limits[0]?.message ??
      'No connections of this range match the filters. Remove a filter or choose another range.',
  });
}

interface End {
  key: string;
  label: string;
  value: string | null;
}

interface Pair {
  column: number;
  from: End;
  to: End;
  size: number;
}

function pairsOf(answer: Answer, column: number): Pair[] {
  const isPackets = answer.measure === 'packets';
  return answer.rows.map(({ key, amount }) => {
    const end = (at: number): End => ({
      key: key[at]!.value ?? `(${key[at]!.label})`,
      label: key[at]!.label,
      value: key[at]!.value,
    });
    const size = isPackets ? (amount.packets ?? 0) : amount.inBytes + amount.outBytes;
    return { column, from: end(0), to: end(1), size };
  });
}

/** The largest names of a column, by what goes through them. */
function largest(pairs: readonly Pair[], column: number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const pair of pairs) {
    const end = pair.column === column ? pair.from : pair.column + 1 === column ? pair.to : null;
    if (end) sums.set(end.key, (sums.get(end.key) ?? 0) + pair.size);
  }
  return new Map([...sums].sort(([, a], [, b]) => b - a).slice(0, namesMax));
}
