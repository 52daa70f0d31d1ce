/** `/console/port-scans/`: port scans of all customers' servers. */

import { keptText } from '#contracts/retention.ts';
import type { Features } from '#operations/features.ts';
import type { ListedScan, PendingScans, ScanListQuery } from '#operations/views/scan-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  banner,
  type Column,
  type Content,
  cellColumn,
  code,
  formatCount,
  html,
  link,
  progress,
  type Tone,
} from '#service-kit/pages/index.ts';
import { isId, numberOf, readList } from '#service-kit/web/index.ts';
import { scanBadge, scanKind, scanOutcome, scanStateWord } from '../../parts/index.ts';
import {
  customerColumn,
  customerFilter,
  sendListPage,
  serverCell,
  subjectFilters,
  subjectOf,
} from '../list-page.ts';

const scanStates = [
  { value: 'running', label: 'Running' },
  { value: 'queued', label: 'Queued' },
  { value: 'overdue', label: 'Overdue' },
  { value: 'failed', label: 'Failed' },
  { value: 'complete', label: 'Complete' },
  { value: 'cancelled', label: 'Cancelled' },
] as const;

/** Requested scans of all customers' servers, and routine scans that failed, newest first. */
export function registerPortScans(app: App, deps: Features): void {
  app.get('/port-scans/', async (request, reply) => {
    const { actor } = request.staff!;
    const [nodes, pending] = await Promise.all([
      deps.clusters.listNodes(actor, null),
      deps.protectScans.countPending(actor),
    ]);
    const list = await readList(request, {
      ...{ id: 'port-scans', caption: 'Port scans', path: '/console/port-scans/', isStacked: true },
      ...{ card: { line: ['state', 'by', 'tenant'] }, refreshSeconds: 10 },
      filters: [
        { name: 'state', label: 'State', by: 'tabs', options: scanStates },
        customerFilter,
        {
          ...{ name: 'node', label: 'Node', any: 'All nodes', isOpen: true, isValid: isId },
          options: nodes.map(({ id, name, clusterName }) => ({
            ...{ value: String(id), label: `${name} (${clusterName})` },
          })),
        },
        ...subjectFilters,
      ],
      cursor: { write: ({ place, id }: ListedScan) => `${place}_${id}`, read: readCursor },
      read: ({ state, node, ...subject }, { limit, after }) =>
        deps.protectScans.listAll(actor, {
          ...{ limit, after, nodeId: numberOf(node), ...subjectOf(subject) },
          state: scanStates.find(({ value }) => value === state)?.value,
        }),
      columns: columnsOf(deps.clock.nowMs()),
      rowTone: ({ isOverdue }) => (isOverdue ? 'bad' : undefined),
      empty: {
        title: 'No port scans',
        text: 'Scans that customers request, first scans of new addresses and routine scans that failed appear here. Complete routine scans are on the server’s Protect page.',
        action: { label: 'Admin projects', href: '/console/projects/' },
      },
      noMatch: {
        title: 'No port scan matches',
        text: `Choose other filters. Requests are kept for ${keptText('scans')} after their end.`,
      },
    });
    const page = {
      title: 'Port scans',
      current: 'port-scans',
      state: stateOf(pending),
      notice: unfetched(pending),
    } as const;
    return sendListPage(request, reply, page, [
      list.tabs('state', 'Port scans by state', { ...pending }),
      list.table,
    ]);
  });
}

const cursorPattern =
  /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** The place in a URL; undefined when it is none. */
function readCursor(given: string): ScanListQuery['after'] {
  const [, place, id] = cursorPattern.exec(given) ?? [];
  if (place === undefined || id === undefined || Number.isNaN(Date.parse(place))) return undefined;
  return { place, id };
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

function columnsOf(nowMs: number): Column<ListedScan>[] {
  return [
    cellColumn('server', 'Server', (scan) => serverCell(scan, html`<div>${code(scan.address)}</div>`)),
    customerColumn,
    cellColumn('node', 'Node', ({ node, clusterName }) => [
      node === null ? 'none yet' : code(node),
      html` <div class="hint">${clusterName}</div>`,
    ]),
    cellColumn('scan', 'Scan', (scan) => [
      scanKind(scan),
      html` <div class="hint">${poolOf(scan)} pool</div>`,
    ]),
    cellColumn('by', 'Requested by', requesterOf),
    cellColumn('state', 'State', stateCell),
    cellColumn('since', 'Time', (scan) => timeOf(scan, nowMs)),
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
