/**
 * Tables, the main furniture: the first column is the link, figures stand right-aligned with their unit in the header.
 *
 * Sorting, paging and filtering are links and GET forms, so they work without JavaScript and can be bookmarked.
 * A column whose cells are all equal is said once, below the table. A cell of `null` or `undefined` reads "unknown". Every list renews itself (`browser/refresh.js`), and on a phone each row
 * is a card: its title, a second line of what matters most, then the rest with their headers, then its buttons.
 */
import { createHash } from 'node:crypto';
import type { Tone } from './colours.ts';
import { type EmptyStateOptions, emptyState } from './feedback.ts';
import { formatPercent } from './format.ts';
import { attributes, type Content, classes, type Html, html } from './html.ts';
import { link, withQuery } from './link.ts';

export interface Column<Row> {
  /** Name in the URL when sorted by it, and for the scripts. */
  key: string;
  header: string;
  /** Shown behind the header, so that cells hold bare figures. */
  unit?: string;
  /**
   * `figure` is right-aligned with tabular digits; `code` is monospace; `prose` is sentences, which may take several
   * lines where the others take one; `time` is a moment of `utcTime`; `picture` is a small drawing; default `text`.
   */
  kind?: 'text' | 'figure' | 'code' | 'prose' | 'time' | 'picture' | 'actions';
  cell: (row: Row) => Content;
  sortable?: boolean;
  /** What CSV and JSON hold for it; a column without it is in the page alone. */
  value?: (row: Row) => DataValue;
  /** Its name with its unit in files, such as `inbound_bytes`; default the key. */
  field?: string;
}

/** A column with `cell` alone; `codeColumn` is monospace, `actionsColumn` holds buttons. */
export const cellColumn = <Row>(key: string, header: string, cell: Column<Row>['cell']): Column<Row> => ({
  ...{ key, header, cell },
});
export const codeColumn = <Row>(key: string, header: string, cell: Column<Row>['cell']): Column<Row> => ({
  ...{ key, header, kind: 'code', cell },
});
export const actionsColumn = <Row>(key: string, cell: Column<Row>['cell']): Column<Row> => ({
  ...{ key, header: '', kind: 'actions', cell },
});

export type SortDirection = 'asc' | 'desc';

export interface Sort {
  by: string;
  direction: SortDirection;
}

/** Where the columns of a row stand on a phone, by their keys. A key without a column, such as one left out, is ignored. */
export interface CardLayout {
  /** What names the row; default the first column. */
  title?: string;
  /** The second line, without headers but those of figures. */
  line: readonly string[];
  /** Not on the card, because another column says it as well; all others follow the second line with their headers. */
  without?: readonly string[];
}

/** How often lists ask for their rows. */
const REFRESH_SECONDS = 15;

export interface TableOptions<Row> {
  /** Says what the rows are; read by screen readers, shown with `captionVisible`. */
  caption: string;
  /** Names the list in its page where several have one caption. */
  id?: string;
  /** How a row stands on a phone; without it the first three columns after the title are the second line. */
  card?: CardLayout;
  /**
   * Seconds between two refreshes, default 15; 0 for a list that only its own form changes, or that is expensive. A page
   * goes by its slowest list. Inside `refreshing`, that part's interval counts.
   */
  refreshSeconds?: number;
  captionVisible?: boolean;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** Path and query of this page; sort links keep the rest of its query. Needed when a column is sortable. */
  url?: string;
  sort?: Sort | undefined;
  /** Rows that stand there until the reader asks for all; default all. */
  isFirst?: (row: Row, index: number) => boolean;
  /** Names of the two query values; set both apart when a page has two sorted tables. */
  sortParameters?: { by: string; direction: string };
  /** The ways to other rows: "1–50 of 312", previous and next where they exist. */
  pages?: { label?: string; previousHref?: string | undefined; nextHref?: string | undefined } | undefined;
  csvHref?: string | undefined;
  jsonHref?: string | undefined;
  /** A GET form's fields or links, shown above the table. */
  filter?: Content;
  /** The last row, of everything: it keeps its place in every order. */
  totals?: Row;
  /** A row's state; the row must also say it in words. */
  rowTone?: (row: Row) => Tone | undefined;
  /** What a row unfolds to, below it over the whole width; nothing for rows that are folded. */
  rowDetail?: (row: Row) => Content;
  /** What stands in place of a row's cells over the whole width, such as the form that edits it; nothing for other rows. */
  rowForm?: (row: Row) => Content;
  /** Rows that read as sentences: on a phone no headers but those of figures. */
  isStacked?: boolean;
  /** What is shown in place of no rows: it teaches what will appear here. */
  empty: EmptyStateOptions;
}

/** A table in a box of its own that scrolls sideways where it is too wide. */
export function table<Row>(options: TableOptions<Row>): Html {
  const body = options.rows.length === 0 ? emptyState(options.empty) : rowsAndSame(options);
  const list = options.id ?? options.caption.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const seconds = options.refreshSeconds ?? REFRESH_SECONDS;
  return html`<div${attributes({
    class: 'table-frame',
    'data-list': list,
    'data-refresh': seconds > 0 ? seconds : undefined,
  })}>${options.filter && html`<div class="table-filter">${options.filter}</div>`}${body}${footer(options)}</div>`;
}

/** Fewer rows than this are equal by chance. */
const equalRowsMin = 3;

/** The columns whose cells differ, and what the others say of every row. */
function rowsAndSame<Row>(options: TableOptions<Row>): Content {
  const { rows, columns, totals, sort } = options;
  const contents = rows.map((row) => columns.map((column) => contentOf(column, row)));
  const titleAt = placesOf(options).indexOf('title');
  const isSame = columns.map((column, at) => {
    if (rows.length < equalRowsMin || at === titleAt || at === 0 || column.key === sort?.by) return false;
    if (column.kind === 'actions' || column.kind === 'picture') return false;
    const first = String(contents[0]![at]);
    if (/<(?:input|select|button|form)/.test(first)) return false;
    if (totals !== undefined && String(contentOf(column, totals)) !== first) return false;
    return contents.every((row) => String(row[at]) === first);
  });
  const differs = (_: unknown, at: number) => !isSame[at];
  const said = columns.flatMap(({ header, unit }, at) =>
    isSame[at] && header !== '' && String(contents[0]![at]) !== ''
      ? [html`<span>${header}${unit && `, ${unit}`}: ${contents[0]![at]}</span>`]
      : [],
  );
  return [
    scrollBox(
      { ...options, columns: columns.filter(differs) },
      contents.map((row) => row.filter(differs)),
    ),
    said.length > 0 && html`<div class="hint table-same">All rows: ${said}</div>`,
  ];
}

const contentOf = <Row>(column: Column<Row>, row: Row): Html =>
  html`${column.cell(row) ?? html`<span class="unknown">unknown</span>`}`;

function scrollBox<Row>(options: TableOptions<Row>, contents: readonly (readonly Html[])[]): Html {
  const caption = html`<caption${attributes({ class: options.captionVisible ? undefined : 'visually-hidden' })}>${options.caption}</caption>`;
  const head = options.columns.map((column) => headerCell(column, options));
  const places = placesOf(options);
  const keys = new Map<string, number>();
  const rows = options.rows.map((row, index) =>
    bodyRow(row, contents[index]!, options, places, keys, options.isFirst?.(row, index) === false),
  );
  const { totals } = options;
  const last =
    totals === undefined
      ? ''
      : html`<tfoot>${bodyRow(
          totals,
          options.columns.map((column) => contentOf(column, totals)),
          options,
          places,
          new Map(),
        )}</tfoot>`;
  return html`<div class="table-scroll" tabindex="0" role="group" aria-label="${options.caption}"><table data-rows>${caption}<thead><tr>${head}</tr></thead><tbody>${rows}</tbody>${last}</table></div>`;
}

type CardSlot = 'title' | 'line' | 'rest' | 'off';

/** Where each column stands on a phone. */
function placesOf<Row>({ columns, card }: TableOptions<Row>): CardSlot[] {
  const title = columns.some(({ key }) => key === card?.title) ? card?.title : columns[0]?.key;
  const others = columns.filter(({ key, kind }) => key !== title && kind !== 'actions');
  const line =
    card?.line ??
    others
      .filter(({ kind }) => kind !== 'prose')
      .slice(0, 3)
      .map(({ key }) => key);
  return columns.map(({ key }) => {
    if (key === title) return 'title';
    if (card?.without?.includes(key)) return 'off';
    return line.includes(key) ? 'line' : 'rest';
  });
}

/** What says on a card what a cell is. */
function cardHeader<Row>(column: Column<Row>, place: CardSlot, options: TableOptions<Row>) {
  if (column.kind === 'actions' || column.header === '' || place === 'title' || place === 'off')
    return undefined;
  const isNamed = column.kind === 'figure' || (place === 'rest' && !options.isStacked);
  if (!isNamed) return undefined;
  return column.unit === undefined ? column.header : `${column.header}, ${column.unit}`;
}

function headerCell<Row>(column: Column<Row>, options: TableOptions<Row>): Html {
  const named = column.unit ?? (column.kind === 'time' && 'UTC');
  const unit = named ? html` <span class="unit">${named}</span>` : '';
  const isSorted = options.sort?.by === column.key;
  const cell = (content: Content) =>
    html`<th scope="col" class="kind-${column.kind ?? 'text'}"${attributes({
      'aria-sort': isSorted ? (options.sort?.direction === 'asc' ? 'ascending' : 'descending') : undefined,
    })}>${content}</th>`;
  if (column.header === '' && column.kind === 'actions')
    return cell(html`<span class="visually-hidden">Actions</span>`);
  if (!column.sortable || options.url === undefined) return cell([column.header, unit]);
  const names = options.sortParameters ?? { by: 'sort', direction: 'direction' };
  // Figures are mostly asked for largest first, names from A.
  const first: SortDirection = column.kind === 'figure' ? 'desc' : 'asc';
  const other: SortDirection = options.sort?.direction === 'asc' ? 'desc' : 'asc';
  const href = withQuery(options.url, {
    // A new order begins at its first page.
    ...{ after: undefined, page: undefined },
    [names.by]: column.key,
    [names.direction]: isSorted ? other : first,
  });
  const arrow = isSorted ? (options.sort?.direction === 'asc' ? '↑' : '↓') : '';
  return cell(
    link(href, [column.header, unit, html` <span class="sort-arrow" aria-hidden="true">${arrow}</span>`], {
      kind: 'quiet',
    }),
  );
}

/**
 * By what a refresh knows a row again: where its title leads, else what it says. A row that comes twice is counted.
 */
function keyOf(title: string, keys: Map<string, number>): string {
  const name =
    / href="([^"?]*)/.exec(title)?.[1] ?? title.replace(/<time [^>]*data-now.*?<\/time>|<[^>]*>/g, '');
  const key = createHash('sha256').update(name).digest('base64url').slice(0, 8);
  const count = keys.get(key) ?? 0;
  keys.set(key, count + 1);
  return count === 0 ? key : `${key}.${count}`;
}

function bodyRow<Row>(
  row: Row,
  contents: readonly Html[],
  options: TableOptions<Row>,
  places: readonly CardSlot[],
  keys: Map<string, number>,
  isBeyond = false,
): Html {
  const tone = options.rowTone?.(row);
  const key = keyOf(String(contents[places.indexOf('title')]), keys);
  const rowAttributes = attributes({
    'data-key': key,
    class: classes(tone && `tone-${tone}`, isBeyond && 'is-beyond') || undefined,
  });
  const across = (content: Content) =>
    html`<td${attributes({ colspan: options.columns.length })}>${content}</td>`;
  const instead = options.rowForm?.(row);
  if (instead) return html`<tr data-key="${key}.form" class="row-form">${across(instead)}</tr>`;
  const cells = options.columns.map((column, index) => {
    const place = places[index]!;
    const kind = classes(`kind-${column.kind ?? 'text'}`, `on-${place}`);
    const content = contents[index];
    return index === 0
      ? html`<th scope="row"${attributes({ class: kind, 'data-header': cardHeader(column, place, options) })}>${content}</th>`
      : html`<td${attributes({ class: kind, 'data-header': cardHeader(column, place, options) })}>${content}</td>`;
  });
  const detail = options.rowDetail?.(row);
  return html`<tr${rowAttributes}>${cells}</tr>${
    detail && html`<tr data-key="${key}.detail" class="row-detail">${across(detail)}</tr>`
  }`;
}

/** Of a longer list a phone shows the first 8 until it is asked for all (`styles/phone.css`): a row is a card there. */
const phoneRowsMax = 10;

function footer<Row>(options: TableOptions<Row>): Content {
  const { pages, csvHref, jsonHref, isFirst, rows: all } = options;
  const hasRows = options.rows.length > 0;
  const exports = hasRows && [
    csvHref && link(csvHref, 'CSV', { label: `${options.caption} as CSV` }),
    jsonHref && link(jsonHref, 'JSON', { label: `${options.caption} as JSON` }),
  ];
  const ways = pages && [
    pages.label && html`<span class="hint">${pages.label}</span>`,
    pages.previousHref && link(pages.previousHref, '← Previous', { kind: 'button' }),
    pages.nextHref && link(pages.nextHref, 'Next →', { kind: 'button' }),
  ];
  const isCut = isFirst === undefined ? all.length > phoneRowsMax : !all.every(isFirst);
  const showAll =
    isCut &&
    html`<details class="${classes('show-all', isFirst === undefined && 'on-phone')}"><summary>Show all ${all.length}</summary></details>`;
  if (!pages && !showAll && !(hasRows && (csvHref || jsonHref))) return '';
  return html`<footer class="table-footer">${showAll}<nav class="pages" aria-label="Pages of ${options.caption}">${ways}</nav><div class="exports">${exports}</div></footer>`;
}

/**
 * Reads the wished order out of a parsed query. Only sortable columns count, so a forged name gives the default.
 */
export function readSort(
  query: Readonly<Record<string, unknown>>,
  columns: readonly { key: string; sortable?: boolean }[],
  fallback: Sort,
  names: { by: string; direction: string } = { by: 'sort', direction: 'direction' },
): Sort {
  const by = query[names.by];
  const direction = query[names.direction];
  if (!columns.some((column) => column.sortable && column.key === by)) return fallback;
  return { by: by as string, direction: direction === 'asc' ? 'asc' : 'desc' };
}

/** A share of a whole as a bar behind its figure, for a table's cell: `fraction` between 0 and 1. */
export function shareBar(fraction: number | null | undefined): Html {
  if (fraction === null || fraction === undefined) return html`<span class="unknown">unknown</span>`;
  const percent = Math.round(Math.min(1, Math.max(0, fraction)) * 1000) / 10;
  return html`<span class="share"><svg class="share-bar" aria-hidden="true" width="72" height="6"><rect class="share-track" width="100%" height="6" rx="3"></rect><rect class="share-fill" width="${percent}%" height="6" rx="3"></rect></svg><span class="figure">${formatPercent(fraction)}</span></span>`;
}

// Tables as files: the rows that a page shows, as CSV for spreadsheets and as values for JSON.
//
// Numbers stand bare, their unit is in the field's name; what is not known is an empty cell, never 0.

/** A value as it is, without its way of being written; times as ISO 8601 in UTC. */
export type DataValue = string | number | boolean | null | undefined;

/** One field of a row in a file. */
export interface DataField<Row> {
  /** Its name with its unit: `inbound_bytes`, `last_seen`. */
  field: string;
  value: (row: Row) => DataValue;
}

/** RFC 4180 with a header line of the fields' names. */
export function tableCsv<Row>(fields: readonly DataField<Row>[], rows: readonly Row[]): string {
  return csvLines([
    fields.map(({ field }) => field),
    ...rows.map((row) => fields.map((field) => field.value(row))),
  ]);
}

/** Lines of RFC 4180. Names come from strangers, so nothing in them is a formula for a spreadsheet. */
export function csvLines(rows: readonly (readonly DataValue[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');
}

// A spreadsheet skips spaces and control characters before it looks for a formula. Where lists are separated by semicolons or
// tabs it ends a cell at each of them, also inside quotes that stand further on in its cell: what comes then begins anew.
const formula = /(?<=^|[;\t\r\n])(?=[\s\p{Cc}]*[=+\-@＝＋－＠])/gu;
const number = /^-?\d+(\.\d+)?$/;

function csvCell(value: DataValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string' || number.test(value)) return String(value);
  const text = value.replace(formula, "'");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return /[",;\u0000-\u001f]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The rows as objects; what is not known is `null`. */
export function tableValues<Row>(
  fields: readonly DataField<Row>[],
  rows: readonly Row[],
): Record<string, string | number | boolean | null>[] {
  return rows.map((row) => Object.fromEntries(fields.map(({ field, value }) => [field, value(row) ?? null])));
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', '#39': "'" };

/** The text of a cell, for a column that gives files no value of its own; a time as ISO 8601, what is unknown as null. */
export function textOfCell(cell: Content): string | null {
  const markup = String(html`${cell}`)
    .replace(/<span class="unknown">.*?<\/span>/g, '')
    .replace(/<(\w+)[^>]* aria-hidden="true"[^>]*>.*?<\/\1>/gs, '')
    .replace(/<time datetime="([^"]*)".*?<\/time>(?:<span class="zone"> UTC<\/span>)?/g, '$1');
  const text = markup
    .replace(/<[^>]*>/g, ' ')
    .replace(/&(lt|gt|amp|quot|#39);/g, (_, name) => entities[name]!);
  return text.replace(/\s+/g, ' ').trim() || null;
}

/** A time as files write it; `null` stays unknown. */
export function isoTime(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}
