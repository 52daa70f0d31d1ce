/**
 * Tables, the main furniture: the first column is the link, figures stand right-aligned with their unit in the header.
 *
 * Sorting, paging and filtering are links and GET forms, so they work without JavaScript and can be bookmarked.
 * A cell of `null` or `undefined` reads "unknown".
 */
import { type EmptyStateOptions, emptyState } from './feedback.ts';
import { formatPercent } from './format.ts';
import { attributes, type Content, classes, type Html, html } from './html.ts';
import { link, withQuery } from './link.ts';
import type { DataValue } from './table-data.ts';
import type { Tone } from './tone.ts';

export interface Column<Row> {
  /** Name in the URL when sorted by it, and for the scripts. */
  key: string;
  header: string;
  /** Shown behind the header, so that cells hold bare figures. */
  unit?: string;
  /**
   * `figure` is right-aligned with tabular digits; `code` is monospace; `prose` is sentences, which may take several
   * lines where the others take one; `picture` is a small drawing; default `text`.
   */
  kind?: 'text' | 'figure' | 'code' | 'prose' | 'picture' | 'actions';
  cell: (row: Row) => Content;
  sortable?: boolean;
  /** What CSV and JSON hold for it; a column without it is in the page alone. */
  value?: (row: Row) => DataValue;
  /** Its name with its unit in files, such as `inbound_bytes`; default the key. */
  field?: string;
}

export type SortDirection = 'asc' | 'desc';

export interface Sort {
  by: string;
  direction: SortDirection;
}

export interface TableOptions<Row> {
  /** Says what the rows are; read by screen readers, shown with `captionVisible`. */
  caption: string;
  captionVisible?: boolean;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** Path and query of this page; sort links keep the rest of its query. Needed when a column is sortable. */
  url?: string;
  sort?: Sort | undefined;
  /** Names of the two query values; set both apart when a page has two sorted tables. */
  sortParameters?: { by: string; direction: string };
  /** Query values that a new order must forget, such as a cursor. Default `after` and `page`. */
  forgetOnSort?: readonly string[];
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
  /**
   * On a phone each row stands as a few lines of text, headers only at figures: for rows that read as sentences. A table
   * with actions does so anyway, with all its headers, so that no button is off the screen.
   */
  isStacked?: boolean;
  /** What is shown in place of no rows: it teaches what will appear here. */
  empty: EmptyStateOptions;
}

/** A table in a box of its own that scrolls sideways where it is too wide. */
export function table<Row>(options: TableOptions<Row>): Html {
  const body = options.rows.length === 0 ? emptyState(options.empty) : scrollBox(options);
  return html`<div class="table-frame">${options.filter && html`<div class="table-filter">${options.filter}</div>`}${body}${footer(options)}</div>`;
}

function scrollBox<Row>(options: TableOptions<Row>): Html {
  const caption = html`<caption class="${classes(!options.captionVisible && 'visually-hidden')}">${options.caption}</caption>`;
  const head = options.columns.map((column) => headerCell(column, options));
  const rows = options.rows.map((row) => bodyRow(row, options));
  const totals = options.totals === undefined ? '' : html`<tfoot>${bodyRow(options.totals, options)}</tfoot>`;
  const isStacked = options.isStacked || hasActions(options);
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="${options.caption}"><table data-rows${attributes({ class: isStacked ? 'is-stacked' : undefined })}>${caption}<thead><tr>${head}</tr></thead><tbody>${rows}</tbody>${totals}</table></div>`;
}

function hasActions<Row>({ columns }: TableOptions<Row>): boolean {
  return columns.some(({ kind }) => kind === 'actions');
}

/** What says in a stacked row what a cell is: rows that read as sentences need it for figures alone. */
function stackedHeader<Row>(column: Column<Row>, options: TableOptions<Row>): string | undefined {
  if (column.kind === 'actions' || column.header === '') return undefined;
  if (options.isStacked) return column.kind === 'figure' ? column.header : undefined;
  return hasActions(options) ? column.header : undefined;
}

function headerCell<Row>(column: Column<Row>, options: TableOptions<Row>): Html {
  const unit = column.unit ? html` <span class="unit">${column.unit}</span>` : '';
  const isSorted = options.sort?.by === column.key;
  const cell = (content: Content) =>
    html`<th scope="col" class="kind-${column.kind ?? 'text'}"${attributes({
      'aria-sort': isSorted ? (options.sort?.direction === 'asc' ? 'ascending' : 'descending') : undefined,
    })}>${content}</th>`;
  if (!column.sortable || options.url === undefined) return cell([column.header, unit]);
  const names = options.sortParameters ?? { by: 'sort', direction: 'direction' };
  // Figures are mostly asked for largest first, names from A.
  const first: SortDirection = column.kind === 'figure' ? 'desc' : 'asc';
  const other: SortDirection = options.sort?.direction === 'asc' ? 'desc' : 'asc';
  const forget = Object.fromEntries(
    (options.forgetOnSort ?? ['after', 'page']).map((name) => [name, undefined]),
  );
  const href = withQuery(options.url, {
    ...forget,
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

function bodyRow<Row>(row: Row, options: TableOptions<Row>): Html {
  const tone = options.rowTone?.(row);
  const cells = options.columns.map((column, index) => {
    const content = column.cell(row) ?? html`<span class="unknown">unknown</span>`;
    const kind = `kind-${column.kind ?? 'text'}`;
    return index === 0
      ? html`<th scope="row" class="${kind}">${content}</th>`
      : html`<td${attributes({
          class: kind,
          'data-header': stackedHeader(column, options),
        })}>${content}</td>`;
  });
  const detail = options.rowDetail?.(row);
  return html`<tr${attributes({ class: tone ? `tone-${tone}` : undefined })}>${cells}</tr>${
    detail &&
    html`<tr class="row-detail"><td${attributes({ colspan: options.columns.length })}>${detail}</td></tr>`
  }`;
}

function footer<Row>(options: TableOptions<Row>): Content {
  const { pages, csvHref, jsonHref } = options;
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
  if (!pages && !(hasRows && (csvHref || jsonHref))) return '';
  return html`<footer class="table-footer"><nav class="pages" aria-label="Pages of ${options.caption}">${ways}</nav><div class="exports">${exports}</div></footer>`;
}

/**
 * Reads the wished order out of a parsed query. Only sortable columns count, so a forged name gives the default.
 */
export function readSort<Row>(
  query: Readonly<Record<string, unknown>>,
  columns: readonly Column<Row>[],
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
