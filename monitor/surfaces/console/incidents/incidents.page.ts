/** The page of incidents: of all sites, or of one. */

import type { FastifyRequest } from 'fastify';
import { attackClasses } from '#contracts/attack-classes.ts';
import { incidentSeverities, incidentStates } from '#contracts/incidents.ts';
import { keptText } from '#contracts/retention.ts';
import { type Incident, nameOfClass, type SensorView } from '#monitor/incidents/index.ts';
import type { Site } from '#monitor/sites/index.ts';
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
import { dataTable, wantedFile } from '#service-kit/web/index.ts';
import { incidentColumns } from '../parts/incident-table.ts';

export interface IncidentsQuery {
  state?: string | undefined;
  severity?: string | undefined;
  class?: string | undefined;
  site?: string | undefined;
  after?: string | undefined;
}

export interface IncidentsPage {
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

export function incidentsPage(request: FastifyRequest, page: IncidentsPage): Content {
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
