/**
 * Lists of what happens to the servers of all customers, alike: the state now, tabs by state, a filter that keeps the rest of
 * the query, rows that refresh, and texts for no rows. Cells of server and customer lead to their pages.
 */
import {
  type Column,
  type Content,
  form,
  type Html,
  hiddenField,
  link,
  pageHeader,
  refreshing,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { consoleFrame, type FrameOptions } from './frame.ts';
import type { Staff } from './guard.ts';

/** What the URL asks for; without what is empty or says nothing that is known. */
export interface ServerListQuery extends Record<string, string | undefined> {
  /** One of the tabs. */
  state?: string;
  /** Ids. */
  server?: string;
  tenant?: string;
  after?: string;
}

export interface ServerListOptions<Row> {
  staff: Staff;
  title: string;
  current: FrameOptions['current'];
  /** The path of the list, such as `/console/attacks/`. */
  path: string;
  state: { tone: Tone; text: string };
  /** Below the state. */
  notice?: Content;
  tabs: readonly { value: string; label: string; count?: number | undefined }[];
  /** Fields of the filter. */
  fields: readonly Content[];
  query: ServerListQuery;
  /** Path and query of the first page. */
  url: string;
  nextHref: string | undefined;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowTone?: (row: Row) => Tone | undefined;
  rowDetail?: (row: Row) => Content;
  /** Default 10. */
  refreshSeconds?: number;
  /** Without a filter, and with one. */
  empty: { title: string; text: string };
  noMatch: { title: string; text: string };
}

export function serverListPage<Row>(options: ServerListOptions<Row>): Html {
  const { staff, title, current, query, url, nextHref, refreshSeconds = 10 } = options;
  const id = current;
  const href = (state: string | undefined) => withQuery(url, { state });
  return consoleFrame({ staff, title, current, breadcrumb: [{ label: title }] }, [
    refreshing({ id: `${id}-state`, url, everySeconds: refreshSeconds }, [
      pageHeader({ title, state: options.state }),
      options.notice,
    ]),
    tabs(`${title} by state`, [
      { label: 'All', href: href(undefined), current: query.state === undefined },
      ...options.tabs.map(({ value, label, count }) => ({
        ...{ label, href: href(value), current: query.state === value, count },
      })),
    ]),
    filterForm(options),
    refreshing(
      { id: `${id}-list`, url: withQuery(url, { after: query.after }), everySeconds: refreshSeconds },
      table<Row>({
        caption: title,
        card: { line: ['class', 'severity', 'state', 'service', 'by', 'tenant'] },
        columns: options.columns,
        isStacked: true,
        rows: options.rows,
        ...(options.rowTone && { rowTone: options.rowTone }),
        ...(options.rowDetail && { rowDetail: options.rowDetail }),
        pages:
          nextHref === undefined && query.after === undefined
            ? undefined
            : { nextHref, previousHref: query.after === undefined ? undefined : url },
        empty: emptyOf(options),
      }),
    ),
  ]);
}

/** Choosing a filter keeps the tab, and the server or customer that the list is about. */
function filterForm<Row>({ path, query, fields }: ServerListOptions<Row>): Html {
  const kept = (['state', 'server', 'tenant'] as const).flatMap((name) =>
    query[name] === undefined ? [] : [hiddenField(name, query[name])],
  );
  return form({ action: path, method: 'get', submit: 'Filter', submitKind: 'button', layout: 'inline' }, [
    ...kept,
    ...fields,
  ]);
}

function emptyOf<Row>({ query, path, empty, noMatch }: ServerListOptions<Row>) {
  return Object.keys(query).length > 0
    ? { ...noMatch, action: { label: 'Show all', href: path } }
    : { ...empty, action: { label: 'Admin projects', href: '/console/projects/' } };
}

/** The server with its address; without a link where it has the address no more. */
export function serverCell(
  row: { serverId: number; serverName: string; isReleased: boolean },
  address: Content,
): Content {
  return [
    row.isReleased ? row.serverName : link(`/console/servers/${row.serverId}`, row.serverName),
    ' ',
    address,
  ];
}

export const customerColumn: Column<{ tenantId: number; tenantName: string }> = {
  key: 'tenant',
  header: 'Customer',
  cell: (row) => link(`/console/customers/${row.tenantId}`, row.tenantName),
};

const idPattern = /^[1-9]\d{0,14}$/;
export const isId = (value: string): boolean => idPattern.test(value);

/** The query without what is empty or says nothing that is known; `known` has the names beside server and customer. */
export function knownQuery<Query extends ServerListQuery>(
  given: Query,
  known: Readonly<Record<string, (value: string) => boolean>>,
): Query {
  const all: typeof known = { server: isId, tenant: isId, ...known };
  return Object.fromEntries(
    Object.entries(given).filter(
      ([name, value]) => value !== undefined && Object.hasOwn(all, name) && all[name]!(value),
    ),
  ) as Query;
}

/** The id of a query; it was checked. */
export const numberOf = (value: string | undefined): number | undefined =>
  value === undefined ? undefined : Number(value);
