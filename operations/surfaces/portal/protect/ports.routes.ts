/** Ports of a server: `ports.json`, the button that requests a scan, and what one requested scan found. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import {
  type FoundService,
  isGuess,
  type ObservedPort,
  requestLimits,
  type ServerPorts,
  type ServerScan,
} from '#operations/protect/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  age,
  badge,
  banner,
  type Column,
  type Content,
  cellColumn,
  chosenOf,
  code,
  codeColumn,
  definitionList,
  formatCount,
  formatTime,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  progress,
  section,
  sendPage,
  type Tone,
  table,
  withQuery,
} from '#service-kit/pages/index.ts';
import { momentColumn, noSuchPage } from '#service-kit/web/index.ts';
import { scanBadge, scanKind, scanOutcome, scanStateWord } from '../../parts/index.ts';
import { Id, type Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';
import { findProtectedOf } from './guard-protect.ts';

const ScanId = Type.Object({ id: Type.String(), scan: Type.String() });
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What the page says after a click. A refusal is a word in the URL, so that the answer can always be a 303. */
const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  requested: { tone: 'good', text: 'Port scan requested.' },
  pending: { tone: 'info', text: 'A port scan of this server is requested already.' },
  not_running: { tone: 'bad', text: 'The server is not running. Start it, then request the scan again.' },
  no_address: { tone: 'bad', text: 'The server has no public address to scan.' },
  too_many_addresses: {
    tone: 'bad',
    text: 'The server has more than 32 public addresses, which is the limit of one request. Nothing was requested.',
  },
  limit_exceeded: {
    tone: 'bad',
    text: 'The account would have more than 100 addresses waiting for a scan. Try again when some are done.',
  },
};

/** The toast of a page that a click led to. The end of a cooldown is that of the latest request on the page. */
export function toastOf(outcome: string | undefined, { scans, nowMs }: Pick<ServerPorts, 'scans' | 'nowMs'>) {
  if (outcome === 'cooldown') {
    const endMs = cooldownEndMs(scans);
    return endMs <= nowMs
      ? undefined
      : {
          tone: 'bad' as const,
          text: `No scan can be requested until ${formatTime(endMs)}: one was requested less than 10 minutes ago.`,
        };
  }
  return chosenOf(outcomes, outcome);
}

const cooldownEndMs = (scans: readonly ServerScan[]): number =>
  Math.max(
    0,
    ...scans.map(({ kind, requestedAt }) => (kind === 'manual' ? (requestedAt?.getTime() ?? 0) : 0)),
  ) +
  requestLimits.cooldownSeconds * 1000;

export function registerPorts(app: App, deps: Features): void {
  const path = '/servers/:id/protect';

  app.post(`${path}/scan`, { schema: { params: Id } }, async (request, reply) => {
    const outcome = await requestScan(deps, request);
    return reply.redirect(withQuery(`/client/servers/${request.params.id}/protect`, { scan: outcome }), 303);
  });

  app.get(`${path}/ports.json`, { schema: { params: Id } }, async (request, reply) => {
    const { visitor, subject } = await findProtectedOf(deps, request);
    const { open, closed, scans } = await deps.protectScans.read(visitor.actor, subject);
    return reply.send({
      ports: open.map(portToWire),
      closed: closed.map(closedToWire),
      scans: scans.map(scanToWire),
    });
  });

  app.get(`${path}/scans/:scan`, { schema: { params: ScanId } }, async (request, reply) => {
    const { visitor, server, subject } = await findProtectedOf(deps, request);
    const { scan: id } = request.params;
    const found = uuid.test(id) ? await deps.protectScans.readResult(visitor.actor, subject, id) : null;
    if (found === null) throw noSuchPage();
    return sendPage(reply, scanPage({ visitor, server, ...found }));
  });
}

async function requestScan(deps: Features, request: FastifyRequest<{ Params: { id: string } }>) {
  const { visitor, server } = await findProtectedOf(deps, request);
  try {
    const { isNew } = await deps.protectScans.request(visitor.actor, server.id);
    return isNew ? 'requested' : 'pending';
  } catch (error) {
    const [feature, reason] = error instanceof CodedError ? error.code.split('.') : [];
    if (feature !== 'port_scans' || reason === undefined) throw error;
    if (reason !== 'cooldown' && !Object.hasOwn(outcomes, reason)) throw noSuchPage();
    return reason;
  }
}

function portToWire(row: ObservedPort) {
  return {
    address: row.address,
    transport: row.transport,
    port: row.port,
    service: row.answer.service,
    product: row.answer.product,
    version: row.answer.version,
    state: row.state,
    first_observed_at: row.firstObservedAt.toISOString(),
    observed_at: row.observedAt.toISOString(),
    identified_at: row.identifiedAt?.toISOString() ?? null,
    profile: row.profile,
    freshness: row.freshness,
  };
}

const closedToWire = (row: ObservedPort) => ({
  ...portToWire(row),
  closed_at: row.closedAt?.toISOString() ?? null,
});

function scanToWire(scan: ServerScan) {
  return {
    id: scan.id,
    address: scan.address,
    kind: scan.kind,
    state: scan.state,
    requested_at: scan.requestedAt?.toISOString() ?? null,
    started_at: scan.startedAt?.toISOString() ?? null,
    finished_at: scan.finishedAt?.toISOString() ?? null,
  };
}

/** Rows on the page; the file has all. */
const portsShown = 200;
const scansShown = 10;

interface PortsSectionOptions {
  visitor: Visitor;
  server: Server;
  ports: ServerPorts;
}

/** Ports on the Protect page: what is open, what has changed, and the scans that say so. */
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
  codeColumn('port', 'Port', ({ transport, port }) => code(`${transport}/${port}`)),
  codeColumn('address', 'Address', ({ address }) => code(address)),
  cellColumn('service', 'Service', answerOf),
];

function openTable({ open, nowMs }: ServerPorts, path: string): Html {
  return table<ObservedPort>({
    caption: 'Open ports',
    card: { line: ['address', 'service', 'sure'] },
    captionVisible: true,
    columns: [
      ...portColumns,
      cellColumn('sure', 'Certainty', (row) => certaintyOfOpen(row, nowMs)),
      cellColumn('since', 'Open since', (row) => [
        moment(row.firstObservedAt.getTime(), nowMs),
        row.isChanged && [' ', badge('info', 'new')],
      ]),
      cellColumn('seen', 'Last seen', (row) => [
        `${row.profile === 'full' ? 'full' : 'hourly'} scan, `,
        age(row.observedAt.getTime(), nowMs),
        row.freshness === 'stale' && [' ', badge('warn', 'stale')],
      ]),
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
      momentColumn('since', 'Open since', (row) => row.firstObservedAt.getTime(), nowMs),
      cellColumn('closed', 'Found closed', (row) => [
        row.closedAt && moment(row.closedAt.getTime(), nowMs),
        row.isChanged && [' ', badge('info', 'new')],
      ]),
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
      cellColumn('scan', 'Scan', (scan) =>
        scan.result !== null && scan.kind !== 'routine'
          ? link(`${path}/scans/${scan.id}`, scanKind(scan))
          : scanKind(scan),
      ),
      codeColumn('address', 'Address', ({ address }) => code(address)),
      cellColumn('state', 'State', scanBadge),
      momentColumn(
        'at',
        'Time',
        ({ finishedAt, startedAt, requestedAt }) => (finishedAt ?? startedAt ?? requestedAt)!.getTime(),
        nowMs,
      ),
      { key: 'result', header: 'Result', kind: 'prose', cell: scanOutcome },
    ],
    rows: scans.slice(0, scansShown),
    isStacked: true,
    empty: { title: 'No scans yet', text: 'Every scan of the last seven days appears here.' },
  });
}

/** What answered; an unknown product is said to be unknown. */
function answerOf({ answer }: Pick<ObservedPort, 'answer'>): Content {
  const product = [answer.product, answer.version].filter(Boolean).join(' ');
  const name = answer.service ?? 'unknown service';
  const tunnel = answer.tunnel === null ? '' : ` over ${answer.tunnel.toUpperCase()}`;
  if (product === '') return `${name}${tunnel}`;
  return html`${product}${answer.extra_info !== null && ` (${answer.extra_info})`} <span class="hint">${name}${tunnel}</span>`;
}

/** How sure the name of the service is. */
function certainty({ answer }: Pick<ObservedPort, 'answer'>): Content {
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

interface ScanPageOptions {
  visitor: Visitor;
  server: Server;
  scan: ServerScan;
  services: readonly FoundService[];
  nowMs: number;
}

/** What one requested scan found, as it was delivered; newer scans do not change it (NET-2.7.9). */
function scanPage({ visitor, server, scan, services, nowMs }: ScanPageOptions): Html {
  const time = (at: Date | null) => (at === null ? 'unknown' : moment(at.getTime(), nowMs));
  const header = pageHeader({ title: `Port scan of ${scan.address}`, state: undefined });
  return serverFrame({ visitor, server, tab: 'protect', part: 'Port scan' }, header, [
    section({ title: 'Scan', id: 'scan' }, [
      definitionList([
        { term: 'State', value: scanBadge(scan) },
        { term: 'Kind', value: scanKind(scan) },
        { term: 'Address', value: code(scan.address) },
        { term: 'Requested', value: time(scan.requestedAt) },
        { term: 'Started', value: time(scan.startedAt) },
        { term: 'Ended', value: time(scan.finishedAt) },
        { term: 'Result', value: scanOutcome(scan) },
        { term: 'Ports asked', value: askedOf(scan) },
        { term: 'Scan id', value: code(scan.id) },
      ]),
    ]),
    section(
      {
        title: 'Open ports',
        id: 'found',
        description: 'As this scan found them. Later scans do not change this list.',
      },
      table<FoundService>({
        caption: 'Open ports that this scan found',
        card: { line: ['service', 'sure'] },
        columns: [
          codeColumn('port', 'Port', ({ transport, port }) => code(`${transport}/${port}`)),
          cellColumn('service', 'Service', answerOf),
          cellColumn('sure', 'Certainty', certainty),
          cellColumn('since', 'Open since', ({ firstObservedAt }) => time(firstObservedAt)),
        ],
        rows: services,
        isStacked: true,
        empty: { title: 'No open ports', text: 'No port of this address answered the scan.' },
      }),
    ),
  ]);
}

function askedOf({ result }: ServerScan): Content {
  if (result === null || result.phases.length === 0) return 'unknown';
  return result.phases
    .map(
      ({ transport, ports_asked, filtered, silent }) =>
        `${transport.toUpperCase()}: ${formatCount(ports_asked)} asked, ${formatCount(filtered)} filtered, ${formatCount(silent)} silent`,
    )
    .join('; ');
}
