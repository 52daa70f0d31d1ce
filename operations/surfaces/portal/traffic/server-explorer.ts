/** The explorer of one server: its Traffic tab, with the server as a filter that stays. */
import type { FastifyRequest } from 'fastify';
import { customerBox, type StepRow } from '#operations/protect/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import {
  answerChart,
  type Dimension,
  type ExplorerBody,
  type ExplorerBox,
} from '#service-kit/explorer/index.ts';
import {
  type ChartArea,
  type ChartData,
  type ChartReason,
  html,
  type Range,
} from '#service-kit/pages/index.ts';
import {
  type ChartAnswers,
  type ExplorerPlace,
  lossNote,
  mostText,
  type ReadExplorer,
  trafficBody,
} from '../../parts/index.ts';
import { eventHref } from './server-flags.ts';
import { trafficPath } from './traffic-url.ts';

/** What can be asked of one server. */
export const serverBox: ExplorerBox = {
  ...customerBox,
  groups: customerBox.groups.filter((one) => one !== 'server'),
  filters: customerBox.filters.filter((one) => one !== 'server'),
};

const fixed = (dimension: Dimension, value: string) => ({ dimension, is: true, values: [value] });

/** `address`: only this one; null: all. */
export const serverPlace = (server: Server, address: string | null): ExplorerPlace => ({
  ...{ path: trafficPath(server.id), files: `${trafficPath(server.id)}/`, box: serverBox },
  ...{ defaultRange: '6h', tables: ['application', 'port'], example: 'app:example.com port:443' },
  fixed: [
    // By its cluster as well, because a number may be the name of another.
    fixed('server', `${server.clusterId}/${server.id}`),
    ...(address === null ? [] : [fixed('address', address)]),
  ],
  flowColumns: ['server', 'application'],
  whoOf: (request: FastifyRequest) => ({ ...request.visitor!, canSave: false, canShare: false }),
  eventHref,
  hrefOf: () => null,
});

/** What stands around the lines of the server's chart. */
export interface ServerAround {
  steps: readonly StepRow[];
  /** Since the server exists. */
  range: Range;
  areas: readonly ChartArea[];
  reasons: readonly ChartReason[];
}

type Drawn = Pick<ReadExplorer, 'view' | 'chart' | 'flags'>;

/** The minutes with all that is known of them, or what a view of the explorer draws. */
export function serverChart({ view, chart, flags }: Drawn, around: ServerAround): ChartData {
  const { range, areas, reasons } = around;
  const isOfMinutes =
    view.by === null && view.filters.length === 0 && view.measure === 'bytes' && view.compare === null;
  const data = answerChart(view, chart.answer, { reasons, areas, flags: flags.flags });
  return {
    ...data,
    ...(isOfMinutes && minutesOf(around, chart)),
    range: { fromMs: range.fromMs, toMs: range.toMs },
  };
}

/** In and out of all minutes, with what was expected and what was an attack. */
function minutesOf({ steps, range }: ServerAround, { answer }: ChartAnswers): Partial<ChartData> {
  const hasExpected = steps.some((step) => step.expectedBps !== null);
  const hasAttack = steps.some((step) => (step.ddosBps ?? 0) > 0);
  const dropped = steps.map(droppedBps);
  const line = (role: 'in' | 'out', value: number | null) =>
    value === null ? [] : [{ label: `95th percentile ${role}`, role, value }];
  return {
    timesMs: steps.map((step) => step.at.getTime()),
    stepMs: range.stepSeconds * 1000,
    notes: new Map(steps.map((step) => [step.at.getTime(), lossNote(step.reason)])),
    series: [
      { label: 'Out', role: 'out', values: steps.map((step) => step.outboundBps) },
      { label: 'In', role: 'in', values: steps.map((step) => step.inboundBps) },
      ...(hasExpected
        ? [{ label: 'Expected, in and out', isExpected: true, values: steps.map((step) => step.expectedBps) }]
        : []),
      ...(hasAttack
        ? [{ label: 'Suspected attack', role: 'attack' as const, values: steps.map((step) => step.ddosBps) }]
        : []),
      ...(dropped.some((bps) => (bps ?? 0) > 0)
        ? [{ label: 'Dropped at the hypervisor, in and out', values: dropped }]
        : []),
    ],
    lines: [...line('out', answer.percentile95Out), ...line('in', answer.percentile95In)],
  };
}

/** What was dropped, by the minutes of which the bytes are known; null without any. */
function droppedBps(step: StepRow): number | null {
  const { droppedInboundBytes, droppedOutboundBytes, minutes } = step;
  if (droppedInboundBytes === null && droppedOutboundBytes === null) return null;
  return (((droppedInboundBytes ?? 0) + (droppedOutboundBytes ?? 0)) * 8) / (minutes * 60);
}

export function serverBody(read: ReadExplorer, around: ServerAround): ExplorerBody {
  const most = mostText(read);
  return {
    ...trafficBody(read),
    drawn: serverChart(read, around),
    notes: most && html`<p class="hint">${most}</p>`,
  };
}
