/** `/incidents` and `/sites/{id}/incidents`: the requests for incidents, by state, severity, class and site. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { attackClasses } from '#contracts/attack-classes.ts';
import { incidentSeverities, incidentStates } from '#contracts/incidents.ts';
import { keptText } from '#contracts/retention.ts';
import { type Incident, nameOfClass, type SensorView } from '#monitor/incidents/index.ts';
import { nameSensors } from '#monitor/views/sensor-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type Content,
  formatCount,
  html,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import { dataTable, momentColumn, readList, textColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { incidentColumns } from '../parts/incident-text.ts';

const foreignShown = 20;
const uuidShape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function registerIncidents(app: App, deps: ConsoleDeps): void {
  app.get('/incidents', (_request, reply) => showIncidents(deps, reply, null));
  app.get('/sites/:siteId/incidents', { schema: { params: SiteParams } }, (request, reply) =>
    showIncidents(deps, reply, request.params.siteId),
  );
}

async function showIncidents(deps: ConsoleDeps, reply: FastifyReply, siteId: number | null) {
  const { request } = reply;
  const nowMs = Date.now();
  const { sites } = viewerOf(request);
  const site = siteId === null ? null : await siteOf(deps.sites, siteId);
  const isOfSeveral = site === null && sites.length > 1;
  const names = new Map(sites.map(({ id, name }) => [String(id), name]));
  const asked = (request.query as { site?: unknown }).site;
  const ofSite = site?.id ?? (typeof asked === 'string' && names.has(asked) ? Number(asked) : undefined);
  const [found, counts, foreign] = await Promise.all([
    readList(request, {
      ...{ id: 'incidents', caption: 'Incidents', isStacked: true },
      path: site ? `/sites/${site.id}/incidents` : '/incidents',
      card: { line: ['state', 'target', 'started'] },
      filters: [
        { name: 'state', label: 'State', options: choices(incidentStates) },
        { name: 'severity', label: 'Severity', options: choices(incidentSeverities) },
        { name: 'class', label: 'Class', options: choices(attackClasses, (name) => nameOfClass(name)) },
        ...(isOfSeveral
          ? [{ name: 'site', label: 'Site', options: choices([...names.keys()], (id) => names.get(id)!) }]
          : []),
      ],
      cursor: { write: ({ id }: Incident) => id, read: (text) => uuidShape.exec(text)?.[0] },
      read: ({ state, severity, class: name }, { limit, after }) =>
        deps.incidents.list({ state, severity, class: name, siteId: ofSite, after }, limit),
      fields: [{ field: 'id', value: (row) => row.id }],
      columns: incidentColumns(nowMs, isOfSeveral ? (row) => names.get(String(row.siteId)) ?? '' : null),
      empty: {
        title: 'No incidents yet',
        text: `Attacks that sensors detect appear here within seconds, and stay for ${keptText('attacks')}. Thresholds are set under Protection.`,
      },
      noMatch: { title: 'No incident matches', text: 'Choose other filters.' },
    }),
    deps.incidents.countOpen(),
    site ? deps.incidents.listForeign(site.id, foreignShown) : [],
  ]);
  const hosts = await nameSensors(deps.db(), [...new Set(foreign.map(({ sensorId }) => sensorId))]);
  const open = { attacks: 0, stale: 0 };
  for (const one of counts) {
    if (ofSite !== undefined && one.siteId !== ofSite) continue;
    open.attacks += one.attacks;
    open.stale += one.stale;
  }
  const reports = foreign.map((row) => ({
    ...row,
    hostName: hosts.get(row.sensorId)?.hostName ?? 'removed',
  }));
  const content = [
    pageHeader({ title: 'Incidents', state: stateOf(open) }),
    refreshing({ id: 'incidents', url: request.url, everySeconds: 10 }, found.table),
    reports.length > 0 &&
      section(
        {
          title: 'Foreign reports',
          description:
            'Sensors reported these attacks on servers of other nodes. They make no incident; check the node of each sensor.',
        },
        foreignTable(request, reports, nowMs),
      ),
  ];
  const options = { title: 'Incidents', ...(site && { site: { site, page: 'incidents' as const } }) };
  return sendConsolePage(reply, options, content);
}

const choices = (values: readonly string[], label = (value: string) => value) =>
  values.map((value) => ({ value, label: label(value) }));

function stateOf(open: { attacks: number; stale: number }): { tone: Tone; text: string } {
  const { attacks, stale } = open;
  const count = (value: number, what: string) => `${formatCount(value)} ${what}${value === 1 ? '' : 's'}`;
  if (attacks > 0)
    return {
      tone: 'bad',
      text: `${count(attacks, 'attack')} in progress${stale > 0 ? `, ${formatCount(stale)} without news` : ''}.`,
    };
  if (stale > 0) return { tone: 'warn', text: `${count(stale, 'attack')} without news for 90 s.` };
  return { tone: 'good', text: 'No attack in progress.' };
}

/** What a sensor said of another node's server. */
type ForeignRow = SensorView & { hostName: string };

function foreignTable(request: FastifyRequest, rows: readonly ForeignRow[], nowMs: number): Content {
  return dataTable<ForeignRow>(request, {
    id: 'foreign',
    caption: 'Foreign reports',
    card: { line: ['class', 'observed'] },
    rows,
    isStacked: true,
    columns: [
      {
        key: 'sensor',
        header: 'Sensor',
        cell: (row) => html`${row.hostName}, ${row.said.capture}`,
        value: (row) => row.hostName,
      },
      textColumn('target', 'Target', (row) => row.said.target.value, { kind: 'code' }),
      {
        key: 'class',
        header: 'Class',
        cell: (row) => nameOfClass(row.said.class, row.said.severity),
        value: (row) => row.said.class,
      },
      momentColumn('observed', 'Last observed', (row) => row.said.lastObservedAtMs, nowMs, {
        field: 'last_observed_at',
      }),
    ],
    empty: { title: 'None', text: 'No sensor reported an attack on another node’s server.' },
  });
}
