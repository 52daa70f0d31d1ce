/** `/incidents` and `/sites/{id}/incidents`: the requests for incidents, by state, severity, class and site. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { attackClasses } from '#contracts/attack-classes.ts';
import { incidentSeverities, incidentStates } from '#contracts/incidents.ts';
import { keptText } from '#contracts/retention.ts';
import { type Incident, nameOfClass, type SensorView } from '#monitor/incidents/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { nameSensors } from '#monitor/views/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type Content,
  field,
  form,
  formatCount,
  html,
  isoTime,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { dataTable, rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { incidentColumns } from '../parts/incident-table.ts';

const rowsShown = 100;
const foreignShown = 20;
const uuidShape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const Word = Type.Optional(Type.String({ maxLength: 40 }));
const Query = Type.Object({ state: Word, severity: Word, class: Word, site: Word, after: Word });
type Query = Static<typeof Query>;

export function registerIncidents(app: App, deps: ConsoleDeps): void {
  app.get('/incidents', { schema: { querystring: Query } }, (request, reply) =>
    showIncidents(deps, request, reply, request.query, null),
  );
  app.get(
    '/sites/:siteId/incidents',
    { schema: { params: SiteParams, querystring: Query } },
    (request, reply) => showIncidents(deps, request, reply, request.query, request.params.siteId),
  );
}

/** Words that no filter knows do not filter. */
const oneOf = (values: readonly string[], given: string | undefined) =>
  given !== undefined && values.includes(given) ? given : undefined;

async function showIncidents(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  given: Query,
  siteId: number | null,
) {
  const nowMs = Date.now();
  const { sites } = viewerOf(request);
  const site = siteId === null ? null : await siteOf(deps.sites, siteId);
  const query = {
    state: oneOf(incidentStates, given.state),
    severity: oneOf(incidentSeverities, given.severity),
    class: oneOf(attackClasses, given.class),
    site: oneOf(
      sites.map(({ id }) => String(id)),
      given.site,
    ),
    after: given.after && uuidShape.test(given.after) ? given.after : undefined,
  };
  const ofSite = site?.id ?? (query.site ? Number(query.site) : undefined);
  const limit = rowsLimit(request, rowsShown);
  const [found, counts, foreign] = await Promise.all([
    deps.incidents.list({ ...query, siteId: ofSite }, limit + 1),
    deps.incidents.countOpen(),
    site ? deps.incidents.listForeign(site.id, foreignShown) : [],
  ]);
  const names = await nameSensors(deps.db(), [...new Set(foreign.map(({ sensorId }) => sensorId))]);
  const open = { attacks: 0, stale: 0 };
  for (const one of counts) {
    if (ofSite !== undefined && one.siteId !== ofSite) continue;
    open.attacks += one.attacks;
    open.stale += one.stale;
  }
  const content = incidentsPage(request, {
    ...{ siteId: site?.id ?? null, sites, query, open, nowMs },
    incidents: found.slice(0, limit),
    hasMore: found.length > limit,
    foreign: foreign.map((row) => ({ ...row, hostName: names.get(row.sensorId)?.hostName ?? 'removed' })),
  });
  return sendConsolePage(
    request,
    reply,
    site ? { title: 'Incidents', site: { site, page: 'incidents' } } : { title: 'Incidents' },
    content,
  );
}

interface IncidentsQuery {
  state?: string | undefined;
  severity?: string | undefined;
  class?: string | undefined;
  site?: string | undefined;
  after?: string | undefined;
}

interface IncidentsPage {
  /** Null: of all sites. */
  siteId: number | null;
  sites: readonly Site[];
  query: IncidentsQuery;
  incidents: readonly Incident[];
  hasMore: boolean;
  open: { attacks: number; stale: number };
  /** What sensors said of other nodes' servers. */
  foreign: readonly (SensorView & { hostName: string })[];
  nowMs: number;
}

/** The page of incidents: of all sites, or of one. */
function incidentsPage(request: FastifyRequest, page: IncidentsPage): Content {
  const { incidents, foreign, nowMs } = page;
  return [
    pageHeader({ title: 'Incidents', state: stateOf(page) }),
    refreshing(
      { id: 'incidents', url: request.url, everySeconds: 10 },
      incidentTable(request, page, incidents),
    ),
    foreign.length > 0 &&
      section(
        {
          title: 'Foreign reports',
          description:
            'Sensors reported these attacks on servers of other nodes. They make no incident; check the node of each sensor.',
        },
        foreignTable(request, foreign, nowMs),
      ),
  ];
}

function stateOf({ open }: IncidentsPage): { tone: Tone; text: string } {
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

function incidentTable(
  request: FastifyRequest,
  page: IncidentsPage,
  incidents: readonly Incident[],
): Content {
  const { query, hasMore, nowMs, siteId, sites } = page;
  const names = new Map(sites.map((site) => [site.id, site.name]));
  const last = incidents.at(-1);
  const isNarrowed = Boolean(query.state || query.severity || query.class || query.site);
  const nextHref =
    hasMore && last && !wantedFile(request) ? withQuery(request.url, { after: last.id }) : undefined;
  return dataTable<Incident>(request, {
    id: 'incidents',
    caption: 'Incidents',
    card: { line: ['state', 'target', 'started'] },
    rows: incidents,
    isStacked: true,
    isComplete: !hasMore,
    filter: filterForm(page, isNarrowed),
    fields: [{ field: 'id', value: (row) => row.id }],
    columns: incidentColumns(
      nowMs,
      siteId === null && sites.length > 1 ? (row) => names.get(row.siteId) ?? '' : null,
    ),
    pages:
      nextHref || query.after
        ? {
            label: query.after ? 'Older incidents' : `The first ${incidents.length}`,
            previousHref: query.after ? withQuery(request.url, { after: undefined }) : undefined,
            nextHref,
          }
        : undefined,
    empty: isNarrowed
      ? { title: 'No incident matches', text: 'Choose other filters.' }
      : {
          title: 'No incidents yet',
          text: `Attacks that sensors detect appear here within seconds, and stay for ${keptText('attacks')}. Thresholds are set under Protection.`,
        },
  });
}

function filterForm({ siteId, sites, query }: IncidentsPage, isNarrowed: boolean): Content {
  const action = siteId === null ? '/incidents' : `/sites/${siteId}/incidents`;
  const any = { value: '', label: 'any' };
  const options = (values: readonly string[], label = (value: string) => value) => [
    any,
    ...values.map((value) => ({ value, label: label(value) })),
  ];
  const chosen = (name: 'state' | 'severity' | 'class' | 'site', label: string, given: (typeof any)[]) =>
    field({ kind: 'select', name, label, value: query[name] ?? '', options: given });
  return form(
    {
      action,
      method: 'get',
      submit: 'Filter',
      submitKind: 'button',
      layout: 'inline',
      cancel: isNarrowed && link(action, 'All incidents'),
    },
    [
      chosen('state', 'State', options(incidentStates)),
      chosen('severity', 'Severity', options(incidentSeverities)),
      chosen(
        'class',
        'Class',
        options(attackClasses, (name) => nameOfClass(name)),
      ),
      siteId === null &&
        sites.length > 1 &&
        chosen('site', 'Site', [any, ...sites.map(({ id, name }) => ({ value: String(id), label: name }))]),
    ],
  );
}

function foreignTable(request: FastifyRequest, rows: IncidentsPage['foreign'], nowMs: number): Content {
  return dataTable<IncidentsPage['foreign'][number]>(request, {
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
      {
        key: 'target',
        header: 'Target',
        kind: 'code',
        cell: (row) => row.said.target.value,
        value: (row) => row.said.target.value,
      },
      {
        key: 'class',
        header: 'Class',
        cell: (row) => nameOfClass(row.said.class, row.said.severity),
        value: (row) => row.said.class,
      },
      {
        key: 'observed',
        header: 'Last observed',
        cell: (row) => moment(row.said.lastObservedAtMs, nowMs),
        field: 'last_observed_at',
        value: (row) => isoTime(row.said.lastObservedAtMs),
      },
    ],
    empty: { title: 'None', text: 'No sensor reported an attack on another node’s server.' },
  });
}
