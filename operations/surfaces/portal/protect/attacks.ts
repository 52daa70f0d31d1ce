import { titleOfClass } from '#contracts/attack-classes.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { IncidentRow } from '#operations/protect/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import {
  badge,
  banner,
  type ChartArea,
  type Content,
  cellColumn,
  code,
  codeColumn,
  formatBitRate,
  formatCount,
  formatTime,
  type Html,
  html,
  link,
  moment,
  type Range,
  refreshing,
  section,
  type TableOptions,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { durationOf, incidentBadge } from '../../parts/index.ts';

/** On the page at most five seconds after it was stored. */
const refreshSeconds = 5;
/** An attack whose end was never heard is not a headline for ever. */
const silentHeadlineMs = 86_400_000;
const id = 'attacks-now';

export const incidentHref = (serverId: number, incidentId: string) =>
  `/client/servers/${serverId}/protect/incidents/${incidentId}`;

/** What goes on now, fetched again every five seconds; nothing while all is quiet. */
export function attacksNow(server: Server, open: readonly IncidentRow[], nowMs: number): Html {
  const url = `/client/servers/${server.id}/protect/attacks`;
  const shown = open.filter((each) => isHeadline(each, nowMs));
  return refreshing(
    { id, url, everySeconds: refreshSeconds },
    shown.map((each) => attackBanner(each, nowMs)),
  );
}

export function isHeadline(incident: IncidentRow, nowMs: number): boolean {
  if (incident.severity !== 'attack' || incident.state === 'recovered') return false;
  return incident.state !== 'stale' || nowMs - incident.lastObservedAt.getTime() < silentHeadlineMs;
}

/** The state of a server with attacks, as a sentence; the banner has the details. */
export function attackState(open: readonly IncidentRow[]): { tone: Tone; text: string } {
  if (open.every(({ isDrill }) => isDrill)) return { tone: 'info', text: 'An attack drill is running.' };
  if (open.every((each) => each.state === 'stale'))
    return { tone: 'warn', text: 'No recent data on an attack that began earlier.' };
  const count = open.length === 1 ? '' : `: ${formatCount(open.length)} attacks`;
  const isInbound = open.some(({ direction }) => direction === 'inbound');
  return { tone: 'bad', text: `${isInbound ? 'Under attack' : 'Sending an attack'}${count}.` };
}

function attackBanner(incident: IncidentRow, nowMs: number): Html {
  return banner({
    tone: incident.state === 'stale' ? 'warn' : incident.isDrill ? 'info' : 'bad',
    title: headline(incident, nowMs),
    text: textOf(incident, nowMs),
    actions: link(incidentHref(incident.serverId, incident.id), 'Details', { kind: 'button' }),
  });
}

/** `Under attack since 10:02:11 UTC: SYN flood, 25,000 packets/s, peak 31,000 packets/s`. */
export function headline(incident: IncidentRow, nowMs: number): string {
  const since = clockTime(incident.startedAt.getTime(), nowMs);
  const what = [
    titleOfClass(incident.class),
    incident.currentPps !== null && `${packetsPerSecond(incident.currentPps)} now`,
    `peak ${packetsPerSecond(incident.peakPps)}`,
  ].filter(Boolean);
  const begin = incident.direction === 'inbound' ? 'Under attack' : 'Sending an attack';
  return `${incident.isDrill ? 'Drill: ' : ''}${begin} since ${since}: ${what.join(', ')}`;
}

function textOf(incident: IncidentRow, nowMs: number): Content {
  const { address, direction, isDrill } = incident;
  if (incident.state === 'stale')
    return html`No data from the sensor since ${clockTime(incident.lastObservedAt.getTime(), nowMs)}. The attack may go on. Address ${code(address)}.`;
  if (isDrill)
    return html`An exercise of our operators. No attack traffic is sent. Address ${code(address)}.`;
  if (direction === 'outbound')
    return html`Attack traffic leaves ${code(address)}. Check whether the server is compromised.`;
  return html`Address ${code(address)}, ${formatBitRate(incident.currentBps)} now, peak ${formatBitRate(incident.peakBps)}.`;
}

export const packetsPerSecond = (pps: number) => `${formatCount(Math.round(pps))} packets/s`;

/** The time of today, or the whole moment. */
export function clockTime(ms: number, nowMs: number): string {
  const text = formatTime(ms, 'seconds');
  return text.slice(0, 10) === formatTime(nowMs).slice(0, 10) ? text.slice(11) : text;
}

/** Open ones first, then the others, both newest first. */
export function attacksTable(
  incidents: readonly IncidentRow[],
  nowMs: number,
  more: Pick<TableOptions<IncidentRow>, 'pages' | 'empty' | 'jsonHref' | 'filter'>,
): Html {
  const order = (each: IncidentRow) => (each.state === 'recovered' ? 1 : 0);
  return table<IncidentRow>({
    caption: 'Attacks',
    card: { line: ['state', 'started', 'lasted'] },
    columns: [
      cellColumn('class', 'Attack', (each) => [
        link(incidentHref(each.serverId, each.id), titleOfClass(each.class)),
        each.isDrill && [' ', badge('info', 'drill')],
      ]),
      cellColumn('state', 'State', (each) => incidentBadge(each)),
      cellColumn('direction', 'Direction', (each) => each.direction),
      codeColumn('address', 'Address', (each) => code(each.address)),
      cellColumn('started', 'Since', (each) => moment(each.startedAt.getTime(), nowMs)),
      cellColumn('lasted', 'Duration', (each) => durationOf(each, nowMs)),
      {
        key: 'pps',
        header: 'Peak',
        unit: 'packets/s',
        kind: 'figure',
        cell: (each) => formatCount(Math.round(each.peakPps)),
      },
      { key: 'bps', header: 'Peak bit rate', kind: 'figure', cell: (each) => formatBitRate(each.peakBps) },
    ],
    isStacked: true,
    rows: incidents.toSorted((a, b) => order(a) - order(b)),
    rowTone: (each) => (isHeadline(each, nowMs) && !each.isDrill ? 'bad' : undefined),
    ...more,
  });
}

/** The newest attacks on the Protect page. */
export function attacksSection(server: Server, incidents: readonly IncidentRow[], nowMs: number): Html {
  const path = `/client/servers/${server.id}/protect/incidents`;
  return section(
    {
      title: 'Attacks',
      id: 'attacks',
      actions: incidents.length > 0 && link(path, 'All attacks', { kind: 'button' }),
    },
    attacksTable(incidents, nowMs, {
      jsonHref: `${path}.json`,
      empty: {
        title: 'No attacks',
        text: 'Attacks on this server, and from it, appear here within seconds, with their class, strength and duration.',
      },
    }),
  );
}

/** The intervals of attacks in a chart; one that goes on reaches to its end. */
export function attackAreas(incidents: readonly IncidentRow[]): ChartArea[] {
  return incidents
    .filter(({ severity }) => severity === 'attack')
    .map((each) => ({
      fromMs: each.startedAt.getTime(),
      toMs: each.state === 'stale' ? each.lastObservedAt.getTime() : each.recoveredAt?.getTime(),
      label: areaLabel(each),
      tone: each.isDrill ? 'warn' : 'bad',
    }));
}

/** What goes on says how strong it is now; the chart's minutes know it later. */
function areaLabel(incident: IncidentRow): string {
  const name = `${incident.isDrill ? 'Drill: ' : ''}${titleOfClass(incident.class)}`;
  return incident.currentPps !== null ? `${name}, ${packetsPerSecond(incident.currentPps)} now` : name;
}

interface Subject {
  serverId: number;
  tenantId: number;
  /** Only this address; null or absent: all. */
  address?: string | null;
}

/** Attacks of the Protect page. */
export interface ListedAttacks {
  open: readonly IncidentRow[];
  /** Open ones and the newest others. */
  listed: readonly IncidentRow[];
  nowMs: number;
}

/** Rows of the table on the page; the list has all. */
const listedMax = 10;
/** Red areas of a chart. */
const areasMax = 200;
/** Attacks at the same time that a page tells of. */
const openMax = 20;

/** Those that go on, and the newest. */
export async function readListedAttacks(
  deps: Features,
  actor: Actor,
  subject: Subject,
): Promise<ListedAttacks> {
  const [open, newest] = await Promise.all([
    readOpenAttacks(deps, actor, subject),
    deps.protectIncidents.list(actor, subject, { severity: 'attack', limit: listedMax }),
  ]);
  const others = newest.filter(({ id }) => !open.some((each) => each.id === id));
  return { open, listed: [...open, ...others].slice(0, listedMax), nowMs: deps.clock.nowMs() };
}

/** Attacks that overlap the range. */
export async function readAttacksInChart(
  { protectIncidents }: Features,
  actor: Actor,
  subject: Subject,
  range: Range,
): Promise<IncidentRow[]> {
  const found = await protectIncidents.list(actor, subject, { severity: 'attack', range, limit: areasMax });
  return found.filter(({ address }) => (subject.address ?? address) === address);
}

/** Open incidents of severity attack, newest first. */
export function readOpenAttacks(
  { protectIncidents }: Features,
  actor: Actor,
  subject: Subject,
): Promise<IncidentRow[]> {
  const query = { states: ['active', 'stale'], severity: 'attack', limit: openMax } as const;
  return protectIncidents.list(actor, subject, query);
}
