/** From pairs of neighbouring columns to the picture of flows: the largest names by themselves, the others as one. */
import {
  coloursOf,
  REST_COLOUR,
  restLabel,
  type SankeyLink,
  type SankeyNode,
} from '#service-kit/pages/index.ts';

/** Names in one column; the others are one. */
export const flowNamesMax = 8;

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

export interface FlowGraphOptions {
  /** By column: the keys that stand by themselves. */
  top: readonly ReadonlyMap<string, unknown>[];
  /** Whose names have colours, which their flows take. */
  colourColumn: number;
  /** Name of a column's values, such as `server`. */
  nameOf: (column: number) => string;
  hrefOf: (column: number, value: string) => string;
}

export function flowGraph(
  pairs: readonly FlowPair[],
  { top, colourColumn, nameOf, hrefOf }: FlowGraphOptions,
): { nodes: SankeyNode[]; links: SankeyLink[] } {
  const colours = coloursOf([...top[colourColumn]!.keys()]);
  const nodes = new Map<string, SankeyNode>();
  const links = new Map<string, SankeyLink>();
  const nodeOf = ({ key, label, value }: FlowEnd, column: number): SankeyNode => {
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
