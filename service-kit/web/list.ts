/**
 * A list as a declaration: its filters, how its rows are read, its columns and what it says without rows. From it follow the
 * filter's form, pages behind a cursor, both files, refreshing, and cards on a phone.
 */
import type { FastifyRequest } from 'fastify';
import { type EmptyStateOptions, field, form, type Html, link, withQuery } from '#service-kit/pages/index.ts';
import { type DataTableOptions, dataTable, rowsLimit, wantedFile } from './data-table.ts';

export interface ListFilter {
  name: string;
  label: string;
  /** The choices; without them a text or a time is typed. Others than these do not filter. */
  options?: readonly { value: string; label: string }[];
  kind?: 'text' | 'datetime-local';
  /** What is no choice filters as well, such as a kind that there is no row of any more. */
  isOpen?: boolean;
}

export interface ListDeclaration<Row>
  extends Omit<DataTableOptions<Row>, 'rows' | 'isComplete' | 'pages' | 'filter' | 'empty'> {
  /** Path of the page. */
  path: string;
  /** None: no form. */
  filters: readonly ListFilter[];
  /** Rows in their order, those after the cursor alone. */
  read(values: ListValues, page: { limit: number; after: string | undefined }): Promise<readonly Row[]>;
  /** Where a page ends, in the URL; and what else in a URL is no such place. */
  cursorOf(row: Row): string;
  isCursor(text: string): boolean;
  /** Without a filter, and with one that leaves nothing. */
  empty: EmptyStateOptions;
  noMatch: EmptyStateOptions;
}

/** What the filters ask for, by name. */
export type ListValues = Readonly<Record<string, string | undefined>>;

const rowsShown = 100;

/** Reads the page that the request asks for, or all rows of a file. */
export async function readList<Row>(request: FastifyRequest, list: ListDeclaration<Row>) {
  const { path, filters, read, cursorOf, isCursor, empty, noMatch, ...options } = list;
  const given = request.query as ListValues;
  const values = valuesOf(filters, given);
  const after = given.after !== undefined && isCursor(String(given.after)) ? String(given.after) : undefined;
  const limit = rowsLimit(request, rowsShown);
  const found = await read(values, { limit: limit + 1, after });
  const rows = found.slice(0, limit);
  const hasMore = found.length > limit;
  const isNarrowed = Object.keys(values).length > 0;
  const noun = list.caption.toLowerCase();
  const last = rows.at(-1);
  const nextHref =
    hasMore && last && !wantedFile(request) ? withQuery(request.url, { after: cursorOf(last) }) : undefined;
  const none = isNarrowed ? noMatch : empty;
  const table = dataTable<Row>(request, {
    ...options,
    rows,
    isComplete: !hasMore,
    filter: filters.length > 0 && filterForm(path, filters, values, `All ${noun}`),
    pages:
      nextHref || after
        ? {
            label: after ? `Older ${noun}` : `The newest ${rows.length}`,
            previousHref: after ? withQuery(request.url, { after: undefined }) : undefined,
            nextHref,
          }
        : undefined,
    empty: after ? { title: `No ${noun}`, text: `There are no older ${noun}.` } : none,
  });
  return { rows, hasMore, isNarrowed, isFirst: after === undefined, table };
}

function valuesOf(filters: readonly ListFilter[], given: ListValues): ListValues {
  const known = filters.flatMap(({ name, options, isOpen }) => {
    const value = given[name]?.trim();
    const isKnown =
      value && (isOpen || options === undefined || options.some((choice) => choice.value === value));
    return isKnown ? [[name, value] as const] : [];
  });
  return Object.fromEntries(known);
}

function filterForm(path: string, filters: readonly ListFilter[], values: ListValues, all: string): Html {
  const isNarrowed = Object.keys(values).length > 0;
  return form(
    {
      ...{ action: path, method: 'get', submit: 'Filter', submitKind: 'button', layout: 'inline' },
      cancel: isNarrowed && link(path, all),
    },
    filters.map(({ name, label, options, kind = 'text' }) =>
      options === undefined
        ? field({ kind, name, label, value: values[name] })
        : field({
            ...{ kind: 'select', name, label, value: values[name] ?? '' },
            options: [{ value: '', label: 'any' }, ...options],
          }),
    ),
  );
}
