/**
 * Time series. The page carries the data as JSON and as a table; the script draws it with uPlot.
 *
 * Out is above zero and in below it: hand over both as positive values, the role says which goes down. `null` is a
 * gap and is drawn as one, with its reason in a ribbon below. Without JavaScript the table stands in the chart's place.
 */
import { assetUrl } from './assets.ts';
import {
  type ChartData,
  type ChartReason,
  type ChartSeries,
  type ChartUnit,
  flagList,
  formatChartValue,
  spanText,
  valuesTable,
} from './chart-data.ts';
import { coloursOf, SIDE_COLOURS } from './colours.ts';
import { attributes, type Content, type Html, html, jsonScript } from './html.ts';
import { safeHref } from './link.ts';

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
  source?: Content;
  /** Height of the plot in pixels: `normal` 320, 240 on a phone; `small` 140. */
  size?: 'normal' | 'small';
  csvHref?: string | undefined;
  /**
   * Dragging over the plot asks for this page with the range that was dragged over (`readRange`); a double click goes
   * back, as "Zoom out" of `rangePicker` does.
   */
  canZoom?: boolean;
  /** What is said when no value is known. */
  emptyText?: string;
}

const EMPTY_TEXT = 'Nothing was measured in this range.';
/** Reasons that an empty chart names. */
const reasonsSaid = 3;

/** A chart with its table, and with the list of its flags. */
export function chart(options: ChartOptions): Html {
  const data = fromFirstValue(options.data);
  const hasValues = data.series.some((series) => series.values.some((value) => value !== null));
  const emptyText = options.emptyText ?? EMPTY_TEXT;
  const plot =
    hasValues || options.dataUrl
      ? html`<svc-chart${attributes({
          class: [
            `chart-plot size-${options.size ?? 'normal'} legend-rows-${phoneLegendRows(data)}`,
            data.reasons?.length ? 'has-ribbon' : '',
          ]
            .join(' ')
            .trim(),
          // The script reads the new data itself; a refresh that morphed the element would wipe the drawing.
          'hx-morph-skip': true,
          'data-source': `${options.id}-data`,
          'data-title': options.title,
          'data-empty-text': emptyText,
          'data-zoom': options.canZoom ?? false,
          'data-pause': options.canPause ?? false,
          'data-url': options.dataUrl && safeHref(options.dataUrl),
          'data-refresh-seconds': options.refreshSeconds,
        })}></svc-chart>${jsonScript(`${options.id}-data`, chartJson(options.unit, data))}<script type="module" src="${assetUrl('chart.js')}"></script>`
      : html`<p class="chart-empty">${emptyText}${whyEmpty(data.reasons ?? [])}</p>`;
  return html`<figure class="chart" id="${options.id}"><figcaption class="chart-title"><span>${options.title}</span>${
    options.source && html`<span class="source">${options.source}</span>`
  }</figcaption>${plot}${hasValues && valuesTable({ ...options, data })}${flagList(data.flags ?? [])}</figure>`;
}

function whyEmpty(reasons: readonly ChartReason[]): string {
  const said = reasons
    .slice(-reasonsSaid)
    .map((reason) => `${reason.text} (${spanText(reason.fromMs, reason.toMs)})`);
  return said.length === 0 ? '' : ` Why: ${said.join('; ')}.`;
}

/** About how many rows the legend takes on a phone, so that its room is kept before the script draws it. */
function phoneLegendRows(data: ChartData): number {
  const labels = [
    ...new Set(data.series.map((series) => series.label)),
    ...(data.lines ?? []).map((line) => `${line.label} 000 Mbit/s`),
    ...new Set((data.areas ?? []).map((area) => area.label)),
  ];
  const width = 60 + labels.reduce((sum, label) => sum + 42 + label.length * 7, 0);
  return Math.min(4, Math.max(1, Math.ceil(width / 330)));
}

/** What a `dataUrl` answers, as JSON. */
export function chartJson(unit: ChartUnit, given: ChartData): Record<string, unknown> {
  const data = fromFirstValue(given);
  const colours = lineColours(data);
  return {
    unit,
    times: compactTimes(data.timesMs),
    stepMs: data.stepMs ?? null,
    shape: data.shape ?? 'lines',
    isBars: isDrawnAsBars(data),
    summary: summaryOf(data, unit),
    range: data.range ? { fromMs: data.range.fromMs, toMs: data.range.toMs } : null,
    series: data.series.map((series) => ({
      label: series.label,
      role: series.role ?? 'line',
      isExpected: series.isExpected ?? false,
      ...(series.isPrevious && { isPrevious: true }),
      ...colourOf(series, colours),
      ...(series.href && { href: safeHref(series.href) }),
      values: series.values.map(shortValue),
    })),
    areas: (data.areas ?? []).map((area) => ({ ...area, toMs: area.toMs ?? null, tone: area.tone ?? 'bad' })),
    notes: Object.fromEntries([...(data.notes ?? [])].filter(([, text]) => text !== undefined)),
    lines: (data.lines ?? []).map((line) => ({
      label: line.label,
      value: shortValue(line.value),
      role: line.role ?? 'line',
    })),
    reasons: (data.reasons ?? []).map((reason) => ({ ...reason, tone: reason.tone ?? 'warn' })),
    flags: (data.flags ?? []).map(({ timeMs, text, href, tone = 'neutral' }) => ({
      timeMs,
      text,
      tone,
      href: href === undefined ? null : safeHref(href),
    })),
  };
}

/**
 * The data from the first value on, where the range begins before it: a young server's hour is not drawn at the edge of an
 * empty day. What should have been measured before, and was not, stays in the chart, and so do all days of a month.
 */
function fromFirstValue(data: ChartData): ChartData {
  const { timesMs, series, range, reasons = [], stepMs = 60_000 } = data;
  const first = timesMs.findIndex((_time, index) =>
    series.some(({ values }) => (values[index] ?? null) !== null),
  );
  if (!range || data.shape === 'bars' || first < 0) return data;
  // A step that began before the range is not drawn beside the axis.
  if (timesMs[first]! < range.fromMs) return { ...data, range: { ...range, fromMs: timesMs[first]! } };
  const missing = reasons.filter(({ tone }) => tone !== 'neutral').map(({ fromMs }) => fromMs);
  const fromMs = Math.min(timesMs[first]!, ...missing);
  if (fromMs < range.fromMs + stepMs) return data;
  const kept = timesMs.findIndex((time) => time >= fromMs);
  return {
    ...data,
    timesMs: timesMs.slice(kept),
    series: series.map((one) => ({ ...one, values: one.values.slice(kept) })),
    range: { ...range, fromMs },
  };
}

/** A chart in a few words: its least and its greatest value, and how many stretches have none. */
function summaryOf({ series, timesMs, stepMs }: ChartData, unit: ChartUnit): string {
  const main = series.filter((one) => !one.isPrevious && !one.isExpected);
  const values = main.flatMap((one) => one.values.filter((value) => value !== null));
  if (values.length === 0) return 'no values';
  const [least, most] = [Math.min, Math.max].map((of) => values.reduce((a, b) => of(a, b)));
  const isKnown = (index: number) => main.some((one) => (one.values[index] ?? null) !== null);
  const gaps = timesMs.filter((timeMs, index) => {
    if (index === 0) return !isKnown(0);
    if (isKnown(index)) return stepMs !== undefined && timeMs - timesMs[index - 1]! > stepMs * 1.5;
    return isKnown(index - 1);
  }).length;
  return `least ${formatChartValue(least!, unit)}, most ${formatChartValue(most!, unit)}, ${gaps === 1 ? '1 gap' : `${gaps || 'no'} gaps`}`;
}

/** Fewer steps than this are bars: a line through a few points says more than was measured. */
const barsBelow = 10;
/** Bars of more lines than this do not stand beside one another. */
const barLinesMax = 2;

function isDrawnAsBars({ shape, series, timesMs, range, stepMs }: ChartData): boolean {
  if (shape === 'bars') return true;
  const steps = range && stepMs ? (range.toMs - range.fromMs) / stepMs : timesMs.length;
  const lines = series.filter((one) => isLine(one) && !one.isPrevious && !one.isExpected);
  return steps < barsBelow && (shape === 'stacked' || lines.length <= barLinesMax);
}

const isLine = ({ role = 'line' }: ChartSeries) => role === 'line';

/** Names have the colour of their hash; a single line takes the first one, and none has those of in and out beside them. */
function lineColours({ series }: ChartData): Map<string, number> {
  const lines = series.filter((one) => isLine(one) && !one.isPrevious && !one.isExpected && !one.colour);
  const hasSides = lines.length < series.filter((one) => !one.isPrevious && !one.isExpected).length;
  return lines.length < 2 && !hasSides
    ? new Map()
    : coloursOf(
        lines.map(({ label }) => label),
        hasSides ? SIDE_COLOURS : [],
      );
}

function colourOf(series: ChartSeries, colours: ReadonlyMap<string, number>) {
  const colour = series.colour ?? (isLine(series) ? colours.get(series.label) : undefined);
  return colour === undefined ? {} : { colour };
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

// A small chart beside a figure: out above and in below a line, each to the scale of the larger, gaps as gaps.

const width = 132;
const height = 32;

/** `null` where nothing was measured; both lists are of one length. */
export interface SparkValues {
  in: readonly (number | null)[];
  out: readonly (number | null)[];
}

/** Says nothing that the row's figures don't, but for `label`, which names what is drawn and over which time. */
export function spark(values: SparkValues, label: string): Html {
  const largest = Math.max(
    1,
    ...values.in.map((value) => value ?? 0),
    ...values.out.map((value) => value ?? 0),
  );
  const path = (list: readonly (number | null)[], sign: 1 | -1) => areas(list, sign / largest);
  return html`<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"${attributes({ class: 'spark', role: 'img', 'aria-label': label, width, height })}><path class="series-1" d="${path(values.in, -1)}"></path><path class="series-2" d="${path(values.out, 1)}"></path><rect class="spark-zero" y="${height / 2}" width="${width}" height="1"></rect></svg>`;
}

/** The course of one value, above its line. */
export function sparkLine(values: readonly (number | null)[], label: string): Html {
  const largest = Math.max(1, ...values.map((value) => value ?? 0));
  const full = areas(values, 2 / largest, height - 1);
  return html`<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"${attributes({ class: 'spark', role: 'img', 'aria-label': label, width, height })}><path class="series-1" d="${full}"></path><rect class="spark-zero" y="${height - 1}" width="${width}" height="1"></rect></svg>`;
}

/** One closed area for each unbroken run of values, a step of its own for a value between two gaps. */
function areas(list: readonly (number | null)[], scale: number, middle = height / 2): string {
  const step = width / Math.max(1, list.length);
  const half = height / 2;
  let path = '';
  let isOpen = false;
  list.forEach((value, index) => {
    const x = round(index * step);
    if (value === null) {
      if (isOpen) path += `V${middle}Z`;
      isOpen = false;
      return;
    }
    const y = round(middle - value * scale * (half - 1));
    path += isOpen ? `V${y}H${round(x + step)}` : `M${x} ${middle}V${y}H${round(x + step)}`;
    isOpen = true;
  });
  return isOpen ? `${path}V${middle}Z` : path;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
