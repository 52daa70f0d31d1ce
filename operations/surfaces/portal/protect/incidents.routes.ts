/** Attacks of a server: what goes on now, the list, one of them, and `incidents.json` for programs. */
import { Type } from 'typebox';
import { titleOfClass } from '#contracts/attack-classes.ts';
import { incidentActions } from '#contracts/incidents.ts';
import { describeProtocol } from '#contracts/ip-protocols.ts';
import { keptText } from '#contracts/retention.ts';
import type { Features } from '#operations/features.ts';
import { actionsOf, type IncidentRow, type IncidentVector } from '#operations/protect/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  cellColumn,
  code,
  codeColumn,
  definitionList,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPercent,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  sendPage,
  stat,
  stats,
  type Tone,
  table,
  tabs,
  utcTime,
  withQuery,
} from '#service-kit/pages/index.ts';
import { figureColumn, momentColumn, noSuchPage } from '#service-kit/web/index.ts';
import { durationOf, readIncidentCursor, writeIncidentCursor } from '../../parts/index.ts';
import { Id, type Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';
import {
  attacksNow,
  attacksTable,
  clockTime,
  headline,
  incidentHref,
  packetsPerSecond,
  readOpenAttacks,
} from './attacks.ts';
import { findProtectedOf } from './guard-protect.ts';

const IncidentId = Type.Object({ id: Type.String(), incident: Type.String() });
const ListQuery = Type.Object({
  severity: Type.Optional(Type.String({ maxLength: 10 })),
  after: Type.Optional(Type.String({ maxLength: 60 })),
});
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const pageSize = 50;
/** Of each severity, the newest. */
const listedMax = 200;

export function registerIncidents(app: App, deps: Features): void {
  const path = '/servers/:id/protect';
  // Only the banner: it is asked for every five seconds.
  app.get(`${path}/attacks`, { schema: { params: Id } }, async (request, reply) => {
    const { visitor, server, subject } = await findProtectedOf(deps, request);
    const open = await readOpenAttacks(deps, visitor.actor, subject);
    return sendPage(reply, attacksNow(server, open, deps.clock.nowMs()));
  });

  app.get(`${path}/incidents`, { schema: { params: Id, querystring: ListQuery } }, async (request, reply) => {
    const { visitor, server, subject } = await findProtectedOf(deps, request);
    const severity = request.query.severity === 'info' ? 'info' : 'attack';
    const after = readIncidentCursor(request.query.after);
    const query = { severity, after, limit: pageSize + 1 } as const;
    const found = await deps.protectIncidents.list(visitor.actor, subject, query);
    const incidents = found.slice(0, pageSize);
    const last = incidents.at(-1);
    const base = `/client/servers/${server.id}/protect/incidents`;
    const url = withQuery(base, { severity: severity === 'info' ? severity : undefined });
    const nextHref =
      found.length > pageSize && last ? withQuery(url, { after: writeIncidentCursor(last) }) : undefined;
    const isFirst = after === undefined;
    const nowMs = deps.clock.nowMs();
    return sendPage(
      reply,
      incidentsPage({ visitor, server, severity, incidents, url, isFirst, nextHref, nowMs }),
    );
  });

  app.get(`${path}/incidents/:incident`, { schema: { params: IncidentId } }, async (request, reply) => {
    const { visitor, server, subject } = await findProtectedOf(deps, request);
    const { incident: id } = request.params;
    const incident = uuid.test(id) ? await deps.protectIncidents.find(visitor.actor, subject, id) : null;
    if (incident === null) throw noSuchPage();
    return sendPage(reply, incidentPage({ visitor, server, incident, nowMs: deps.clock.nowMs() }));
  });

  app.get(`${path}/incidents.json`, { schema: { params: Id } }, async (request, reply) => {
    const { visitor, subject } = await findProtectedOf(deps, request);
    const [attacks, information] = await Promise.all(
      (['attack', 'info'] as const).map((severity) =>
        deps.protectIncidents.list(visitor.actor, subject, { severity, limit: listedMax }),
      ),
    );
    return reply.send({ incidents: attacks!.map(toWire), information: information!.map(toWire) });
  });
}

function toWire(incident: IncidentRow) {
  return {
    id: incident.id,
    class: incident.class,
    severity: incident.severity,
    direction: incident.direction,
    state: incident.state,
    started_at: incident.startedAt.toISOString(),
    detected_at: incident.detectedAt.toISOString(),
    last_observed_at: incident.lastObservedAt.toISOString(),
    recovered_at: incident.recoveredAt?.toISOString() ?? null,
    peak: {
      bps: incident.peakBps,
      bps_at: incident.peakBpsAt.toISOString(),
      pps: incident.peakPps,
      pps_at: incident.peakPpsAt.toISOString(),
    },
    address: incident.address,
    actions: actionsOf(incident),
  };
}

/** `/client/servers/{id}/protect/incidents`: a year of attacks, a page at a time. */
function incidentsPage(options: {
  visitor: Visitor;
  server: Server;
  severity: 'attack' | 'info';
  incidents: readonly IncidentRow[];
  url: string;
  isFirst: boolean;
  nextHref: string | undefined;
  nowMs: number;
}): Html {
  const { visitor, server, severity, incidents, nextHref, isFirst, nowMs } = options;
  const path = `/client/servers/${server.id}/protect/incidents`;
  const open = incidents.filter(({ state }) => state !== 'recovered').length;
  const header = pageHeader({
    title: `${server.name}: attacks`,
    state:
      severity === 'attack' && open > 0
        ? { tone: 'bad', text: `${formatCount(open)} not ended.` }
        : {
            tone: 'neutral',
            text: `Incidents are kept for ${keptText('attacks')} after their last observation.`,
          },
  });
  return serverFrame({ visitor, server, tab: 'protect', part: 'Attacks' }, header, [
    tabs('Severity', [
      { label: 'Attacks', href: path, current: severity === 'attack' },
      { label: 'Information', href: withQuery(path, { severity: 'info' }), current: severity === 'info' },
    ]),
    attacksTable(incidents, nowMs, {
      jsonHref: `${path}.json`,
      pages:
        nextHref === undefined && isFirst
          ? undefined
          : { nextHref, previousHref: isFirst ? undefined : withQuery(options.url, { after: undefined }) },
      empty:
        severity === 'attack'
          ? { title: 'No attacks', text: 'Attacks on this server, and from it, appear here within seconds.' }
          : {
              title: 'No information',
              text: 'Large downloads and scans that are no attack appear here. They alert no person.',
            },
    }),
  ]);
}

interface IncidentPageOptions {
  visitor: Visitor;
  server: Server;
  incident: IncidentRow;
  nowMs: number;
}

/** `/client/servers/{id}/protect/incidents/{uuid}`. */
function incidentPage(options: IncidentPageOptions): Html {
  const { visitor, server, incident, nowMs } = options;
  const title = `${titleOfClass(incident.class)} ${incident.direction === 'inbound' ? 'on' : 'from'} ${incident.address}`;
  const content = refreshing({ id: 'incident', url: incidentHref(server.id, incident.id), everySeconds: 5 }, [
    pageHeader({ title, state: stateOf(incident, nowMs) }),
    filterStatement(incident, nowMs),
    figures(incident, nowMs),
    section({ title: 'Times' }, timesOf(options)),
    section(
      { title: 'Vectors', description: 'Parts of the attack, the strongest first.' },
      vectorsTable(incident.vectors),
    ),
    section({ title: 'What we did' }, actionsTable(incident, nowMs)),
  ]);
  return serverFrame({ visitor, server, tab: 'protect', part: title }, '', content);
}

/** What is dropped now; nothing otherwise. */
function filterStatement(incident: IncidentRow, nowMs: number): Content {
  const working = actionsOf(incident).find(({ dropped_pps }) => dropped_pps !== null);
  if (!working) return false;
  return banner({
    tone: 'info',
    title: `Dropped at the hypervisor: ${formatCount(working.dropped_pps!)} packets/s since ${clockTime(Date.parse(working.at), nowMs)}`,
    text:
      incident.direction === 'inbound'
        ? 'Clients that conversed with the server before the attack pass.'
        : 'Your server attacks others. What it exchanges with addresses that it conversed with before passes.',
  });
}

function stateOf(incident: IncidentRow, nowMs: number): { tone: Tone; text: Content } {
  const { state, severity, isDrill, recoveredAt, lastObservedAt } = incident;
  if (state === 'recovered')
    return {
      tone: 'good',
      text: html`Ended at ${clockTime(recoveredAt!.getTime(), nowMs)}, after ${durationOf(incident, nowMs)}.${isDrill && ' This was a drill.'}`,
    };
  if (incident.state === 'stale')
    return {
      tone: 'warn',
      text: `No data from the sensor since ${clockTime(lastObservedAt.getTime(), nowMs)}. It may go on.`,
    };
  if (severity === 'info')
    return { tone: 'info', text: `Since ${clockTime(incident.startedAt.getTime(), nowMs)}. No attack.` };
  return { tone: isDrill ? 'info' : 'bad', text: `${headline(incident, nowMs)}.` };
}

function figures(incident: IncidentRow, nowMs: number): Html {
  const isNow = incident.state === 'active';
  const observed = `observed ${clockTime(incident.lastObservedAt.getTime(), nowMs)}`;
  return stats(
    ...(isNow
      ? [
          stat({
            label: 'Now',
            value: incident.currentPps === null ? undefined : packetsPerSecond(incident.currentPps),
            source: html`${incident.currentBps !== null && `${formatBitRate(incident.currentBps)}, `}${observed}`,
          }),
        ]
      : []),
    stat({
      label: 'Peak',
      value: packetsPerSecond(incident.peakPps),
      source: `at ${clockTime(incident.peakPpsAt.getTime(), nowMs)}`,
    }),
    stat({
      label: 'Peak bit rate',
      value: formatBitRate(incident.peakBps),
      source: `at ${clockTime(incident.peakBpsAt.getTime(), nowMs)}`,
    }),
    stat({
      label: 'In all',
      value: formatBytes(incident.totalBytes),
      source: `${formatCount(incident.totalPackets)} packets${coverageNotes[incident.coverage]}`,
    }),
  );
}

const coverageNotes = {
  complete: '',
  partial: ', not all was observed',
  unknown: ', coverage unknown',
} as const;

function timesOf({ server, incident, nowMs }: IncidentPageOptions): Html {
  const at = (value: Date) => html`${utcTime(value.getTime(), 'seconds')}`;
  const fromMs = incident.startedAt.getTime() - 15 * 60_000;
  const toMs = (incident.recoveredAt ?? incident.lastObservedAt).getTime() + 15 * 60_000;
  const minute = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  const traffic = withQuery(`/client/servers/${server.id}/traffic`, {
    range: 'custom',
    from: minute(fromMs),
    to: minute(Math.min(toMs + 60_000, Math.max(nowMs, fromMs + 120_000))),
    address: incident.address,
  });
  return definitionList([
    { term: 'Address', value: code(incident.address, true) },
    { term: 'Direction', value: incident.direction },
    { term: 'Began', value: at(incident.startedAt) },
    { term: 'Detected', value: at(incident.detectedAt) },
    { term: 'Last observed', value: at(incident.lastObservedAt) },
    { term: 'Ended', value: incident.recoveredAt === null ? 'not reported' : at(incident.recoveredAt) },
    { term: 'Traffic', value: link(traffic, 'Traffic around this time') },
    { term: 'ID', value: code(incident.id, true) },
  ]);
}

function vectorsTable(vectors: readonly IncidentVector[]): Html {
  return table<IncidentVector>({
    caption: 'Vectors',
    card: { line: ['packets', 'bytes', 'ports'] },
    columns: [
      cellColumn('class', 'Class', (each) => titleOfClass(each.class)),
      codeColumn(
        'ports',
        'Ports or protocols',
        ({ ports, details }) =>
          details?.protocols.map(describeProtocol).join(', ') || ports.join(', ') || 'many',
      ),
      figureColumn('packets', 'Packets', (each) => each.packets_share, formatPercent),
      figureColumn('bytes', 'Bytes', (each) => each.bytes_share, formatPercent),
    ],
    rows: vectors,
    empty: { title: 'No parts told apart', text: 'The class above covers all of it.' },
  });
}

interface Measure {
  text: string;
  atMs: number;
  endedMs: number | null;
}

const channelNames = { mail: 'mail', webhook: 'webhook' } as const;

/** What the monitor did, and when the customer was alerted; in the order of time. */
function measuresOf({ actions, alertedAt, alertedBy }: IncidentRow): Measure[] {
  const measures = actions.map(({ kind, at, ended_at }) => ({
    text: incidentActions[kind],
    atMs: Date.parse(at),
    endedMs: ended_at === null ? null : Date.parse(ended_at),
  }));
  const by = alertedBy.map((channel) => channelNames[channel]).join(' and ');
  const own = alertedAt && { text: `You were alerted by ${by}`, atMs: alertedAt.getTime(), endedMs: null };
  return [...measures, ...(own ? [own] : [])].sort((a, b) => a.atMs - b.atMs);
}

function actionsTable(incident: IncidentRow, nowMs: number): Html {
  return table<Measure>({
    caption: 'What we did',
    card: { line: ['at', 'ended'] },
    columns: [
      { key: 'what', header: 'Measure', kind: 'prose', cell: (each) => each.text },
      momentColumn('at', 'At', (each) => each.atMs, nowMs),
      cellColumn('ended', 'Ended', (each) => (each.endedMs === null ? '' : moment(each.endedMs, nowMs))),
    ],
    isStacked: true,
    rows: measuresOf(incident),
    empty: { title: 'Nothing yet', text: 'Alerts and mitigation appear here with their times.' },
  });
}
