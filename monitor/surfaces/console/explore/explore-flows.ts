/** Flows of the range: server to application to peer, as far as connections are kept. */
import type { Answer, Row } from '#monitor/explorer/index.ts';
import {
  type FlowEnd,
  type FlowPair,
  flowGraph,
  nameOf,
  nothingIn,
  onlyHref,
  totalsOfNext,
  unattributedPairs,
} from '#service-kit/explorer/index.ts';
import { type Content, formatBytes, formatCount, sankey } from '#service-kit/pages/index.ts';
import { sizeOf } from './explore-tables.ts';
import type { ExploreView } from './explore-view.ts';

export const flowColumns = ['server', 'application', 'peer'] as const;

export interface Flows {
  /** By server: the totals, of which connections hold a part. */
  servers: Answer;
  /** By server and application. */
  left: Answer;
  /** By application and peer. */
  right: Answer;
}

export function exploreFlows(view: ExploreView, { servers, left, right }: Flows): Content {
  const isPackets = left.measure === 'packets';
  const ofServers = pairsOf(left, 0);
  const totals = servers.rows.map((row) => ({ from: endOf(row, 0), size: sizeOf(row.amount, isPackets) }));
  const first = [...ofServers, ...unattributedPairs(0, totals, ofServers)];
  const toPeers = pairsOf(right, 1);
  const pairs = [...first, ...toPeers, ...unattributedPairs(1, totalsOfNext(0, first), toPeers)];
  const graph = flowGraph(pairs, {
    columns: flowColumns.length,
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
    source:
      'counters of addresses; unattributed: no flow is known, as of most packets of an attack, port scans, or before 24 hours',
    emptyText: right.limits[0]?.message ?? nothingIn(view),
  });
}

function pairsOf(answer: Answer, column: number): FlowPair[] {
  const isPackets = answer.measure === 'packets';
  return answer.rows.map((row) => ({
    ...{ column, from: endOf(row, 0), to: endOf(row, 1) },
    size: sizeOf(row.amount, isPackets),
  }));
}

function endOf({ key }: Row, at: number): FlowEnd {
  const { value, label } = key[at]!;
  return { key: value ?? `(${label})`, label, value };
}
