/** What a chart is made of: the data of a time series and what is drawn around it. */
import type { Tone } from './colours.ts';
import {
  formatBitRate,
  formatBytes,
  formatCount,
  formatMoney,
  formatPacketRate,
  formatPercent,
  formatTime,
} from './format.ts';
import { type Content, type Html, html } from './html.ts';
import { link } from './link.ts';

/** How values are written: rates in bits per second, sizes in bytes, money in quanta of 0.0001, and so on. */
export type ChartUnit = 'bit/s' | 'bytes' | 'packets/s' | 'count' | 'percent' | 'ms' | 'money';

export interface ChartSeries {
  label: string;
  /** One value for each time, never negative; `null` where nothing was measured. */
  values: readonly (number | null)[];
  /**
   * `out` is drawn above zero and `in` below it; `attack` in red, below where the chart has `in`; `line` (default)
   * as it is, in a colour of its own.
   */
  role?: 'in' | 'out' | 'attack' | 'line';
  /** What was expected rather than seen: a dashed line. */
  isExpected?: boolean;
  /** The values of the period before, moved to these times: a dotted ghost. Never part of a stack. */
  isPrevious?: boolean;
  /** A number of the palette, 1 to 13 (`coloursOf`), so that a name keeps its colour at every rank. */
  colour?: number | undefined;
  /** Where the name in the legend leads; its swatch then hides and shows the line. */
  href?: string | undefined;
}

/** A level over the whole range, such as the 95th percentile. */
export interface ChartLine {
  label: string;
  value: number;
  /** On which side of zero it is, and in which colour; default as a `line`. */
  role?: 'in' | 'out' | 'line';
}

/** Why a time has no values, or only a part of them: the ribbon under the chart. */
export interface ChartReason {
  fromMs: number;
  toMs: number;
  /** In words, such as "sensor not running". */
  text: string;
  /** `warn` (default) for what should not be; `neutral` for what is in order, such as a minute in progress. */
  tone?: 'warn' | 'neutral';
}

/** Something that happened: a flag on the time axis. */
export interface ChartFlag {
  timeMs: number;
  text: string;
  /** The page that says more. */
  href?: string | undefined;
  tone?: Tone;
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
  /**
   * `bars` for what is counted per day or month, where a line between two values would say nothing; `stacked` for parts of
   * a whole, the first at the bottom. Default `lines`.
   */
  shape?: 'lines' | 'bars' | 'stacked' | undefined;
  lines?: readonly ChartLine[] | undefined;
  /** In order of time; where several cover one time, the first one is told. */
  reasons?: readonly ChartReason[] | undefined;
  flags?: readonly ChartFlag[] | undefined;
}

// A chart in text: its values as a table with the reasons of its gaps, and the list of its flags.

/** Most rows of the table under a chart; the CSV has the rest. */
const TABLE_ROWS_MAX = 60;
/** Most flags in the list; the page of events has the rest. */
const FLAGS_MAX = 40;

/** One row: a time with values, or a run of times without any for one reason. */
interface ValueRow {
  fromMs: number;
  /** Of the last time in the run. */
  lastMs: number;
  index: number;
  count: number;
  why: string | undefined;
  hasValues: boolean;
}

/** The newest values; runs of times without values are one row. */
export function valuesTable(options: {
  title: string;
  unit: ChartUnit;
  data: ChartData;
  csvHref?: string | undefined;
}): Html {
  const { data, unit } = options;
  const all = rowsOf(data);
  const rows = all.slice(-TABLE_ROWS_MAX).map((row) => tableRow(row, data, unit));
  const total = data.timesMs.length;
  const note =
    all.length > TABLE_ROWS_MAX
      ? `Showing the last ${TABLE_ROWS_MAX} of ${formatCount(total)} points. Export for the full list.`
      : `${formatCount(total)} points.`;
  return html`<details class="chart-values"><summary>Values as a table</summary><p class="hint">${note} ${
    options.csvHref && link(options.csvHref, 'All as CSV')
  }</p><div class="table-scroll" tabindex="0" role="group" aria-label="${options.title}, values"><table><thead><tr><th scope="col">Time</th>${data.series.map(
    (series) => html`<th scope="col" class="kind-figure">${series.label}</th>`,
  )}</tr></thead><tbody>${rows.reverse()}</tbody></table></div></details>`;
}

function rowsOf(data: ChartData): ValueRow[] {
  const rows: ValueRow[] = [];
  const main = data.series.filter((series) => !series.isPrevious && !series.isExpected);
  data.timesMs.forEach((timeMs, index) => {
    const hasValues = main.some((series) => (series.values[index] ?? null) !== null);
    const why = data.notes?.get(timeMs) ?? reasonAt(data, timeMs);
    const before = rows.at(-1);
    if (before && !hasValues && !before.hasValues && before.why === why) {
      before.lastMs = timeMs;
      before.count += 1;
    } else rows.push({ fromMs: timeMs, lastMs: timeMs, index, count: 1, why, hasValues });
  });
  return rows;
}

/** What the ribbon says of the step that begins at this time. */
function reasonAt(data: ChartData, timeMs: number): string | undefined {
  const endMs = timeMs + (data.stepMs ?? 60_000);
  return data.reasons?.find((reason) => reason.fromMs < endMs && reason.toMs > timeMs)?.text;
}

function tableRow(row: ValueRow, data: ChartData, unit: ChartUnit): Html {
  const why = row.why && html` <span class="unknown">${row.why}</span>`;
  if (row.count === 1) {
    const cells = data.series.map(
      (series) =>
        html`<td class="kind-figure">${formatChartValue(series.values[row.index] ?? null, unit)}</td>`,
    );
    return html`<tr><th scope="row">${formatTime(row.fromMs)}${why}</th>${cells}</tr>`;
  }
  const cells = data.series.map(() => html`<td class="kind-figure">no data</td>`);
  return html`<tr><th scope="row">${spanText(row.fromMs, row.lastMs)}, ${formatCount(row.count)} points${why}</th>${cells}</tr>`;
}

/** A span of time, with seconds where it is less than a minute, and the day of its end only where it is another one. */
export function spanText(fromMs: number, toMs: number): string {
  const precision = toMs - fromMs < 60_000 ? 'seconds' : 'minutes';
  const from = formatTime(fromMs, precision);
  const to = formatTime(toMs, precision);
  return `${from.replace(' UTC', '')} to ${to.slice(0, 10) === from.slice(0, 10) ? to.slice(11) : to}`;
}

/** The flags of a chart as a list, for the keyboard and for readers without scripts; newest first. */
export function flagList(flags: readonly ChartFlag[]): Content {
  if (flags.length === 0) return '';
  const shown = flags.toSorted((a, b) => b.timeMs - a.timeMs).slice(0, FLAGS_MAX);
  const items = shown.map(
    (flag) =>
      html`<li><span class="figure">${formatTime(flag.timeMs)}</span> ${flag.href === undefined ? flag.text : link(flag.href, flag.text)}</li>`,
  );
  const more = flags.length > shown.length ? `, the newest ${shown.length} listed` : '';
  return html`<details class="chart-values"><summary>What happened (${formatCount(flags.length)}${more})</summary><ul class="chart-flag-list">${items}</ul></details>`;
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
