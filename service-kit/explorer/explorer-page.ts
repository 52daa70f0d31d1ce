/** The page of an explorer, from its answers. */
import type { FastifyRequest } from 'fastify';
import {
  askButton,
  banner,
  type ChartData,
  type Content,
  cellColumn,
  chart,
  code,
  field,
  form,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPacketRate,
  hiddenField,
  html,
  isoTime,
  link,
  pageHeader,
  type Range,
  rangePicker,
  refreshing,
  sankey,
  section,
  stat,
  stats,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { fileHref, offerData } from '#service-kit/web/index.ts';
import { type Amount, type Answer, type Limit, sizeOf } from './answer.ts';
import { answerChart, type ChartAround, chartUnit, type FlowPair, flowGraph } from './answer-chart.ts';
import { answerTable, changeText, type TableOptions } from './answer-table.ts';
import { type Dimension, manyOf, nameOf } from './dimensions.ts';
import { type ExploreFormOptions, exploreForm } from './filter-form.ts';
import { sidesOf } from './filter-text.ts';
import { type ExploreView, type Measure, nothingIn, onlyHref, viewQueryOf } from './view.ts';

export interface AnsweredTable {
  dimension: Dimension;
  answer: Answer;
}

/** What an explorer shows below its header; the programs differ in what they read, and where links lead. */
export interface ExplorerBody {
  view: ExploreView;
  nowMs: number;
  form: ExploreFormOptions;
  /** Of the chart. */
  answer: Answer;
  /** What the figures above the chart are of. */
  totals: Answer;
  /** That of the chart's dimension first, where it has one. */
  tables: readonly AnsweredTable[];
  table: Pick<TableOptions, 'fields' | 'moreOf'>;
  /** Null: the chart is shown. */
  flows: FlowPicture | null;
  around: ChartAround;
  /** Drawn in place of the answer, which it has more of. */
  drawn?: ChartData;
  /** Behind the totals and behind the chart. */
  notes?: Content;
  chartNote?: string | null;
  chart: { dataUrl: string; source: string };
}

export interface ExplorerPage extends ExplorerBody {
  title: string;
  range: Range;
  state: { tone: Tone; text: Content };
  /** Beside the choice of the range. */
  actions?: Content;
  /** Above the form, such as links to saved views. */
  above: Content;
  /** Below everything. */
  below: Content;
}

export interface FlowPicture {
  columns: readonly Dimension[];
  /** Whose names have colours. */
  colourColumn: number;
  title: string;
  source: string;
  /** Of their sizes. */
  measure: Measure;
  pairs: readonly FlowPair[];
  /** What of them has no answer. */
  limits?: readonly Limit[];
}

export function explorerPage(request: FastifyRequest, page: ExplorerPage): Content {
  const { view, range, nowMs } = page;
  return [
    refreshing({ id: 'explore-state', url: view.url, everySeconds: 60 }, [
      pageHeader({
        title: page.title,
        state: page.state,
        actions: [rangePicker({ url: view.url, range, nowMs }), page.actions ?? ''],
      }),
    ]),
    page.above,
    explorerBody(request, page),
    page.below,
  ];
}

/** The form, and what renews itself. */
export function explorerBody(request: FastifyRequest, body: ExplorerBody): Content {
  const { view, nowMs, answer, tables } = body;
  const data = body.drawn ?? answerChart(view, answer, body.around);
  offerSteps(request, body, data);
  // Files are of the tables, so these are made also where the page shows none.
  const drawn = tables.map(({ dimension, answer: one }) => {
    const isWide = dimension === view.by;
    return { isWide, content: answerTable(request, view, dimension, one, { ...body.table, nowMs, isWide }) };
  });
  const contentOf = (isWide: boolean) =>
    drawn.filter((one) => one.isWide === isWide).map((one) => one.content);
  return [
    exploreForm(view, body.form),
    refreshing({ id: 'explore', url: view.url, everySeconds: 60 }, [
      limitBanners(body),
      totals(body),
      body.notes ?? '',
      pictureTabs(view),
      body.flows ? flowPicture(body, body.flows) : timeChart(request, body, data),
      contentOf(true),
      html`<div class="side-by-side">${contentOf(false)}</div>`,
    ]),
  ];
}

/** Each limit once, although every table asked. */
function limitBanners({ answer, tables, flows }: ExplorerBody): Content {
  const all = [answer, ...tables.map((one) => one.answer), { limits: flows?.limits ?? [] }];
  const limits = new Map<string, Limit>(
    all.flatMap((one) => one.limits.map((limit) => [limit.message, limit] as const)),
  );
  return [...limits.values()].map(({ title = 'Not everything can be answered', message }) =>
    banner({ tone: 'info', title, text: message }),
  );
}

function totals({ view, totals: answer }: ExplorerBody): Content {
  const { total, measure, previousTotal, series, percentileSeconds } = answer;
  const counted = sidesOf(view.filters);
  const isPackets = measure === 'packets';
  const minutes = series.minutes.reduce((sum, each) => sum + each, 0);
  const size = sizeOf(total, measure);
  // What was not observed is not nothing.
  const isKnown = minutes > 0 || (size ?? 0) > 0;
  const observed = minutes === 1 ? '1 minute observed' : `${formatCount(minutes)} minutes observed`;
  const amount = (label: string, value: number | null, format: (value: number) => string) =>
    stat({ label, value: isKnown && value !== null ? format(value) : undefined, source: observed });
  const source =
    percentileSeconds === null || percentileSeconds === 60
      ? 'of the minutes'
      : `of ${meansText(percentileSeconds)}`;
  const percentile = (label: string, value: number | null) =>
    stat({
      ...{ label, source },
      value: value === null ? undefined : isPackets ? formatPacketRate(value) : formatBitRate(value),
    });
  return stats(
    ...(isPackets ? [amount('Packets', total.packets, formatCount)] : []),
    ...(counted.in ? [amount('In', total.inBytes, formatBytes)] : []),
    ...(counted.out ? [amount('Out', total.outBytes, formatBytes)] : []),
    ...(isPackets
      ? [percentile('Packets, 95th percentile', answer.percentile95)]
      : [
          ...(counted.in ? [percentile('In, 95th percentile', answer.percentile95In)] : []),
          ...(counted.out ? [percentile('Out, 95th percentile', answer.percentile95Out)] : []),
        ]),
    ...(previousTotal === null && view.compare === null
      ? []
      : [
          previousStat(
            size,
            previousTotal && sizeOf(previousTotal, measure),
            isPackets ? formatCount : formatBytes,
          ),
        ]),
  );
}

function previousStat(now: number | null, previous: number | null, format: (value: number) => string) {
  return stat({
    label: 'Previous period',
    value: previous === null ? undefined : format(previous),
    source: previous === null || now === null ? undefined : `${changeText(now, previous)} since`,
  });
}

/** `each minute`, `means of 10 minutes`. */
export const stepText = (seconds: number): string => (seconds === 60 ? 'each minute' : meansText(seconds));

const meansText = (seconds: number) =>
  `means of ${seconds < 3600 ? `${seconds / 60} minutes` : `${seconds / 3600} h`}`;

/** `12.4 GB`, `3,000 packets`. */
export const amountText = (amount: Amount, measure: Answer['measure']): string =>
  measure === 'packets' ? `${formatCount(amount.packets)} packets` : formatBytes(sizeOf(amount, 'bytes'));

function timeChart(
  request: FastifyRequest,
  { view, answer, chart: { dataUrl, source }, chartNote }: ExplorerBody,
  data: ChartData,
) {
  const isPackets = answer.measure === 'packets';
  const title =
    view.by === null
      ? isPackets
        ? 'Packets, in and out together'
        : 'In and out'
      : `${manyOf(view.by)} over time`;
  const drawn = chart({
    id: 'traffic',
    ...{ title, unit: chartUnit(answer), data, dataUrl, source },
    refreshSeconds: 60,
    canZoom: true,
    csvHref: fileHref(request, 'steps', 'csv'),
    emptyText: nothingIn(view),
  });
  return [drawn, chartNote ? html`<p class="hint">${chartNote}</p>` : ''];
}

function flowPicture({ view }: ExplorerBody, flows: FlowPicture): Content {
  const { columns, colourColumn, title, source, pairs } = flows;
  const isPackets = flows.measure === 'packets';
  const graph = flowGraph(pairs, {
    ...{ columns: columns.length, colourColumn },
    nameOf: (column) => nameOf(columns[column]!),
    hrefOf: (column, value) => onlyHref(view, columns[column]!, value),
  });
  return sankey({
    ...{ id: 'flows', title, columns: columns.map(nameOf), ...graph },
    format: isPackets ? (value) => `${formatCount(Math.round(value))} packets` : formatBytes,
    source: `counters of addresses; ${source}`,
    emptyText: flows.limits?.[0]?.message ?? nothingIn(view),
  });
}

/** The two pictures of a view. */
const pictureTabs = ({ url, tab }: ExploreView): Content =>
  tabs('Pictures', [
    { label: 'Over time', href: withQuery(url, { tab: undefined }), current: tab === 'time' },
    { label: 'Flows', href: withQuery(url, { tab: 'flows' }), current: tab === 'flows' },
  ]);

/** The chart's points as a file; a point without a value was not observed. What happened in a step is beside its values. */
function offerSteps(request: FastifyRequest, { answer }: ExplorerBody, data: ChartData): void {
  const unit = answer.measure === 'packets' ? 'pps' : 'bps';
  const main = data.series.filter((series) => !series.isPrevious);
  const places = new Map(data.timesMs.map((ms, index) => [ms, index]));
  const events = eventsByStep(data);
  const at = (ms: number) => places.get(ms) ?? -1;
  offerData(request, {
    id: 'steps',
    rows: [...new Set([...places.keys(), ...events.keys()])].sort((a, b) => a - b),
    fields: [
      { field: 'time', value: (ms) => isoTime(ms) },
      ...main.map((series) => ({
        field: `${series.label}_${unit}`,
        value: (ms: number) => series.values[at(ms)] ?? null,
      })),
      { field: 'minutes_observed', value: (ms) => answer.series.minutes[at(ms)] ?? null },
      { field: 'events', value: (ms) => events.get(ms) ?? null },
    ],
    isComplete: true,
  });
}

/** What happened in each step: by the start of the step. */
function eventsByStep({ flags = [], stepMs = 60_000 }: ChartData): Map<number, string> {
  const steps = Map.groupBy(flags, ({ timeMs }) => Math.floor(timeMs / stepMs) * stepMs);
  return new Map([...steps].map(([ms, of]) => [ms, of.map(({ text }) => text).join('; ')]));
}

// Views of an explorer under a name on its page: links to them, and what saves and removes them.

/** A view as a page lists it. */
export interface ShownView {
  id: number;
  name: string;
  query: string;
}

/** Above the filters; the one whose query is `shown` is marked. */
export function savedViewLinks(
  views: readonly ShownView[],
  shown: string,
  hrefOf: (query: string) => string,
): Content {
  if (views.length === 0) return '';
  const items = views.map(({ name, query }) => {
    const text = viewQueryOf(query) === shown ? html`<strong>${name}</strong>` : link(hrefOf(query), name);
    return html`<li class="chip">${text}</li>`;
  });
  return html`<ul class="chips" aria-label="Saved views">${items}</ul>`;
}

export interface SavedViewsSectionOptions<View extends ShownView> {
  views: readonly View[];
  /** Of the view that the page shows. */
  shown: string;
  description: string;
  canSave: boolean;
  csrfToken: string;
  /** Where a view is saved; below it, `{id}/remove` removes one. */
  action: string;
  hrefOf: (query: string) => string;
  /** A field more of the form. */
  more?: Content;
  /** Behind the name of a view. */
  noteOf?: (view: View) => Content;
  /** What removing a view does, asked before it is done. */
  removalText: (view: View) => string;
}

/** Nothing for a reader who can save none where there are none. */
export function savedViewsSection<View extends ShownView>(options: SavedViewsSectionOptions<View>): Content {
  const { views, shown, description, canSave, csrfToken, action } = options;
  if (views.length === 0 && !canSave) return '';
  return section({ id: 'views', title: 'Saved views', description }, [
    canSave &&
      form(
        { ...{ action, csrfToken, submit: 'Save this view' }, ...{ submitKind: 'button', layout: 'inline' } },
        [
          hiddenField('query', shown),
          field({ name: 'name', id: 'view-name', label: 'Name', required: true, maxLength: 60 }),
          options.more ?? '',
        ],
      ),
    views.length > 0 && viewTable(options),
  ]);
}

function viewTable<View extends ShownView>(options: SavedViewsSectionOptions<View>): Content {
  const { views, hrefOf, noteOf, canSave, action, csrfToken, removalText } = options;
  return table<View>({
    caption: 'Saved views',
    card: { line: ['shows'] },
    rows: views,
    columns: [
      cellColumn('name', 'Name', (one) => [link(hrefOf(one.query), one.name), noteOf?.(one) ?? '']),
      {
        key: 'shows',
        header: 'Shows',
        kind: 'prose',
        cell: (one) => code(new URLSearchParams(one.query).get('q') ?? 'all traffic'),
      },
      {
        key: 'actions',
        header: 'Actions',
        kind: 'actions',
        cell: (one) =>
          canSave &&
          askButton(
            {
              id: `remove-view-${one.id}`,
              action: `${action}/${one.id}/remove`,
              ...{ csrfToken, label: 'Remove', title: `Remove ${one.name}` },
            },
            removalText(one),
          ),
      },
    ],
    empty: { title: 'No saved views', text: 'Save one above.' },
  });
}
