/**
 * The picture of flows for a phone: as wide as the window, with fewer names.
 *
 * Names stand above their bars, each in its column's share of the width, so that the columns are side by side without
 * scrolling. A column shows its largest names; the others are one node, and all of them are in the table.
 */
import { REST_COLOUR } from './colours.ts';
import { attributes, type Html, html } from './html.ts';
import {
  drawFlows,
  drawNode,
  mostInColumn,
  type PlacedNode,
  placeGraph,
  round,
  type SankeyGraph,
  type SankeyLink,
  type SankeyNode,
} from './sankey-layout.ts';

/** Nodes of a column, the one of the rest among them. */
const nodesMax = 6;
const width = 340;
const barWidth = 10;
const headHeight = 20;
/** A name and its value above each bar; together with the bar they have room for a finger. */
const nodeGap = 44;
/** Space for the bars of a column, for each node in the fullest one. */
const barsHeight = 24;

export interface NarrowOptions extends SankeyGraph {
  /** The name of the drawing. */
  label: string;
  format: (value: number) => string;
  /** What a node is called where its label alone is not enough. */
  nameOf: (node: PlacedNode) => string;
}

export function narrowPicture({ label, format, nameOf, ...whole }: NarrowOptions): Html {
  const graph = joinSmallest(whole);
  const top = headHeight + nodeGap;
  const most = mostInColumn(graph);
  const height = top + (most - 1) * nodeGap + Math.max(90, most * barsHeight) + 6;
  const placed = placeGraph(graph, { width, height, top, barWidth, nodeGap });
  const count = graph.columns.length;
  const heads = graph.columns.map(
    (name, column) =>
      html`<text${attributes({ class: 'sankey-head', y: 14, ...textPlace(column, count) })}>${fit(name, width / count - 8)}</text>`,
  );
  const nodes = placed.nodes.map((node) => drawNode(node, nameOf(node), aroundOf(node, count, format)));
  return html`<svg class="sankey-narrow" viewBox="0 0 ${width} ${height}" role="group" aria-label="${label}">${heads}${drawFlows(placed.links, format)}${nodes}</svg>`;
}

function aroundOf(node: PlacedNode, count: number, format: NarrowOptions['format']) {
  const { y0, y1, column } = node;
  const boxWidth = width / count;
  const place = textPlace(column, count);
  const left = { start: 0, middle: place.x - boxWidth / 2, end: width - boxWidth }[place['text-anchor']];
  const finger = { x: round(left), y: round(y0 - nodeGap), width: round(boxWidth) };
  return {
    below:
      node.href !== undefined &&
      html`<rect${attributes({ class: 'sankey-finger', ...finger, height: round(y1 - y0 + nodeGap) })}></rect>`,
    above: html`<text${attributes({ ...place, y: round(y0 - 19) })}>${node.isRest ? 'others' : fit(node.label, boxWidth - 8)}</text> <text${attributes({ ...place, class: 'sankey-value', y: round(y0 - 5) })}>${format(node.value)}</text>`,
  };
}

/** The first column's texts begin at its bars, the last one's end there. */
function textPlace(column: number, count: number) {
  if (column === 0) return { x: 0, 'text-anchor': 'start' as const };
  if (column === count - 1) return { x: width, 'text-anchor': 'end' as const };
  const x = round((column * (width - barWidth)) / Math.max(1, count - 1) + barWidth / 2);
  return { x, 'text-anchor': 'middle' as const };
}

/** The largest names of each column by themselves, the others as one. */
function joinSmallest({ columns, nodes, links }: SankeyGraph): SankeyGraph {
  const sizes = sizesOf(links);
  const kept = new Map<string, SankeyNode>();
  for (const [column, name] of columns.entries()) {
    const all = nodes.filter((node) => node.column === column);
    const named = all.filter((node) => !node.isRest);
    const known = all.find((node) => node.isRest);
    if (all.length <= nodesMax) {
      for (const node of all) kept.set(node.id, node);
      continue;
    }
    const largest = named.toSorted((a, b) => sizes.get(b.id)! - sizes.get(a.id)!).slice(0, nodesMax - 1);
    const rest = known ?? { id: `${column} rest`, label: restLabel(name), column, isRest: true };
    for (const node of all) kept.set(node.id, largest.includes(node) ? node : rest);
  }
  const joined = new Map<string, SankeyLink>();
  for (const { from, to, value, colour } of links) {
    const ends = { from: kept.get(from)!.id, to: kept.get(to)!.id };
    const key = JSON.stringify(ends);
    const before = joined.get(key);
    const own = colour ?? kept.get(from)!.colour;
    joined.set(key, {
      ...ends,
      value: value + (before?.value ?? 0),
      colour: !before || before.colour === own ? own : REST_COLOUR,
    });
  }
  return { columns, nodes: [...new Set(kept.values())], links: [...joined.values()] };
}

/** What is called so has no node of its own. */
export const restLabel = (column: string) => `other ${column.toLowerCase()}s`;

/** Of each node: what comes in or goes out, whichever is more. */
function sizesOf(links: readonly SankeyLink[]): Map<string, number> {
  const sums = { from: new Map<string, number>(), to: new Map<string, number>() };
  for (const link of links)
    for (const end of ['from', 'to'] as const)
      sums[end].set(link[end], (sums[end].get(link[end]) ?? 0) + link.value);
  const ids = new Set([...sums.from.keys(), ...sums.to.keys()]);
  return new Map([...ids].map((id) => [id, Math.max(sums.from.get(id) ?? 0, sums.to.get(id) ?? 0)]));
}

/** Widths of letters in the text of a drawing, 13 units high; in most fonts they are a little smaller. */
const narrowLetters = /[iljftrI1.,:;'|()[\]\s/-]/;
const wideLetters = /[mwMW@%]|[^\u0020-\u024f]/;
const widthOf = (letter: string) =>
  narrowLetters.test(letter) ? 5 : wideLetters.test(letter) ? 13 : /[A-Z]/.test(letter) ? 9.5 : 7.8;

/** As much of a text as fits into this width. */
function fit(text: string, room: number): string {
  const letters = [...text];
  let used = 0;
  const fitting = letters.findIndex((letter) => {
    used += widthOf(letter);
    return used > room;
  });
  return fitting < 0 ? text : `${letters.slice(0, Math.max(1, fitting - 1)).join('')}…`;
}
