/** A chart in text: its values as a table with the reasons of its gaps, and the list of its flags. */
import type { ChartData, ChartFlag, ChartUnit } from './chart-data.ts';
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

/** A span of time, the day of its end only where it is another one. */
export function spanText(fromMs: number, toMs: number): string {
  const from = formatTime(fromMs);
  const to = formatTime(toMs);
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
