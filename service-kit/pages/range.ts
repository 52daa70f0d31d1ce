/**
 * The time range of charts and tables, the same everywhere and always in the URL: `?range=6h`, or
 * `?range=custom&from=2026-11-21T10:00Z&to=…` in UTC.
 */
import { field, form, hiddenField } from './form.ts';
import { attributes, type Content, type Html, html } from './html.ts';
import { link, safeHref, splitUrl, withQuery } from './link.ts';

export type RangeName = '15m' | '1h' | '6h' | '24h' | '7d' | '30d' | 'custom';

export interface Range {
  name: RangeName;
  /** Inclusive, on a whole step. */
  fromMs: number;
  /** Exclusive, on a whole step; for the named ranges the end of the step that holds now. */
  toMs: number;
  /** Distance of two points that gives a chart 15 to 720 of them; whole minutes. */
  stepSeconds: number;
  /** Why a custom range was not taken; the fallback stands in the other fields. */
  error?: string;
}

const spans: Record<Exclude<RangeName, 'custom'>, { seconds: number; stepSeconds: number; label: string }> = {
  '15m': { seconds: 900, stepSeconds: 60, label: '15 m' },
  '1h': { seconds: 3600, stepSeconds: 60, label: '1 h' },
  '6h': { seconds: 21_600, stepSeconds: 60, label: '6 h' },
  '24h': { seconds: 86_400, stepSeconds: 300, label: '24 h' },
  '7d': { seconds: 604_800, stepSeconds: 1800, label: '7 d' },
  '30d': { seconds: 2_592_000, stepSeconds: 7200, label: '30 d' },
};

/** The longest custom range. */
export const RANGE_DAYS_MAX = 400;

/** Reads the range of a parsed query. What can't be read gives the fallback, with `error` for a custom range. */
export function readRange(
  query: Readonly<Record<string, unknown>>,
  nowMs: number,
  fallback: Exclude<RangeName, 'custom'> = '6h',
): Range {
  const name = query.range;
  if (name === 'custom') return readCustomRange(query, nowMs, fallback);
  if (typeof name === 'string' && Object.hasOwn(spans, name))
    return namedRange(name as keyof typeof spans, nowMs);
  return namedRange(fallback, nowMs);
}

function namedRange(name: keyof typeof spans, nowMs: number): Range {
  const { seconds, stepSeconds } = spans[name];
  const stepMs = stepSeconds * 1000;
  const toMs = Math.ceil(nowMs / stepMs) * stepMs;
  return { name, fromMs: toMs - seconds * 1000, toMs, stepSeconds };
}

function readCustomRange(
  query: Readonly<Record<string, unknown>>,
  nowMs: number,
  fallback: keyof typeof spans,
): Range {
  const from = readUtc(query.from);
  const to = readUtc(query.to);
  const refuse = (error: string): Range => ({ ...namedRange(fallback, nowMs), error });
  if (from === undefined || to === undefined)
    return refuse('Give both times in UTC, such as 2026-11-21 10:00.');
  if (to <= from) return refuse('The end must be after the start.');
  if (to - from > RANGE_DAYS_MAX * 86_400_000)
    return refuse(`A range covers at most ${RANGE_DAYS_MAX} days.`);
  const stepSeconds =
    [60, 300, 900, 1800, 3600, 7200, 21_600, 86_400].find((step) => (to - from) / (step * 1000) <= 720) ??
    86_400;
  const stepMs = stepSeconds * 1000;
  return {
    name: 'custom',
    fromMs: Math.floor(from / stepMs) * stepMs,
    toMs: Math.ceil(to / stepMs) * stepMs,
    stepSeconds,
  };
}

/** A browser's `datetime-local` has no zone: it is read as UTC, which the field's label says. */
function readUtc(value: unknown): number | undefined {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?$/.test(value))
    return undefined;
  const ms = Date.parse(`${value.replace(' ', 'T').replace(/Z$/, '')}Z`);
  return Number.isNaN(ms) ? undefined : ms;
}

/**
 * The range's picker; `url` is this page's path and query, whose other values stay. With `nowMs` it also goes to
 * earlier and later and to twice the range, as dragging over a chart goes into it.
 */
export function rangePicker(options: {
  url: string;
  range: Range | 'live';
  nowMs?: number;
  /** The page has a live range too, `?range=live`; it has where that is the one shown. */
  hasLive?: boolean;
}): Html {
  const { url, nowMs } = options;
  const isLive = options.range === 'live';
  const range = options.range === 'live' ? namedRange('15m', nowMs ?? Date.now()) : options.range;
  const live = (options.hasLive || isLive) && rangeLink(url, 'live', 'Live', isLive);
  const named = Object.entries(spans).map(([name, span]) =>
    rangeLink(url, name, span.label, !isLive && range.name === name),
  );
  return html`<div class="range-picker">${!isLive && zoomOut(url)}${nowMs !== undefined && rangeMoves(url, range, nowMs)}<nav class="segments" aria-label="Time range">${live}${named}<button type="button" popovertarget="range-custom" class="segment"${range.name === 'custom' ? html` aria-current="page"` : ''}>Custom</button></nav><div id="range-custom" class="popover" popover>${customForm(url, range)}</div>${
    range.error &&
    html`<p class="field-error" role="alert">■ ${range.error} Shown instead: ${spans[range.name as keyof typeof spans].label}.</p>`
  }</div>`;
}

/** One range that `out` holds: a name, `default` for the page's own, or two times. */
const wayBack = /^(default|\d{2}[mhd]|\d[hd]|\d{4}-\d\d-\d\dT\d\d:\d\dZ~\d{4}-\d\d-\d\dT\d\d:\d\dZ)$/;

/**
 * The way back out of a range that was dragged over. Dragging adds the range that was shown to `out`, so the way is in the
 * URL, and in a bookmark of it.
 */
function zoomOut(url: string): Content {
  const way = (new URLSearchParams(splitUrl(url).query).get('out') ?? '').split(',');
  const last = way.pop() ?? '';
  if (!wayBack.test(last)) return '';
  const out = way.length === 0 ? undefined : way.join(',');
  const [from, to] = last.split('~');
  const range =
    to === undefined
      ? { range: last === 'default' ? undefined : last, from: undefined, to: undefined }
      : { range: 'custom', from, to };
  const href = safeHref(withQuery(url, { ...range, out }));
  return html`<nav class="segments moves" aria-label="Zoom"><a${attributes({ href, class: 'link-quiet', 'data-zoom-out': true })}>Zoom out</a></nav>`;
}

function rangeLink(url: string, name: string, label: string, current: boolean): Html {
  const href = withQuery(url, { range: name, from: undefined, to: undefined, out: undefined });
  return link(href, label, { kind: 'quiet', current });
}

function rangeMoves(url: string, range: Range, nowMs: number): Html {
  const span = range.toMs - range.fromMs;
  const end = Math.ceil(nowMs / 60_000) * 60_000;
  const move = (fromMs: number, label: string, name: string) => {
    const wide = label === '−' ? span * 2 : span;
    const from = Math.min(fromMs, end - wide);
    const utc = (ms: number) => `${new Date(ms).toISOString().slice(0, 16)}Z`;
    return link(withQuery(url, { range: 'custom', from: utc(from), to: utc(from + wide) }), label, {
      kind: 'quiet',
      label: name,
    });
  };
  const canWiden = span * 2 <= RANGE_DAYS_MAX * 86_400_000;
  return html`<nav class="segments moves" aria-label="Move the range">${move(range.fromMs - span, '←', 'Earlier')}${
    canWiden && move(range.fromMs - span / 2, '−', 'Twice the range')
  }${range.toMs < end && move(range.toMs, '→', 'Later')}</nav>`;
}

function customForm(url: string, range: Range): Html {
  const { path, query } = splitUrl(url);
  const kept: Content[] = [];
  for (const [name, value] of new URLSearchParams(query)) {
    if (!['range', 'from', 'to', 'out'].includes(name)) kept.push(hiddenField(name, value));
  }
  const local = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  return form({ action: path, method: 'get', submit: 'Show' }, [
    kept,
    hiddenField('range', 'custom'),
    field({
      kind: 'datetime-local',
      id: 'range-from',
      name: 'from',
      label: 'From (UTC)',
      required: true,
      value: local(range.fromMs),
    }),
    field({
      kind: 'datetime-local',
      id: 'range-to',
      name: 'to',
      label: 'To (UTC)',
      required: true,
      value: local(range.toMs),
    }),
  ]);
}
