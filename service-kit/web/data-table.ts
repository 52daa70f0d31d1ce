/**
 * Tables that are also available as files: the page's URL with `?format=csv` or `?format=json` and the table's id.
 *
 * The page that shows a table also serves its file, so both have the same rows and the same permissions. A page
 * declares its tables with `dataTable`; its surface sends the requested table (`sendWantedFile`) or the page. Files may
 * have more rows than a page (`rowsLimit`), and say when there are even more.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HttpError } from '#service-kit/http/index.ts';
import {
  age,
  type Column,
  type Content,
  type DataField,
  type DataValue,
  formatCount,
  type Html,
  html,
  isoTime,
  link,
  moment,
  type TableOptions,
  table,
  tableCsv,
  tableValues,
  utcTime,
  withQuery,
} from '#service-kit/pages/index.ts';

/** Maximum number of rows in a file. */
const fileRowsMax = 10_000;

/** A column and its fields in files; columns of buttons and charts have none. */
export type DataColumn<Row> =
  | (Column<Row> & { value: (row: Row) => DataValue })
  | (Column<Row> & { kind: 'actions' | 'picture' });

export interface DataTableOptions<Row> extends Omit<TableOptions<Row>, 'columns' | 'csvHref' | 'jsonHref'> {
  /** Id of the table in the URL of its files; unique in the page. */
  id: string;
  columns: readonly DataColumn<Row>[];
  /** Additional fields of files, after those of the columns. */
  fields?: readonly DataField<Row>[];
  /** False when there are more rows than these. By default: true if fewer rows than the limit were read. */
  isComplete?: boolean;
}

/** Rows of a file, with a name. */
interface OfferedData<Row> {
  id: string;
  fields: readonly DataField<Row>[];
  rows: readonly Row[];
  isComplete?: boolean;
}

type Format = 'csv' | 'json';

const offers = new WeakMap<FastifyRequest, Map<string, OfferedData<never>>>();

/** The requested file, or null for the page. */
export function wantedFile(request: FastifyRequest): { format: Format; id: string | undefined } | null {
  const { format, table: id } = request.query as { format?: unknown; table?: unknown };
  if (request.method !== 'GET' || (format !== 'csv' && format !== 'json')) return null;
  return { format, id: typeof id === 'string' ? id : undefined };
}

/** Number of rows to read: for the page, or for a file. */
export function rowsLimit(request: FastifyRequest, shown: number): number {
  return wantedFile(request) ? Math.max(shown, fileRowsMax) : shown;
}

/** URL of one table's file, with the page's filters. */
export function fileHref(request: FastifyRequest, id: string, format: Format): string {
  return withQuery(request.url, { format, table: id });
}

/** Offers rows as files without showing a table, such as the points of a chart. */
export function offerData<Row>(request: FastifyRequest, data: OfferedData<Row>): void {
  const known = offers.get(request) ?? new Map<string, OfferedData<never>>();
  known.set(data.id, data as unknown as OfferedData<never>);
  offers.set(request, known);
}

/** Renders a table, and offers it as CSV and JSON. */
export function dataTable<Row>(request: FastifyRequest, options: DataTableOptions<Row>): Html {
  const fields = options.columns.flatMap((column) =>
    column.value ? [{ field: column.field ?? column.key, value: column.value }] : [],
  );
  const { id, rows, isComplete } = options;
  offerData(request, {
    id,
    rows,
    fields: [...fields, ...(options.fields ?? [])],
    ...(isComplete === undefined ? {} : { isComplete }),
  });
  // Do not render thousands of rows when a file was requested.
  if (wantedFile(request)) return html``;
  return table({
    ...options,
    csvHref: fileHref(request, id, 'csv'),
    jsonHref: fileHref(request, id, 'json'),
  });
}

/**
 * One page of a complete list, with links to the others: `?sensors_page=2` for the table `sensors`. Files have all
 * rows.
 */
export function pagedRows<Row>(
  request: FastifyRequest,
  id: string,
  rows: readonly Row[],
  shown: number,
): Pick<DataTableOptions<Row>, 'id' | 'rows' | 'isComplete' | 'pages'> {
  if (wantedFile(request))
    return { id, rows: rows.slice(0, fileRowsMax), isComplete: rows.length <= fileRowsMax };
  if (rows.length <= shown) return { id, rows };
  const name = `${id}_page`;
  const asked = Number(new URLSearchParams(request.url.split('?')[1]).get(name) ?? 1);
  const last = Math.ceil(rows.length / shown);
  const page = Number.isInteger(asked) ? Math.min(last, Math.max(1, asked)) : 1;
  const first = (page - 1) * shown;
  const to = (other: number) => withQuery(request.url, { [name]: other === 1 ? undefined : other });
  return {
    id,
    rows: rows.slice(first, first + shown),
    pages: {
      label: `${formatCount(first + 1)}–${formatCount(Math.min(rows.length, first + shown))} of ${formatCount(rows.length)}`,
      previousHref: page > 1 ? to(page - 1) : undefined,
      nextHref: page < last ? to(page + 1) : undefined,
    },
  };
}

/** Sends the requested file; null when the page was requested. `home` names the files of the page at `/`. */
export function sendWantedFile(
  request: FastifyRequest,
  reply: FastifyReply,
  home: string,
): FastifyReply | null {
  const wanted = wantedFile(request);
  if (!wanted) return null;
  const known = offers.get(request) ?? new Map<string, OfferedData<never>>();
  const data = wanted.id === undefined ? [...known.values()][0] : known.get(wanted.id);
  if (!data) {
    const names = [...known.keys()].join(', ') || 'none';
    throw new HttpError(404, {
      code: 'not_found',
      message: `This page has no such table. Its tables are: ${names}.`,
    });
  }
  const isComplete = data.isComplete ?? data.rows.length < fileRowsMax;
  const path = request.url.split('?')[0]!.split('/').filter(Boolean);
  const name = [...(path.length > 0 ? path : [home]), data.id].join('-').replace(/[^\w.-]+/g, '-');
  if (wanted.format === 'json') {
    const rows = tableValues(data.fields, data.rows);
    return reply
      .type('application/json; charset=utf-8')

      .send(JSON.stringify({ table: data.id, is_complete: isComplete, rows }));
  }
  if (!isComplete) reply.header('x-more-rows', 'true');
  return sendCsv(reply, `${name}.csv`, tableCsv(data.fields, data.rows));
}

/** Sends a CSV file of this name, such as `usage-2026-11.csv`. */
export function sendCsv(reply: FastifyReply, name: string, text: string): FastifyReply {
  return reply
    .type('text/csv; charset=utf-8')
    .headers({
      'content-disposition': `attachment; filename="${name}"`,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    })
    .send(text);
}

// Columns by what they hold: a row is read once, for the cell of the page and for the value of the files. `more` names the unit, the
// field in files, or that the column can be sorted by.

type More = Pick<Column<never>, 'unit' | 'field' | 'sortable'>;
type Time = number | null | undefined;

/** Text as it is, or as `show` writes it. */
export const textColumn = <Row, Value extends DataValue>(
  key: string,
  header: string,
  of: (row: Row) => Value,
  more: More & { kind?: 'code' | 'prose'; show?: (value: Value) => Content } = {},
): DataColumn<Row> => {
  const { show, ...rest } = more;
  return { key, header, ...rest, cell: show ? (row) => show(of(row)) : of, value: of };
};

/** Text that leads to a page: the text, and where. */
export const linkColumn = <Row, Value extends DataValue>(
  key: string,
  header: string,
  of: (row: Row) => readonly [text: Value, href: string],
  more: More & { kind?: 'code'; show?: (value: Value) => Content } = {},
): DataColumn<Row> => {
  const { show = (text: Value) => text, ...rest } = more;
  const cell = (row: Row) => {
    const [text, href] = of(row);
    return link(href, show(text));
  };
  return { key, header, ...rest, cell, value: (row) => of(row)[0] };
};

/** A figure as `show` writes it. */
export const figureColumn = <Row, Value extends DataValue>(
  key: string,
  header: string,
  of: (row: Row) => Value,
  show: (value: Value) => Content,
  more: More = {},
): DataColumn<Row> => ({ key, header, kind: 'figure', ...more, cell: (row) => show(of(row)), value: of });

export const countColumn = <Row>(
  key: string,
  header: string,
  of: (row: Row) => number | null | undefined,
  more: More = {},
): DataColumn<Row> => figureColumn(key, header, of, formatCount, more);

/** A time as the clock says it. */
export const timeColumn = <Row>(
  key: string,
  header: string,
  ofMs: (row: Row) => Time,
  more: More & { precision?: 'minutes' | 'seconds' | 'day' } = {},
): DataColumn<Row> => {
  const { precision, ...rest } = more;
  return {
    ...{ key, header, kind: 'time', ...rest },
    cell: (row) => utcTime(ofMs(row), precision),
    value: (row) => isoTime(ofMs(row)),
  };
};

/** How long ago something was. */
export const ageColumn = <Row>(
  key: string,
  header: string,
  ofMs: (row: Row) => Time,
  nowMs: number,
  more: More = {},
): DataColumn<Row> => ({
  ...{ key, header, kind: 'figure', ...more },
  cell: (row) => age(ofMs(row), nowMs),
  value: (row) => isoTime(ofMs(row)),
});

/** When something was, and how long ago. */
export const momentColumn = <Row>(
  key: string,
  header: string,
  ofMs: (row: Row) => Time,
  nowMs: number,
  more: More = {},
): DataColumn<Row> => ({
  ...{ key, header, ...more },
  cell: (row) => moment(ofMs(row), nowMs),
  value: (row) => isoTime(ofMs(row)),
});
