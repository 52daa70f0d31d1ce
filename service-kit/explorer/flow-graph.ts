/** From pairs of neighbouring columns to the picture of flows: the largest names by themselves, the others as one. */
import {
  coloursOf,
  REST_COLOUR,
  restLabel,
  type SankeyLink,
  type SankeyNode,
} from '#service-kit/pages/index.ts';

/** Names in one column; the others are one. */
const flowNamesMax = 8;

export interface FlowEnd {
  key: string;
  label: string;
  /** As a filter takes it; null: unknown. */
  value: string | null;
}

export interface FlowPair {
  /** Of `from`; `to` is in the next one. */
  column: number;
  from: FlowEnd;
  to: FlowEnd;
  size: number;
}

/** Traffic of which no name in this column is known. A space can't begin a key. */
const unclassified: FlowEnd = { key: ' unclassified', label: 'Unclassified', value: null };

/**
 * Pairs to `Unclassified` for what the pairs of a column leave of each name's total, so that a picture has the sums of the tables
 * beside it. What is unclassified in the column before stays so.
 */
export function unclassifiedPairs(
  column: number,
  totals: readonly { from: FlowEnd; size: number }[],
  pairs: readonly FlowPair[],
): FlowPair[] {
  const known = new Map<string, number>();
  for (const pair of pairs)
    if (pair.column === column) known.set(pair.from.key, (known.get(pair.from.key) ?? 0) + pair.size);
  return totals.flatMap(({ from, size }) => {
    const left = size - (known.get(from.key) ?? 0);
    return left > 0 ? [{ column, from, to: unclassified, size: left }] : [];
  });
}

/** What goes from a column's names into the next column, by the name there: the totals of that column. */
export function totalsOfNext(column: number, pairs: readonly FlowPair[]): { from: FlowEnd; size: number }[] {
  const ofNext = Map.groupBy(
    pairs.filter((pair) => pair.column === column),
    ({ to }) => to.key,
  );
  return [...ofNext.values()].map((of) => ({
    from: of[0]!.to,
    size: of.reduce((sum, { size }) => sum + size, 0),
  }));
}

export interface FlowGraphOptions {
  /** Number of columns. */
  columns: number;
  /** Whose names have colours, which their flows take. */
  colourColumn: number;
  /** Name of a column's values, such as `server`. */
  nameOf: (column: number) => string;
  hrefOf: (column: number, value: string) => string;
}

export function flowGraph(
  pairs: readonly FlowPair[],
  { columns, colourColumn, nameOf, hrefOf }: FlowGraphOptions,
): { nodes: SankeyNode[]; links: SankeyLink[] } {
  const top = Array.from({ length: columns }, (_, column) => largest(pairs, column));
  const colours = coloursOf([...top[colourColumn]!]);
  const nodes = new Map<string, SankeyNode>();
  const links = new Map<string, SankeyLink>();
  const nodeOf = ({ key, label, value }: FlowEnd, column: number): SankeyNode => {
    if (key === unclassified.key) return { id: `${column} ${key}`, label, column, colour: REST_COLOUR };
    if (!top[column]!.has(key)) {
      const label = restLabel(nameOf(column));
      return { id: `${column} rest`, label, column, colour: REST_COLOUR, isRest: true };
    }
    return {
      // A space can't begin a key, so this is no name of the rest.
      id: `${column}  ${key}`,
      ...{ label, column },
      href: value === null ? undefined : hrefOf(column, value),
      colour: column === colourColumn ? colours.get(key) : undefined,
    };
  };
  for (const pair of pairs) {
    const [from, to] = [nodeOf(pair.from, pair.column), nodeOf(pair.to, pair.column + 1)];
    nodes.set(from.id, from);
    nodes.set(to.id, to);
    const key = JSON.stringify([from.id, to.id]);
    const { colour } = pair.column === colourColumn ? from : to;
    const flow = links.get(key) ?? { from: from.id, to: to.id, value: 0, colour };
    flow.value += pair.size;
    links.set(key, flow);
  }
  return { nodes: [...nodes.values()], links: [...links.values()] };
}

/** The names of a column that stand by themselves, largest first; a column in the middle is counted from its left. */
function largest(pairs: readonly FlowPair[], column: number): Set<string> {
  const sums = new Map<string, number>();
  for (const pair of pairs) {
    if (pair.column !== Math.max(0, column - 1)) continue;
    const { key } = column === 0 ? pair.from : pair.to;
    if (key !== unclassified.key) sums.set(key, (sums.get(key) ?? 0) + pair.size);
  }
  const bySize = [...sums].sort(([, a], [, b]) => b - a).slice(0, flowNamesMax);
  return new Set(bySize.map(([key]) => key));
}
