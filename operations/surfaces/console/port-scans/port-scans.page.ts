import type { Node } from '#operations/clusters/index.ts';
import type { ListedScan, PendingScans } from '#operations/protect/index.ts';
import {
  age,
  banner,
  type Column,
  type Content,
  code,
  field,
  form,
  formatCount,
  type Html,
  hiddenField,
  html,
  link,
  pageHeader,
  progress,
  refreshing,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { scanBadge, scanKind, scanOutcome, scanStateWord } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

export interface PortScansQuery extends Record<string, string | undefined> {
  /** One of `scanStates`. */
  state?: string;
  /** An id. */
  node?: string;
  /** Part of a name. */
  customer?: string;
  tenant?: string;
  server?: string;
  after?: string;
}

export interface PortScansPageOptions {
  staff: Staff;
  scans: readonly ListedScan[];
  pending: PendingScans;
  nodes: readonly Node[];
  query: PortScansQuery;
  /** Path and query of the first page. */
  url: string;
  nextHref: string | undefined;
  nowMs: number;
}

export const scanStates = [
  { value: 'running', label: 'Running' },
  { value: 'queued', label: 'Queued' },
  { value: 'overdue', label: 'Overdue' },
  { value: 'failed', label: 'Failed' },
  { value: 'complete', label: 'Complete' },
  { value: 'cancelled', label: 'Cancelled' },
] as const;

/** `/console/port-scans/`: requested scans of all customers' servers, and routine scans that failed, newest first. */
export function portScansPage(options: PortScansPageOptions): Html {
  const { staff, scans, pending, query, url, nextHref, nowMs } = options;
  const href = (state: string | undefined) => withQuery(url, { state });
  const counts: Readonly<Record<string, number>> = { ...pending };
  const title = 'Port scans';
  return consoleFrame({ staff, title, current: 'port-scans', breadcrumb: [{ label: title }] }, [
    refreshing({ id: 'scans-state', url, everySeconds: 10 }, [
      pageHeader({ title, state: stateOf(pending) }),
      unfetched(pending),
    ]),
    tabs('Port scans by state', [
      { label: 'All', href: href(undefined), current: query.state === undefined },
      ...scanStates.map(({ value, label }) => ({
        ...{ label, href: href(value), current: query.state === value, count: counts[value] },
      })),
    ]),
    filterForm(options),
    refreshing(
      { id: 'scans-list', url: withQuery(url, { after: query.after }), everySeconds: 10 },
      table<ListedScan>({
        caption: 'Port scans',
        columns: columnsOf(nowMs),
        isStacked: true,
        rows: scans,
        rowTone: ({ isOverdue }) => (isOverdue ? 'bad' : undefined),
        pages:
          nextHref === undefined && query.after === undefined
            ? undefined
            : { nextHref, previousHref: query.after === undefined ? undefined : url },
        empty: emptyOf(query),
      }),
    ),
  ]);
}

function stateOf({ running, overdue, queued }: PendingScans): { tone: Tone; text: string } {
  if (running + queued === 0) return { tone: 'good', text: 'No scan is running or queued.' };
  const text = `${formatCount(running)} running, ${formatCount(queued)} queued.`;
  if (overdue === 0) return { tone: 'info', text };
  return { tone: 'warn', text: `${formatCount(overdue)} overdue. ${text}` };
}

function unfetched({ unfetched: count }: PendingScans): Content {
  if (count === 0) return '';
  return banner({
    tone: 'warn',
    title: `No monitor fetches ${count === 1 ? 'one queued request' : `${formatCount(count)} queued requests`}`,
    text: html`A monitor whose ${link('/console/projects/', 'admin project')} has the permission ${code('protect_port_scan_ingest')} for the cluster fetches requests every few seconds. What is not started within 24 hours expires.`,
  });
}

function filterForm({ query, nodes }: PortScansPageOptions): Html {
  const { state, server, tenant, node, customer } = query;
  return form(
    {
      action: '/console/port-scans/',
      method: 'get',
      submit: 'Filter',
      submitKind: 'button',
      layout: 'inline',
    },
    [
      state !== undefined && hiddenField('state', state),
      server !== undefined && hiddenField('server', server),
      tenant !== undefined && hiddenField('tenant', tenant),
      field({ kind: 'text', name: 'customer', label: 'Customer', value: customer ?? '' }),
      field({
        kind: 'select',
        name: 'node',
        label: 'Node',
        value: node ?? '',
        options: [
          { value: '', label: 'All nodes' },
          ...nodes.map(({ id, name, clusterName }) => ({
            value: String(id),
            label: `${name} (${clusterName})`,
          })),
        ],
      }),
    ],
  );
}

function columnsOf(nowMs: number): Column<ListedScan>[] {
  return [
    {
      key: 'server',
      header: 'Server',
      cell: (scan): Content => [
        scan.isReleased ? scan.serverName : link(`/console/servers/${scan.serverId}`, scan.serverName),
        html`<div>${code(scan.address)}</div>`,
      ],
    },
    {
      key: 'tenant',
      header: 'Customer',
      cell: (scan) => link(`/console/customers/${scan.tenantId}`, scan.tenantName),
    },
    {
      key: 'node',
      header: 'Node',
      cell: ({ node, clusterName }) => [
        node === null ? 'none yet' : code(node),
        html` <div class="hint">${clusterName}</div>`,
      ],
    },
    {
      key: 'scan',
      header: 'Scan',
      cell: (scan) => [scanKind(scan), html` <div class="hint">${poolOf(scan)} pool</div>`],
    },
    { key: 'by', header: 'Requested by', cell: requesterOf },
    { key: 'state', header: 'State', cell: stateCell },
    { key: 'since', header: 'Time', cell: (scan) => timeOf(scan, nowMs) },
    { key: 'result', header: 'Result', kind: 'prose', cell: outcomeOf },
  ];
}

/** The scans of a sensor that may run at once are of three pools. */
function poolOf({ kind, profile }: ListedScan): string {
  if (kind !== 'routine') return 'customer';
  return profile === 'full' ? 'daily' : 'hourly';
}

function requesterOf({ kind, requestedBy, isByKey }: ListedScan): Content {
  if (kind === 'routine') return 'schedule';
  if (kind === 'automatic') return 'new address';
  const name = requestedBy ?? 'customer';
  return isByKey ? [name, html` <div class="hint">API key</div>`] : name;
}

function stateCell(scan: ListedScan): Content {
  if (scan.state !== 'running' || scan.progress === null) return scanBadge(scan);
  return progress({
    label: scanStateWord(scan),
    value: scan.progress,
    max: 100,
    detail: `${Math.floor(scan.progress)} %`,
  });
}

function timeOf({ requestedAt, startedAt, finishedAt }: ListedScan, nowMs: number): Content {
  if (finishedAt !== null) return ['ended ', age(finishedAt.getTime(), nowMs)];
  if (startedAt !== null) return ['started ', age(startedAt.getTime(), nowMs)];
  return requestedAt === null ? null : ['requested ', age(requestedAt.getTime(), nowMs)];
}

function outcomeOf(scan: ListedScan): string {
  const { notes, portsOpen } = scan;
  return scanOutcome({ ...scan, result: notes === null ? null : { notes, portsOpen: portsOpen ?? 0 } });
}

function emptyOf(query: PortScansQuery) {
  if (Object.keys(query).length > 0)
    return {
      title: 'No port scan matches',
      text: 'Choose other filters. Requests are kept for seven days after their end.',
      action: { label: 'Show all', href: '/console/port-scans/' },
    };
  return {
    title: 'No port scans',
    text: 'Scans that customers request, first scans of new addresses and routine scans that failed appear here. Complete routine scans are on the server’s Protect page.',
    action: { label: 'Admin projects', href: '/console/projects/' },
  };
}
