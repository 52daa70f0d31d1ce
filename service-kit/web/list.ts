/**
 * A list as a declaration: its filters, how its rows are read, its columns and what it says without rows. From it follow the
 * filter's form and tabs, the order, pages, both files, refreshing, and cards on a phone.
 */
import type { FastifyRequest } from 'fastify';
import {
  type Column,
  type Content,
  type EmptyStateOptions,
  field,
  form,
  formatCount,
  type Html,
  hiddenField,
  link,
  readSort,
  type Sort,
  tabs,
  textOfCell,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type DataColumn, type DataTableOptions, dataTable, rowsLimit, wantedFile } from './data-table.ts';

export interface ListFilter {
  name: string;
  label: string;
  /** The choices; without them something is typed. Others than these do not filter. */
  options?: readonly { value: string; label: string }[];
  /** What no choice is called; default `any`. */
  any?: string;
  kind?: 'text' | 'search' | 'datetime-local';
  placeholder?: string;
  /** Other values do not filter; default all that are not empty. */
  isValid?: (value: string) => boolean;
  /** What is no choice filters as well, such as a kind that there is no row of any more. */
  isOpen?: boolean;
  /** `tabs`: its choices stand above the list (`tabs` of the answer); `link`: other pages set it. Default the form. */
  by?: 'tabs' | 'link';
}

/** What the filters ask for, by name. */
export type ListValues = Readonly<Record<string, string | undefined>>;

export interface ListPage<Cursor> {
  limit: number;
  /** The last row of the page before. */
  after: Cursor | undefined;
  /** Rows before this page, of a list without a cursor. */
  skip: number;
  sort: Sort;
}

export interface ListDeclaration<Row, Cursor>
  extends Omit<
    DataTableOptions<Row>,
    'id' | 'rows' | 'isComplete' | 'pages' | 'filter' | 'empty' | 'url' | 'sort' | 'columns'
  > {
  id: string;
  /** Path of the page. */
  path: string;
  /** None: no form. */
  filters: readonly ListFilter[];
  /** Columns that the reader may sort by, and the order without a wish. */
  order?: { by: readonly string[]; fallback: Sort };
  /** Rows of a page; default 100. */
  shown?: number;
  /** Where a page ends, in the URL; undefined for a text that is no such place. Without it pages count rows. */
  cursor?: { write(row: Row): string; read(text: string): Cursor | undefined };
  /** Rows in their order, those of the page alone. */
  read(values: ListValues, page: ListPage<Cursor>): Promise<readonly Row[]>;
  /** Of all rows that the filters leave. */
  count?(values: ListValues): Promise<number>;
  /** A column without a `value` has its text in files. A function where columns need what is read for the rows. */
  columns: readonly Column<Row>[] | ((rows: readonly Row[]) => Promise<readonly Column<Row>[]>);
  /** Without a filter, and with one that leaves nothing; default the same. */
  empty: EmptyStateOptions;
  noMatch?: EmptyStateOptions;
}

const rowsShown = 100;
const valueMax = 200;

/** A filter by an id that other pages link to. */
export const idFilter = (name: string): ListFilter => ({ name, label: name, by: 'link', isValid: isId });
export const isId = (value: string): boolean => /^[1-9]\d{0,14}$/.test(value);
/** The id of a value; it was checked. */
export const numberOf = (value: string | undefined): number | undefined =>
  value === undefined ? undefined : Number(value);

/** The cursor of a list in the order of its ids. */
export const idCursor = <Row extends { id: number }>() => ({
  write: ({ id }: Row) => String(id),
  read: (text: string) => (isId(text) ? Number(text) : undefined),
});

/** Reads the page that the request asks for, or all rows of a file. */
export async function readList<Row, Cursor = undefined>(
  request: FastifyRequest,
  list: ListDeclaration<Row, Cursor>,
) {
  const {
    path,
    filters,
    order,
    shown = rowsShown,
    cursor,
    read,
    count,
    empty,
    noMatch = empty,
    ...options
  } = list;
  const given = request.query as Readonly<Record<string, unknown>>;
  const values = readFilters(request, filters);
  const sortable = order?.by.map((key) => ({ key, sortable: true })) ?? [];
  const sort = readSort(given, sortable, order?.fallback ?? unsorted);
  const isSorted = order !== undefined && sort !== order.fallback;
  const query = { ...values, ...(isSorted && { sort: sort.by, direction: sort.direction }) };
  const url = withQuery(path, query);
  const start = wantedFile(request) ? undefined : textOf(given.after);
  const after = start === undefined ? undefined : cursor?.read(start);
  const skip = start !== undefined && !cursor && isId(start) ? Number(start) : 0;
  const limit = rowsLimit(request, shown);
  const [found, total] = await Promise.all([
    read(values, { limit: limit + 1, after, skip, sort }),
    count?.(values),
  ]);
  const rows = found.slice(0, limit);
  const columns = typeof options.columns === 'function' ? await options.columns(rows) : options.columns;
  const isFirst = after === undefined && skip === 0;
  const hasMore = found.length > limit;
  const next = hasMore ? (cursor?.write(rows.at(-1)!) ?? skip + rows.length) : undefined;
  const isNarrowed = Object.keys(values).length > 0;
  const noun = list.caption.toLowerCase();
  const from = cursor ? (isFirst && total === undefined ? 'The first ' : '') : `${formatCount(skip + 1)}–`;
  const of = total === undefined ? '' : ` of ${formatCount(total)}`;
  const table = dataTable<Row>(request, {
    ...options,
    ...{ rows, url, sort: order && sort, isComplete: !hasMore },
    columns: columns.map((column) => columnOf(column, order?.by.includes(column.key))),
    filter: filterForm(path, filters, query, isNarrowed && link(path, `All ${noun}`)),
    pages:
      hasMore || !isFirst
        ? {
            label: `${from}${formatCount(skip + rows.length)}${of}`,
            previousHref: isFirst
              ? undefined
              : withQuery(url, { after: skip > shown ? skip - shown : undefined }),
            nextHref: hasMore ? withQuery(url, { after: next }) : undefined,
          }
        : undefined,
    empty: isFirst
      ? isNarrowed
        ? noMatch
        : empty
      : { title: `No ${noun}`, text: `There are no more ${noun}.` },
  });
  /** The choices of a filter as tabs, with how many rows each has where that is known. */
  const tabsOf = (
    name: string,
    label: string,
    counts: Readonly<Record<string, number | undefined>> = {},
  ): Html => {
    const filter = filters.find((one) => one.name === name);
    return tabs(
      label,
      [{ value: '', label: filter?.any ?? 'All' }, ...(filter?.options ?? [])].map((choice) => ({
        ...{ label: choice.label, count: counts[choice.value] },
        href: withQuery(url, { [name]: choice.value || undefined }),
        current: (values[name] ?? '') === choice.value,
      })),
    );
  };
  return { rows, hasMore, isNarrowed, isFirst, url, table, tabs: tabsOf };
}

const unsorted: Sort = { by: '', direction: 'asc' };

/** What is too long, given twice or empty is not asked for. */
function textOf(given: unknown): string | undefined {
  const text = typeof given === 'string' && given.length <= valueMax ? given.trim() : '';
  return text === '' || text.includes('\0') ? undefined : text;
}

/** What the request filters by, for what stands beside the list. */
export function readFilters(request: FastifyRequest, filters: readonly ListFilter[]): ListValues {
  const given = request.query as Readonly<Record<string, unknown>>;
  const known = filters.flatMap(({ name, options, isOpen, isValid }) => {
    const value = textOf(given[name]);
    const isChoice = isOpen || !options || options.some((choice) => choice.value === value);
    return value !== undefined && isChoice && isValid?.(value) !== false ? [[name, value] as const] : [];
  });
  return Object.fromEntries(known);
}

/** A column of a list can be sorted by where the list says so, and is its text in files where it says nothing else. */
function columnOf<Row>(column: Column<Row>, sortable = false): DataColumn<Row> {
  const { kind, value = (row: Row) => textOfCell(column.cell(row)) } = column;
  if (kind === 'actions' || kind === 'picture') return { ...column, kind };
  return { ...column, sortable, value };
}

/** Choosing keeps the order, the tab and what other pages set. */
function filterForm(
  path: string,
  filters: readonly ListFilter[],
  query: ListValues,
  cancel: Content,
): Content {
  const fields = filters.filter(({ by }) => by === undefined);
  if (fields.length === 0) return '';
  const kept = Object.entries(query).filter(([name]) => !fields.some((filter) => filter.name === name));
  return form(
    { action: path, method: 'get', submit: 'Filter', submitKind: 'button', layout: 'inline', cancel },
    [
      kept.map(([name, value]) => hiddenField(name, value!)),
      fields.map(({ name, label, options, any = 'any', kind = 'text', placeholder }) =>
        options === undefined
          ? field({
              kind,
              name,
              label,
              value: query[name],
              ...(placeholder && { placeholder, isCode: true }),
            })
          : field({
              ...{ kind: 'select', name, label, value: query[name] ?? '' },
              options: [{ value: '', label: any }, ...options],
            }),
      ),
    ],
  );
}
