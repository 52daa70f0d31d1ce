/** Tables of incidents. */
import type { FastifyRequest } from 'fastify';
import type { Incident } from '#monitor/incidents/index.ts';
import { type Content, formatAge, formatBitRate, isoTime, link } from '#service-kit/pages/index.ts';
import {
  countColumn,
  type DataColumn,
  dataTable,
  figureColumn,
  momentColumn,
} from '#service-kit/web/index.ts';
import { classText, directionText, incidentHref, stateBadge, targetLink } from './incident-text.ts';

/** `siteName`: null in a table of one site. */
export function incidentColumns(
  nowMs: number,
  siteName: ((row: Incident) => string) | null,
): DataColumn<Incident>[] {
  return [
    {
      key: 'class',
      header: 'Incident',
      cell: (row) => link(incidentHref(row), classText(row)),
      value: (row) => row.class,
    },
    { key: 'state', header: 'State', cell: stateBadge, value: (row) => row.state },
    { key: 'target', header: 'Target', kind: 'code', cell: targetLink, value: (row) => row.target.value },
    ...(siteName
      ? [{ key: 'site', header: 'Site', cell: siteName, value: siteName } satisfies DataColumn<Incident>]
      : []),
    { key: 'direction', header: 'Direction', cell: directionText, value: (row) => row.direction },
    momentColumn('started', 'Started', (row) => row.startedAtMs, nowMs, { field: 'started_at' }),
    countColumn('packets', 'Peak', (row) => row.measured.peak.pps, { unit: 'packets/s', field: 'peak_pps' }),
    figureColumn('bits', 'Peak rate', (row) => row.measured.peak.bps, formatBitRate, { field: 'peak_bps' }),
    {
      key: 'observed',
      header: 'Last observed',
      kind: 'figure',
      cell: (row) => formatAge(row.lastObservedAtMs, nowMs),
      field: 'last_observed_at',
      value: (row) => isoTime(row.lastObservedAtMs),
    },
  ];
}

/** A short list on the page of something else. */
export function incidentTable(request: FastifyRequest, rows: readonly Incident[], nowMs: number): Content {
  return dataTable<Incident>(request, {
    id: 'incidents',
    caption: 'Incidents',
    card: { line: ['state', 'target', 'started'] },
    rows,
    isStacked: true,
    columns: incidentColumns(nowMs, null),
    fields: [{ field: 'id', value: (row) => row.id }],
    empty: { title: 'No incidents', text: 'Attacks appear here as sensors detect them.' },
  });
}
