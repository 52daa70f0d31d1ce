/** The explorer: the traffic of everything that the reader reaches, by any dimension. */
import type { FastifyRequest } from 'fastify';
import type { Exploration } from '#operations/protect/index.ts';
import type { SavedView } from '#operations/saved-views/index.ts';
import {
  type AnsweredTable,
  type Dimension,
  type ExplorerBody,
  explorerPage,
  type FlowPicture,
  savedViewLinks,
  savedViewsSection,
  stepText,
  viewQueryOf,
} from '#service-kit/explorer/index.ts';
import {
  badge,
  type Content,
  emptyState,
  field,
  formatBytes,
  formatCount,
  html,
  link,
  pageHeader,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { Flags } from './flags.ts';
import type { Explorer, ExplorerPlace, ExplorerSurface, PeerLink } from './place.ts';
import type { ChartAnswers } from './read-answers.ts';
import type { TrafficView } from './traffic-view.ts';

export interface ReadExplorer {
  place: ExplorerPlace;
  who: Explorer;
  explored: Exploration;
  view: TrafficView;
  chart: ChartAnswers;
  /** What happened to the servers. */
  flags: Flags;
  tables: readonly AnsweredTable[];
  /** Null: the chart is shown. */
  flows: FlowPicture | null;
  peerLink: PeerLink | null;
}

export interface TrafficPage extends ReadExplorer {
  place: ExplorerSurface;
  views: readonly SavedView[];
}

export function trafficPage(request: FastifyRequest, page: TrafficPage): Content {
  const { place, view, views, who, explored } = page;
  // Files are of the tables also where the page shows none.
  const content = explorerPage(request, {
    ...trafficBody(page),
    ...{ title: 'Traffic', range: view.range, state: stateOf(page) },
    above: savedLinks(place, view, views),
    below: savedSection(place, view, views, who),
  });
  if (countAll(explored) > 0) return content;
  return [
    pageHeader({ title: 'Traffic', state: stateOf(page) }),
    html`<div class="card">${emptyState({
      title: 'No servers yet',
      text: 'The traffic of a server appears here one or two minutes after it was deployed.',
      ...(place.deploy && { action: place.deploy }),
    })}</div>`,
    savedLinks(place, view, views),
    savedSection(place, view, views, who),
  ];
}

export function trafficBody(page: ReadExplorer): ExplorerBody {
  const { place, view, explored, chart, flags, tables, flows } = page;
  const { path, files, box, example } = place;
  const { answer, whole, reasons } = chart;
  const rangeName = view.range.name === 'custom' ? undefined : view.range.name;
  return {
    ...{ view, nowMs: explored.nowMs, answer, totals: whole, tables, flows },
    form: {
      ...{ path, completePath: `${files}complete`, box, example },
      labelOf: (dimension, value) => nameIn(explored, dimension, value),
    },
    table: {
      fields: { in: 'inbound_bytes', out: 'outbound_bytes' },
      moreOf: (row, dimension) => {
        const href = place.hrefOf(row.details!, rangeName);
        const peers = page.peerLink?.(row, dimension, explored) ?? '';
        return [href && link(href, 'Open', { kind: 'quiet', label: `Open ${row.label}` }), peers];
      },
    },
    around: { reasons, flags: flags.flags },
    chartNote: flags.note,
    chart: {
      dataUrl: view.url.replace(path, `${files}chart.json`),
      source: `${stepText(answer.stepSeconds!)}, observed at the hypervisors; gaps stay empty`,
    },
  };
}

/** The name of what is filtered by its number. */
function nameIn({ reached }: Exploration, dimension: Dimension, value: string): string {
  const id = /^(?:\d+\/)?(\d+)$/.exec(value)?.[1];
  if (id === undefined) return value;
  if (dimension === 'server') return reached.find((server) => String(server.id) === id)?.name ?? value;
  if (dimension !== 'customer') return value;
  return reached.find(({ tenantId }) => String(tenantId) === value)?.tenantName ?? value;
}

const countAll = ({ reached, hiddenCount }: Exploration): number => reached.length + hiddenCount;

function stateOf({ explored, tables, view }: TrafficPage): { tone: Tone; text: string } {
  const { servers, hiddenCount } = explored;
  const all = countAll(explored);
  if (all === 0) return { tone: 'neutral', text: 'No servers yet.' };
  const hidden =
    hiddenCount === 0 ? '' : ` ${formatCount(hiddenCount)} with protection views off not counted.`;
  const counted = `${formatCount(servers.length)} of ${formatCount(all)} servers`;
  if (servers.length === 0)
    return { tone: 'neutral', text: `None of ${formatCount(all)} servers passes the filters.${hidden}` };
  const most = mostText({ tables, view });
  return most === null
    ? { tone: 'neutral', text: `Nothing observed of ${counted}.${hidden}` }
    : { tone: 'good', text: `${most} ${counted}.${hidden}`.trim() };
}

/** `web-1 used the most: 12.0 kB in, 3.00 kB out.` of the first table; blank: it has another order; null: it has no rows. */
export function mostText({ tables, view }: Pick<ReadExplorer, 'tables' | 'view'>): string | null {
  const first = tables[0]?.answer.rows[0];
  if (tables[0] === undefined || first === undefined) return null;
  const { by, direction } = view.sorts[tables[0].dimension]!;
  if (by !== 'share' || direction === 'asc') return '';
  const { inBytes, outBytes } = first.amount;
  const packets = view.measure === 'packets' ? `${formatCount(first.amount.packets)} packets, ` : '';
  return `${first.key[0]!.label} used the most: ${packets}${formatBytes(inBytes)} in, ${formatBytes(outBytes)} out.`;
}

/** Views of the explorer under a name: links to them, and what saves and removes them. */
const hrefOf = (place: ExplorerPlace) => (query: string) =>
  query === '' ? place.path : `${place.path}?${query}`;
const queryOf = (view: TrafficView) => viewQueryOf(view.url.split('?')[1] ?? '');

/** Above the filters; the one that is shown is marked. */
const savedLinks = (place: ExplorerPlace, view: TrafficView, views: readonly SavedView[]): Content =>
  savedViewLinks(views, queryOf(view), hrefOf(place));

function savedSection(
  place: ExplorerPlace,
  view: TrafficView,
  views: readonly SavedView[],
  who: Explorer,
): Content {
  const forWhom = who.canShare ? 'for you or for all operators' : 'for you alone';
  return savedViewsSection({
    ...{ views, shown: queryOf(view), hrefOf: hrefOf(place), action: `${place.path}views` },
    ...{ canSave: who.canSave, csrfToken: who.csrfToken },
    description: `Filters, range and pictures under a name, ${forWhom}.`,
    more:
      who.canShare &&
      field({
        ...{ kind: 'select', name: 'for', id: 'view-for', label: 'For', value: 'me' },
        options: [
          { value: 'me', label: 'Me' },
          { value: 'operators', label: 'All operators' },
        ],
      }),
    noteOf: (one) => one.isShared && [' ', badge('neutral', 'all operators')],
    removalText: (one) =>
      one.isShared ? 'It goes for all operators. The traffic stays.' : 'The view goes, the traffic stays.',
  });
}
