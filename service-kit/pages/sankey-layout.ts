/** Where the nodes and the flows of a picture are, by `d3-sankey`, and what its drawings have in common. */
import { sankey as layoutSankey, sankeyLinkHorizontal } from 'd3-sankey';
import { REST_COLOUR } from './colours.ts';
import { attributes, type Content, type Html, html } from './html.ts';
import { safeHref } from './link.ts';

export interface SankeyNode {
  id: string;
  label: string;
  /** 0 is the leftmost column. */
  column: number;
  href?: string | undefined;
  /** A number of the palette (`coloursOf`); default grey. */
  colour?: number | undefined;
  /** All names of its column that have no node of their own. */
  isRest?: boolean | undefined;
}

export interface SankeyLink {
  from: string;
  to: string;
  /** Above zero. */
  value: number;
  /** Default the colour of the node it comes from. */
  colour?: number | undefined;
}

/** What is drawn: nodes with flows only. */
export interface SankeyGraph {
  /** Names of the columns, from the left. */
  columns: readonly string[];
  nodes: readonly SankeyNode[];
  /** Links go to a column further right. */
  links: readonly SankeyLink[];
}

/** Sizes of a drawing, in units of its view box. */
export interface SankeySizes {
  width: number;
  height: number;
  /** Above the first node. */
  top: number;
  barWidth: number;
  /** Between two nodes of a column. */
  nodeGap: number;
}

export interface PlacedNode extends SankeyNode {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  value: number;
}

export interface PlacedLink {
  source: PlacedNode;
  target: PlacedNode;
  value: number;
  width: number;
  colour?: number | undefined;
}

export interface PlacedGraph {
  nodes: readonly PlacedNode[];
  links: readonly PlacedLink[];
}

type Format = (value: number) => string;

/** Nodes in the fullest column. */
export function mostInColumn({ columns, nodes }: SankeyGraph): number {
  return Math.max(...columns.map((_, column) => nodes.filter((node) => node.column === column).length));
}

export function placeGraph({ nodes, links }: SankeyGraph, sizes: SankeySizes): PlacedGraph {
  const { width, height, top, barWidth, nodeGap } = sizes;
  const layout = layoutSankey<SankeyNode, object>()
    .nodeId((node) => node.id)
    .nodeAlign((node) => (node as SankeyNode).column)
    .nodeWidth(barWidth)
    .nodePadding(nodeGap)
    .extent([
      [0, top],
      [width, height - 6],
    ]);
  return layout({
    nodes: nodes.map((node) => ({ ...node })),
    links: links.map(({ from, to, value, colour }) => ({ source: from, target: to, value, colour })),
  } as never) as unknown as PlacedGraph;
}

/** All flows; they are lit by the nodes at their ends. */
export function drawFlows(links: readonly PlacedLink[], format: Format): Html {
  return html`<g class="sankey-flows">${links.map((one) => drawFlow(one, format))}</g>`;
}

function drawFlow(one: PlacedLink, format: Format): Html {
  const { source: from, target: to } = one;
  const path = sankeyLinkHorizontal()(one as never) ?? '';
  return html`<path${attributes({
    class: `series-${one.colour ?? from.colour ?? REST_COLOUR}`,
    d: path.replace(/\d+\.\d+/g, (number) => String(round(Number(number)))),
    'stroke-width': Math.max(1, round(one.width)),
    'data-ends': JSON.stringify([from.id, to.id]),
  })}><title>${from.label} to ${to.label}, ${format(one.value)}</title></path>`;
}

/** The bar of a node with what a drawing puts around it; a link where the node leads somewhere. */
export function drawNode(node: PlacedNode, name: string, around: { below?: Content; above: Content }): Html {
  const { x0, x1, y0, y1 } = node;
  const content = html`<title>${name}</title>${around.below}<rect${attributes({ x: round(x0), y: round(y0), width: round(x1 - x0), height: Math.max(1, round(y1 - y0)), rx: 2 })}></rect>${around.above}`;
  const kept = { class: `sankey-node series-${node.colour ?? REST_COLOUR}`, 'data-node': node.id };
  if (node.href === undefined) return html`<g${attributes(kept)}>${content}</g>`;
  return html`<a${attributes({ ...kept, href: safeHref(node.href), 'aria-label': name })}>${content}</a>`;
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
