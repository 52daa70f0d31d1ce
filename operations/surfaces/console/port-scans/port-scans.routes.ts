/** `/console/port-scans/`: port scans of all customers' servers. */
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { keptText } from '#contracts/retention.ts';
import type { Clusters, Node } from '#operations/clusters/index.ts';
import type { ProtectScans } from '#operations/protect/index.ts';
import type { ListedScan, PendingScans, ScanListQuery } from '#operations/views/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  banner,
  type Column,
  type Content,
  code,
  field,
  formatCount,
  type Html,
  html,
  link,
  progress,
  sendPage,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { scanBadge, scanKind, scanOutcome, scanStateWord } from '../../parts/index.ts';
import type { Staff } from '../guard.ts';
import {
  customerColumn,
  isId,
  knownQuery,
  numberOf,
  type ServerListQuery,
  serverCell,
  serverListPage,
} from '../server-list.ts';

const pageSize = 100;
const text = Type.Optional(Type.String({ maxLength: 100 }));
const Query = Type.Object({
  state: text,
  node: text,
  customer: text,
  tenant: text,
  server: text,
  after: text,
});

export function registerPortScans(
  app: App,
  deps: {
    protectScans: Pick<ProtectScans, 'listAll' | 'countPending'>;
    clusters: Pick<Clusters, 'listNodes'>;
    clock: Clock;
  },
): void {
  app.get('/port-scans/', { schema: { querystring: Query } }, async (request, reply) => {
    const staff = request.staff!;
    const query = knownQuery<PortScansQuery>(request.query, known);
    const [found, pending, nodes] = await Promise.all([
      deps.protectScans.listAll(staff.actor, { ...filterOf(query), limit: pageSize + 1 }),
      deps.protectScans.countPending(staff.actor),
      deps.clusters.listNodes(staff.actor, null),
    ]);
    const scans = found.slice(0, pageSize);
    const last = scans.at(-1);
    const url = withQuery('/console/port-scans/', { ...query, after: undefined });
    const nextHref =
      found.length > pageSize && last ? withQuery(url, { after: `${last.place}_${last.id}` }) : undefined;
    const nowMs = deps.clock.nowMs();
    return sendPage(reply, portScansPage({ staff, scans, pending, nodes, query, url, nextHref, nowMs }));
  });
}

const cursorPattern =
  /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** The place in a URL; undefined when it is none. */
function readCursor(given: string | undefined): ScanListQuery['after'] {
  const [, place, id] = cursorPattern.exec(given ?? '') ?? [];
  if (place === undefined || id === undefined || Number.isNaN(Date.parse(place))) return undefined;
  return { place, id };
}

const known = {
  state: (value: string) => scanStates.some((choice) => choice.value === value),
  node: isId,
  customer: (value: string) => value.trim() !== '' && !value.includes('\0'),
  after: (value: string) => readCursor(value) !== undefined,
};

function filterOf({
  state,
  node,
  customer,
  tenant,
  server,
  after,
}: PortScansQuery): Omit<ScanListQuery, 'limit'> {
  return {
    state: scanStates.find((choice) => choice.value === state)?.value,
    nodeId: numberOf(node),
    customer: customer?.trim(),
    tenantId: numberOf(tenant),
    serverId: numberOf(server),
    after: readCursor(after),
  };
}

interface PortScansQuery extends ServerListQuery {
  /** An id. */
  node?: string;
  /** Part of a name. */
  customer?: string;
}

interface PortScansPageOptions {
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

const scanStates = [
  { value: 'running', label: 'Running' },
  { value: 'queued', label: 'Queued' },
  { value: 'overdue', label: 'Overdue' },
  { value: 'failed', label: 'Failed' },
  { value: 'complete', label: 'Complete' },
  { value: 'cancelled', label: 'Cancelled' },
] as const;

/** `/console/port-scans/`: requested scans of all customers' servers, and routine scans that failed, newest first. */
function portScansPage(options: PortScansPageOptions): Html {
  const { staff, scans, pending, query, url, nextHref, nowMs } = options;
  const counts: Readonly<Record<string, number>> = { ...pending };
  return serverListPage<ListedScan>({
    ...{
      staff,
      title: 'Port scans',
      current: 'port-scans',
      path: '/console/port-scans/',
      query,
      url,
      nextHref,
    },
    state: stateOf(pending),
    notice: unfetched(pending),
    tabs: scanStates.map(({ value, label }) => ({ value, label, count: counts[value] })),
    fields: fieldsOf(options),
    columns: columnsOf(nowMs),
    rows: scans,
    rowTone: ({ isOverdue }) => (isOverdue ? 'bad' : undefined),
    empty: {
      title: 'No port scans',
      text: 'Scans that customers request, first scans of new addresses and routine scans that failed appear here. Complete routine scans are on the server’s Protect page.',
    },
    noMatch: {
      title: 'No port scan matches',
      text: `Choose other filters. Requests are kept for ${keptText('scans')} after their end.`,
    },
  });
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

function fieldsOf({ query, nodes }: PortScansPageOptions): Html[] {
  return [
    field({ kind: 'text', name: 'customer', label: 'Customer', value: query.customer ?? '' }),
    field({
      kind: 'select',
      name: 'node',
      label: 'Node',
      value: query.node ?? '',
      options: [
        { value: '', label: 'All nodes' },
        ...nodes.map(({ id, name, clusterName }) => ({
          value: String(id),
          label: `${name} (${clusterName})`,
        })),
      ],
    }),
  ];
}

function columnsOf(nowMs: number): Column<ListedScan>[] {
  return [
    {
      key: 'server',
      header: 'Server',
      cell: (scan) => serverCell(scan, html`<div>${code(scan.address)}</div>`),
    },
    customerColumn,
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
