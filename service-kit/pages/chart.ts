/**
 * Time series. The page carries the data as JSON and as a table; the script draws it with uPlot.
 *
 * In and out are mirrored around zero: hand over both as positive values, the role says which goes down. `null` is a
 * gap and is drawn as one. Without JavaScript the table stands in the chart's place.
 */
import { assetUrl } from './assets.ts';
import {
  formatBitRate,
  formatBytes,
  formatCount,
  formatMoney,
  formatPacketRate,
  formatPercent,
  formatTime,
} from './format.ts';
import { attributes, type Html, html, jsonScript } from './html.ts';
import { link, safeHref } from './link.ts';

/** How values are written: rates in bits per second, sizes in bytes, money in quanta of 0.0001, and so on. */
export type ChartUnit = 'bit/s' | 'bytes' | 'packets/s' | 'count' | 'percent' | 'ms' | 'money';

export interface ChartSeries {
  label: string;
  /** One value for each time, never negative; `null` where nothing was measured. */
  values: readonly (number | null)[];
  /** `in` is drawn upwards, `out` downwards, `attack` upwards in red; `line` (default) as it is, in a colour of its own. */
  role?: 'in' | 'out' | 'attack' | 'line';
  /** What was expected rather than seen: a dashed line. */
  isExpected?: boolean;
}

export interface ChartArea {
  fromMs: number;
  /** Left out while it lasts. */
  toMs?: number | undefined;
  label: string;
  /** `bad` (default) for attacks. */
  tone?: 'bad' | 'warn';
}

export interface ChartData {
  /** Start of each interval, UTC milliseconds, rising. Gaps may also be missing times, when `stepMs` is given. */
  timesMs: readonly number[];
  /** The usual distance of two times: where more is missing, the line is broken. */
  stepMs?: number | undefined;
  series: readonly ChartSeries[];
  /** The range that was asked for: the axis shows all of it, also where nothing was measured. */
  range?: { fromMs: number; toMs: number } | undefined;
  areas?: readonly ChartArea[] | undefined;
  /** What is said beside the values of a time, such as why there are none. */
  notes?: ReadonlyMap<number, string | undefined> | undefined;
  /** `bars` for what is counted per day or month, where a line between two values would say nothing. Default `lines`. */
  shape?: 'lines' | 'bars' | undefined;
}

export interface ChartOptions {
  /** Unique in the page. */
  id: string;
  title: string;
  unit: ChartUnit;
  data: ChartData;
  /** Answers `chartJson` of newer data; asked for every `refreshSeconds`. */
  dataUrl?: string | undefined;
  refreshSeconds?: number | undefined;
  /** A button stops and resumes the refreshing. */
  canPause?: boolean;
  /** Where the data comes from and how fresh it is. */
  source?: string | undefined;
  /** Height of the plot in pixels: `normal` 240, `small` 140. */
  size?: 'normal' | 'small';
  csvHref?: string | undefined;
  /** Dragging over the plot asks for this page with the range that was dragged over (`readRange`). */
  canZoom?: boolean;
  /** What is said when no value is known. */
  emptyText?: string;
}

const EMPTY_TEXT = 'Nothing was measured in this range.';

/** Most rows of the table under a chart; the CSV has the rest. */
const TABLE_ROWS_MAX = 60;

/** A chart with its table. */
export function chart(options: ChartOptions): Html {
  const hasValues = options.data.series.some((series) => series.values.some((value) => value !== null));
  const plot =
    hasValues || options.dataUrl
      ? html`<svc-chart${attributes({
          class: `chart-plot size-${options.size ?? 'normal'} legend-rows-${phoneLegendRows(options.data)}`,
          // The script reads the new data itself; a refresh that morphed the element would wipe the drawing.
          'hx-morph-skip': true,
          'data-source': `${options.id}-data`,
          'data-title': options.title,
          'data-empty-text': options.emptyText ?? EMPTY_TEXT,
          'data-zoom': options.canZoom ?? false,
          'data-pause': options.canPause ?? false,
          'data-url': options.dataUrl && safeHref(options.dataUrl),
          'data-refresh-seconds': options.refreshSeconds,
        })}></svc-chart>${jsonScript(`${options.id}-data`, chartJson(options.unit, options.data))}<script type="module" src="${assetUrl('chart.js')}"></script>`
      : html`<p class="chart-empty">${options.emptyText ?? EMPTY_TEXT}</p>`;
  return html`<figure class="chart" id="${options.id}"><figcaption class="chart-title"><span>${options.title}</span>${
    options.source && html`<span class="source">${options.source}</span>`
  }</figcaption>${plot}${hasValues && valuesTable(options)}</figure>`;
}

/** About how many rows the legend takes on a phone, so that its room is kept before the script draws it. */
function phoneLegendRows(data: ChartData): number {
  const labels = [
    ...data.series.map((series) => series.label),
    ...(data.areas ?? []).map((area) => area.label),
  ];
  const width = 60 + labels.reduce((sum, label) => sum + 42 + label.length * 7, 0);
  return Math.min(4, Math.max(1, Math.ceil(width / 330)));
}

/** What a `dataUrl` answers, as JSON. */
export function chartJson(unit: ChartUnit, data: ChartData): Record<string, unknown> {
  return {
    unit,
    times: compactTimes(data.timesMs),
    stepMs: data.stepMs ?? null,
    shape: data.shape ?? 'lines',
    range: data.range ? { fromMs: data.range.fromMs, toMs: data.range.toMs } : null,
    series: data.series.map((series) => ({
      label: series.label,
      role: series.role ?? 'line',
      isExpected: series.isExpected ?? false,
      values: series.values.map(shortValue),
    })),
    areas: (data.areas ?? []).map((area) => ({ ...area, toMs: area.toMs ?? null, tone: area.tone ?? 'bad' })),
    notes: Object.fromEntries([...(data.notes ?? [])].filter(([, text]) => text !== undefined)),
  };
}

/** Rounds to readable digits: means of minutes have seventeen digits, which would be half of a page. */
function shortValue(value: number | null): number | null {
  if (value === null) return null;
  return Math.abs(value) >= 1000 ? Math.round(value * 10) / 10 : Number(value.toPrecision(6));
}

/** Regular times, as most are, shrink to start, step and count. */
function compactTimes(timesMs: readonly number[]): unknown {
  const [startMs = 0, second = 0] = timesMs;
  const stepMs = second - startMs;
  const isRegular = timesMs.length > 2 && timesMs.every((ms, index) => ms === startMs + index * stepMs);
  return isRegular ? { startMs, stepMs, count: timesMs.length } : timesMs;
}

function valuesTable(options: ChartOptions): Html {
  const { data } = options;
  const first = Math.max(0, data.timesMs.length - TABLE_ROWS_MAX);
  const rows = data.timesMs.slice(first).map((timeMs, offset) => {
    const cells = data.series.map(
      (series) =>
        html`<td class="kind-figure">${formatChartValue(series.values[first + offset] ?? null, options.unit)}</td>`,
    );
    const note = data.notes?.get(timeMs);
    return html`<tr><th scope="row">${formatTime(timeMs)}${note && html` <span class="unknown">${note}</span>`}</th>${cells}</tr>`;
  });
  const total = data.timesMs.length;
  const note =
    first > 0
      ? `The newest ${TABLE_ROWS_MAX} of ${formatCount(total)} points.`
      : `${formatCount(total)} points.`;
  return html`<details class="chart-values"><summary>Values as a table</summary><p class="hint">${note} ${
    options.csvHref && link(options.csvHref, 'All as CSV')
  }</p><div class="table-scroll" tabindex="0" role="region" aria-label="${options.title}, values"><table><thead><tr><th scope="col">Time</th>${data.series.map(
    (series) => html`<th scope="col" class="kind-figure">${series.label}</th>`,
  )}</tr></thead><tbody>${rows.reverse()}</tbody></table></div></details>`;
}

/** A value as the chart and its table write it; `null` reads "no data". */
export function formatChartValue(value: number | null, unit: ChartUnit): string {
  if (value === null) return 'no data';
  switch (unit) {
    case 'bit/s':
      return formatBitRate(value);
    case 'bytes':
      return formatBytes(value);
    case 'packets/s':
      return formatPacketRate(value);
    case 'count':
      return formatCount(value);
    case 'percent':
      return formatPercent(value);
    case 'money':
      return formatMoney(value);
    case 'ms':
      return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
  }
}
