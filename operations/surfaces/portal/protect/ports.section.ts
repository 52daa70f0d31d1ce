/** Ports on the Protect page: what is open, what has changed, and the scans that say so. */
import { isGuess, type ObservedPort, type ServerPorts, type ServerScan } from '#operations/protect/index.ts';
import type { Server } from '#operations/views/index.ts';
import {
  actionButton,
  age,
  badge,
  banner,
  type Column,
  type Content,
  code,
  formatCount,
  formatTime,
  type Html,
  html,
  link,
  moment,
  progress,
  section,
  table,
} from '#service-kit/pages/index.ts';
import { scanBadge, scanKind, scanOutcome, scanStateWord } from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';

/** Rows on the page; the file has all. */
const portsShown = 200;
const scansShown = 10;

export interface PortsSectionOptions {
  visitor: Visitor;
  server: Server;
  ports: ServerPorts;
}

export function portsSection({ visitor, server, ports }: PortsSectionOptions): Html {
  const path = `/client/servers/${server.id}/protect`;
  const pending = ports.scans.filter(isPending);
  return section(
    {
      title: 'Ports',
      id: 'ports',
      description:
        'Ports that answered a scan from outside. The 100 most used TCP and UDP ports are scanned every hour, all ports every day.',
      actions: actionButton({
        action: `${path}/scan`,
        csrfToken: visitor.csrfToken,
        label: 'Request port scan now',
      }),
    },
    [
      unfetched(pending, ports),
      pending.map((scan) => pendingScan(scan, ports.nowMs)),
      html`<p>${summary(ports)}</p>`,
      openTable(ports, path),
      ports.closed.length > 0 && closedTable(ports),
      ports.scans.length > 0 && scansTable(ports, path),
    ],
  );
}

const isPending = ({ state }: ServerScan) => state === 'queued' || state === 'running';

/** While no monitor fetches it, "queued" alone would promise too much. */
function unfetched(pending: readonly ServerScan[], { isFetched, nowMs }: ServerPorts): Content {
  const waiting = pending.filter(({ state }) => state === 'queued');
  if (isFetched || waiting.length === 0) return '';
  const lastMs = Math.max(...waiting.map(({ expiresAt }) => expiresAt?.getTime() ?? nowMs));
  return banner({
    tone: 'warn',
    title: 'No monitor fetches scan requests right now',
    text: `Requests wait until ${formatTime(lastMs)} and expire if none was started by then.`,
  });
}

function pendingScan(scan: ServerScan, nowMs: number): Html {
  const name = `${scan.kind === 'manual' ? 'Requested scan' : 'First scan'} of ${scan.address}`;
  const requested = scan.requestedAt && html`requested ${age(scan.requestedAt.getTime(), nowMs)}`;
  if (scan.state === 'queued')
    return html`<p>${badge('info', 'queued')} ${name}, ${requested}. It starts within 24 hours or expires.</p>`;
  const heard = scan.heartbeatAt && html`last contact ${age(scan.heartbeatAt.getTime(), nowMs)}`;
  return progress({
    label: `${name}: ${scanStateWord(scan)}`,
    value: scan.progress ?? undefined,
    max: 100,
    detail: [scan.progress !== null && `${Math.floor(scan.progress)} %, `, heard ?? requested],
  });
}

/** What changed since the last scan of all ports. */
function summary({ open, closed, fullScanAt, nowMs }: ServerPorts): Content {
  if (fullScanAt === null)
    return 'No full scan of all addresses yet. Ports outside the 100 most used ones are unknown.';
  const opened = open.filter(({ isChanged }) => isChanged).length;
  const ended = closed.filter(({ isChanged }) => isChanged).length;
  const changes =
    opened + ended === 0
      ? 'no changes since then'
      : `since then ${formatCount(opened)} opened and ${formatCount(ended)} closed`;
  return html`Last full scan ended ${age(fullScanAt.getTime(), nowMs)}, ${changes}.`;
}

const portColumns: readonly Column<ObservedPort>[] = [
  { key: 'port', header: 'Port', kind: 'code', cell: ({ transport, port }) => code(`${transport}/${port}`) },
  { key: 'address', header: 'Address', kind: 'code', cell: ({ address }) => code(address) },
  { key: 'service', header: 'Service', cell: answerOf },
];

function openTable({ open, nowMs }: ServerPorts, path: string): Html {
  return table<ObservedPort>({
    caption: 'Open ports',
    card: { line: ['address', 'service', 'sure'] },
    captionVisible: true,
    columns: [
      ...portColumns,
      { key: 'sure', header: 'Certainty', cell: (row) => certaintyOfOpen(row, nowMs) },
      {
        key: 'since',
        header: 'Open since',
        cell: (row) => [
          moment(row.firstObservedAt.getTime(), nowMs),
          row.isChanged && [' ', badge('info', 'new')],
        ],
      },
      {
        key: 'seen',
        header: 'Last seen',
        cell: (row) => [
          `${row.profile === 'full' ? 'full' : 'hourly'} scan, `,
          age(row.observedAt.getTime(), nowMs),
          row.freshness === 'stale' && [' ', badge('warn', 'stale')],
        ],
      },
    ],
    rows: open.slice(0, portsShown),
    isStacked: true,
    jsonHref: `${path}/ports.json`,
    empty: {
      title: 'No open ports known',
      text: 'Ports appear here after the first scan of the server. Request one to see them sooner.',
    },
  });
}

function closedTable({ closed, nowMs }: ServerPorts): Html {
  return table<ObservedPort>({
    caption: 'Closed within seven days',
    card: { line: ['address', 'service', 'closed'] },
    captionVisible: true,
    columns: [
      ...portColumns,
      { key: 'since', header: 'Open since', cell: (row) => moment(row.firstObservedAt.getTime(), nowMs) },
      {
        key: 'closed',
        header: 'Found closed',
        cell: (row) => [
          row.closedAt && moment(row.closedAt.getTime(), nowMs),
          row.isChanged && [' ', badge('info', 'new')],
        ],
      },
    ],
    rows: closed.slice(0, portsShown),
    isStacked: true,
    empty: { title: 'No closed ports', text: 'Ports that a scan finds closed appear here.' },
  });
}

function scansTable({ scans, nowMs }: ServerPorts, path: string): Html {
  return table<ServerScan>({
    caption: 'Latest scans',
    card: { line: ['state', 'address', 'at'] },
    captionVisible: true,
    columns: [
      {
        key: 'scan',
        header: 'Scan',
        cell: (scan) =>
          scan.result !== null && scan.kind !== 'routine'
            ? link(`${path}/scans/${scan.id}`, scanKind(scan))
            : scanKind(scan),
      },
      { key: 'address', header: 'Address', kind: 'code', cell: ({ address }) => code(address) },
      { key: 'state', header: 'State', cell: scanBadge },
      {
        key: 'at',
        header: 'Time',
        cell: ({ finishedAt, startedAt, requestedAt }) =>
          moment((finishedAt ?? startedAt ?? requestedAt)!.getTime(), nowMs),
      },
      { key: 'result', header: 'Result', kind: 'prose', cell: scanOutcome },
    ],
    rows: scans.slice(0, scansShown),
    isStacked: true,
    empty: { title: 'No scans yet', text: 'Every scan of the last seven days appears here.' },
  });
}

/** What answered; an unknown product is said to be unknown. */
export function answerOf({ answer }: Pick<ObservedPort, 'answer'>): Content {
  const product = [answer.product, answer.version].filter(Boolean).join(' ');
  const name = answer.service ?? 'unknown service';
  const tunnel = answer.tunnel === null ? '' : ` over ${answer.tunnel.toUpperCase()}`;
  if (product === '') return `${name}${tunnel}`;
  return html`${product}${answer.extra_info !== null && ` (${answer.extra_info})`} <span class="hint">${name}${tunnel}</span>`;
}

/** How sure the name of the service is. */
export function certainty({ answer }: Pick<ObservedPort, 'answer'>): Content {
  if (isGuess(answer))
    return html`<span class="unknown" title="The name is guessed from the port number.">guess by port</span>`;
  return `${answer.confidence * 10} %, answered a probe`;
}

/** The same, and the time of the answer where newer scans saw only the open port. */
function certaintyOfOpen(row: ObservedPort, nowMs: number): Content {
  const { identifiedAt, observedAt } = row;
  const isEarlier = identifiedAt !== null && identifiedAt < observedAt;
  return [certainty(row), isEarlier && [' ', age(identifiedAt.getTime(), nowMs)]];
}
