/**
 * Flows between columns as a picture: how much goes from each server by which application to which peer.
 *
 * `d3-sankey` computes the places on the server; the picture is plain SVG whose nodes are links, so it needs no script
 * and is read by keyboard. The table below it has every flow in text. On a phone the picture scrolls in its own box.
 */
import { sankey as layoutSankey, sankeyLinkHorizontal } from 'd3-sankey';
import { attributes, type Content, type Html, html } from './html.ts';
import { link, safeHref } from './link.ts';

export interface SankeyNode {
  id: string;
  label: string;
  /** 0 is the leftmost column. */
  column: number;
  href?: string | undefined;
  /** A number of the palette (`coloursOf`); default grey. */
  colour?: number | undefined;
}

export interface SankeyLink {
  from: string;
  to: string;
  /** Above zero. */
  value: number;
  /** Default the colour of the node it comes from. */
  colour?: number | undefined;
}

export interface SankeyOptions {
  /** Unique in the page. */
  id: string;
  title: string;
  /** Names of the columns, from the left. */
  columns: readonly string[];
  nodes: readonly SankeyNode[];
  /** Links go to a column further right. */
  links: readonly SankeyLink[];
  format: (value: number) => string;
  source?: string | undefined;
  emptyText: string;
}

interface PlacedNode extends SankeyNode {
  x0?: number;
  x1?: number;
  y0?: number;
  y1?: number;
  value?: number;
}

interface PlacedLink {
  source: PlacedNode | string | number;
  target: PlacedNode | string | number;
  value: number;
  width?: number;
  colour?: number | undefined;
}

const width = 1040;
const barWidth = 12;
const nodeGap = 14;
const headHeight = 24;
/** Characters of a label; the link's own name has all of them. */
const labelMax = 30;
const grey = 8;

/** The picture with its table; a sentence where there are no flows. */
export function sankey(options: SankeyOptions): Html {
  const head = html`<figcaption class="chart-title"><span>${options.title}</span>${
    options.source && html`<span class="source">${options.source}</span>`
  }</figcaption>`;
  const links = options.links.filter((one) => one.value > 0);
  if (links.length === 0)
    return html`<figure class="chart" id="${options.id}">${head}<p class="chart-empty">${options.emptyText}</p></figure>`;
  const { nodes, placed, height } = place(options, links);
  return html`<figure class="chart" id="${options.id}">${head}<div class="sankey" tabindex="0" role="region" aria-label="${options.title}"><svg viewBox="0 0 ${width} ${height}" role="group" aria-label="${options.title}; the table below has all flows">${columnHeads(options.columns)}<g class="sankey-flows">${placed.map((one) => flow(one, options.format))}</g>${nodes.map(
    (node) => bar(node, options),
  )}</svg></div>${flowTable(options, nodes, placed)}</figure>`;
}

function place(options: SankeyOptions, links: readonly SankeyLink[]) {
  const used = new Set(links.flatMap(({ from, to }) => [from, to]));
  const nodes: PlacedNode[] = options.nodes.filter(({ id }) => used.has(id)).map((node) => ({ ...node }));
  const most = Math.max(
    ...options.columns.map((_, column) => nodes.filter((node) => node.column === column).length),
  );
  const height = headHeight + Math.max(180, most * 34);
  const layout = layoutSankey<PlacedNode, PlacedLink>()
    .nodeId((node) => node.id)
    .nodeAlign((node) => (node as PlacedNode).column)
    .nodeWidth(barWidth)
    .nodePadding(nodeGap)
    .extent([
      [0, headHeight + 4],
      [width, height - 6],
    ]);
  const graph = layout({
    nodes,
    links: links.map(({ from, to, value, colour }) => ({ source: from, target: to, value, colour })),
  } as never);
  return { nodes: graph.nodes as PlacedNode[], placed: graph.links as PlacedLink[], height };
}

const at = (column: number, count: number) => (column * (width - barWidth)) / Math.max(1, count - 1);

function columnHeads(columns: readonly string[]): Content {
  return columns.map((name, column) => {
    const isLast = column === columns.length - 1;
    const x = at(column, columns.length) + (isLast ? barWidth : 0);
    return html`<text${attributes({ class: 'sankey-head', x: round(x), y: 14, 'text-anchor': isLast ? 'end' : undefined })}>${name}</text>`;
  });
}

const ends = (one: PlacedLink) => ({ from: one.source as PlacedNode, to: one.target as PlacedNode });

function flow(one: PlacedLink, format: SankeyOptions['format']): Html {
  const { from, to } = ends(one);
  const path = sankeyLinkHorizontal()(one as never) ?? '';
  return html`<path${attributes({
    class: `series-${one.colour ?? from.colour ?? grey}`,
    d: path.replace(/\d+\.\d+/g, (number) => String(round(Number(number)))),
    'stroke-width': Math.max(1, round(one.width ?? 1)),
    'data-ends': JSON.stringify([from.id, to.id]),
  })}><title>${from.label} to ${to.label}, ${format(one.value)}</title></path>`;
}

function bar(node: PlacedNode, options: SankeyOptions): Html {
  const { x0 = 0, x1 = 0, y0 = 0, y1 = 0, value = 0 } = node;
  const isLast = node.column === options.columns.length - 1;
  const name = `${options.columns[node.column] ?? ''} ${node.label}, ${options.format(value)}`;
  const content = html`<title>${name}</title><rect${attributes({ x: round(x0), y: round(y0), width: barWidth, height: Math.max(1, round(y1 - y0)), rx: 2 })}></rect><text${attributes(
    {
      x: round(isLast ? x0 - 6 : x1 + 6),
      y: round((y0 + y1) / 2),
      dy: '0.35em',
      'text-anchor': isLast ? 'end' : undefined,
    },
  )}>${shorten(node.label)} <tspan>${options.format(value)}</tspan></text>`;
  const kept = { class: `sankey-node series-${node.colour ?? grey}`, 'data-node': node.id };
  if (node.href === undefined) return html`<g${attributes(kept)}>${content}</g>`;
  return html`<a${attributes({ ...kept, href: safeHref(node.href), 'aria-label': name })}>${content}</a>`;
}

function shorten(label: string): string {
  return label.length <= labelMax ? label : `${label.slice(0, labelMax - 1)}…`;
}

/** Largest first. A flow of three columns is two rows, because each is a sum of its own. */
function flowTable(
  options: SankeyOptions,
  nodes: readonly PlacedNode[],
  placed: readonly PlacedLink[],
): Html {
  const named = (node: PlacedNode) => (node.href === undefined ? node.label : link(node.href, node.label));
  const rows = [...placed]
    .sort((a, b) => ends(a).from.column - ends(b).from.column || b.value - a.value)
    .map((one) => {
      const { from, to } = ends(one);
      return html`<tr><th scope="row">${named(from)}</th><td>${named(to)}</td><td class="kind-figure">${options.format(one.value)}</td></tr>`;
    });
  return html`<details class="chart-values"><summary>Flows as a table</summary><p class="hint">${placed.length} flows between ${nodes.length} names.</p><div class="table-scroll" tabindex="0" role="region" aria-label="${options.title}, flows"><table><thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col" class="kind-figure">Traffic</th></tr></thead><tbody>${rows}</tbody></table></div></details>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
