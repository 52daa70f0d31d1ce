/** Flows of the range: server to application to peer, as far as connections are kept. */
import type { Answer } from '#monitor/explorer/index.ts';
import { type FlowEnd, type FlowPair, flowGraph, flowNamesMax } from '#service-kit/explorer/index.ts';
import { type Content, formatBytes, formatCount, sankey } from '#service-kit/pages/index.ts';
import { type ExploreView, nameOf, nothingIn, onlyHref } from './explore-view.ts';

export const flowColumns = ['server', 'application', 'peer'] as const;

export interface Flows {
  /** By server and application. */
  left: Answer;
  /** By application and peer. */
  right: Answer;
}

export function exploreFlows(view: ExploreView, { left, right }: Flows): Content {
  const isPackets = left.measure === 'packets';
  const pairs = [pairsOf(left, 0), pairsOf(right, 1)].flat();
  const graph = flowGraph(pairs, {
    top: flowColumns.map((_, column) => largest(pairs, column)),
    colourColumn: 1,
    nameOf: (column) => nameOf(flowColumns[column]!),
    hrefOf: (column, value) => onlyHref(view, flowColumns[column]!, value),
  });
  return sankey({
    id: 'flows',
    title: 'Who talks to whom',
    columns: flowColumns.map(nameOf),
    ...graph,
    format: isPackets ? (value) => `${formatCount(Math.round(value))} packets` : formatBytes,
    source: 'connections between exact addresses, which are kept for 24 hours',
    emptyText: right.limits[0]?.message ?? nothingIn(view),
  });
}

function pairsOf(answer: Answer, column: number): FlowPair[] {
  const isPackets = answer.measure === 'packets';
  return answer.rows.map(({ key, amount }) => {
    const end = (at: number): FlowEnd => ({
      key: key[at]!.value ?? `(${key[at]!.label})`,
      label: key[at]!.label,
      value: key[at]!.value,
    });
    const size = isPackets ? (amount.packets ?? 0) : amount.inBytes + amount.outBytes;
    return { column, from: end(0), to: end(1), size };
  });
}

/** The largest names of a column, by what goes through them. */
function largest(pairs: readonly FlowPair[], column: number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const pair of pairs) {
    const end = pair.column === column ? pair.from : pair.column + 1 === column ? pair.to : null;
    if (end) sums.set(end.key, (sums.get(end.key) ?? 0) + pair.size);
  }
  return new Map([...sums].sort(([, a], [, b]) => b - a).slice(0, flowNamesMax));
}
