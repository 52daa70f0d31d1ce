/**
 * Flows between columns as a picture: how much goes from each server by which application to which peer.
 *
 * `d3-sankey` computes the places on the server; the picture is plain SVG whose nodes are links, so it needs no script
 * and is read by keyboard. The table below it has every flow in text. Where the wide drawing
 * has no room, the style shows a narrow one with fewer names instead; the other is not displayed, so it is neither read out
 * nor reached by keyboard.
 */
import { attributes, type Content, type Html, html } from './html.ts';
import { link } from './link.ts';
import {
  drawFlows,
  drawNode,
  mostInColumn,
  type PlacedGraph,
  type PlacedNode,
  placeGraph,
  round,
  type SankeyGraph,
} from './sankey-layout.ts';
import { narrowPicture } from './sankey-narrow.ts';

export interface SankeyOptions extends SankeyGraph {
  /** Unique in the page. */
  id: string;
  title: string;
  format: (value: number) => string;
  source?: string | undefined;
  emptyText: string;
}

const width = 1040;
const barWidth = 12;
const nodeGap = 14;
const headHeight = 24;
/** Characters of a label; the link's own name has all of them. */
const labelMax = 30;

/** The picture with its table; a sentence where there are no flows. */
export function sankey(options: SankeyOptions): Html {
  const { title, columns, format } = options;
  const head = html`<figcaption class="chart-title"><span>${title}</span>${
    options.source && html`<span class="source">${options.source}</span>`
  }</figcaption>`;
  const links = options.links.filter((one) => one.value > 0);
  if (links.length === 0)
    return html`<figure class="chart" id="${options.id}">${head}<p class="chart-empty">${options.emptyText}</p></figure>`;
  const used = new Set(links.flatMap(({ from, to }) => [from, to]));
  const graph = { columns, nodes: options.nodes.filter(({ id }) => used.has(id)), links };
  const height = headHeight + Math.max(180, mostInColumn(graph) * 34);
  const placed = placeGraph(graph, { width, height, top: headHeight + 4, barWidth, nodeGap });
  const label = `${title}; the table below has all flows`;
  const nameOf = (node: PlacedNode) => `${columns[node.column] ?? ''} ${node.label}, ${format(node.value)}`;
  return html`<figure class="chart" id="${options.id}">${head}<div class="sankey" tabindex="0" role="group" aria-label="${title}"><svg class="sankey-wide" viewBox="0 0 ${width} ${height}" role="group" aria-label="${label}">${columnHeads(columns)}${drawFlows(placed.links, format)}${placed.nodes.map(
    (node) => drawNode(node, nameOf(node), { above: besideText(node, options) }),
  )}</svg>${narrowPicture({ ...graph, label, format, nameOf })}</div>${flowTable(options, placed)}</figure>`;
}

const at = (column: number, count: number) => (column * (width - barWidth)) / Math.max(1, count - 1);

function columnHeads(columns: readonly string[]): Content {
  return columns.map((name, column) => {
    const isLast = column === columns.length - 1;
    const x = at(column, columns.length) + (isLast ? barWidth : 0);
    return html`<text${attributes({ class: 'sankey-head', x: round(x), y: 14, 'text-anchor': isLast ? 'end' : undefined })}>${name}</text>`;
  });
}

function besideText({ x0, x1, y0, y1, label, column, value }: PlacedNode, options: SankeyOptions): Html {
  const isLast = column === options.columns.length - 1;
  const place = {
    x: round(isLast ? x0 - 6 : x1 + 6),
    y: round((y0 + y1) / 2),
    dy: '0.35em',
    'text-anchor': isLast ? 'end' : undefined,
  };
  return html`<text${attributes(place)}>${shorten(label)} <tspan>${options.format(value)}</tspan></text>`;
}

function shorten(label: string): string {
  return label.length <= labelMax ? label : `${label.slice(0, labelMax - 1)}…`;
}

/** Largest first. A flow of three columns is two rows, because each is a sum of its own. */
function flowTable(options: SankeyOptions, { nodes, links }: PlacedGraph): Html {
  const named = (node: PlacedNode) => (node.href === undefined ? node.label : link(node.href, node.label));
  const rows = links
    .toSorted((a, b) => a.source.column - b.source.column || b.value - a.value)
    .map(
      ({ source, target, value }) =>
        html`<tr><th scope="row">${named(source)}</th><td>${named(target)}</td><td class="kind-figure">${options.format(value)}</td></tr>`,
    );
  return html`<details class="chart-values"><summary>Flows as a table</summary><p class="hint">${links.length} flows between ${nodes.length} names.</p><div class="table-scroll" tabindex="0" role="group" aria-label="${options.title}, flows"><table><thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col" class="kind-figure">Traffic</th></tr></thead><tbody>${rows}</tbody></table></div></details>`;
}
