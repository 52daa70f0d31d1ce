/** Tables of incidents. */
import type { FastifyRequest } from 'fastify';
import type { Incident } from '#monitor/incidents/index.ts';
import {
  type Content,
  formatAge,
  formatBitRate,
  formatCount,
  isoTime,
  link,
  moment,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable } from '#service-kit/web/index.ts';
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
    {
      key: 'started',
      header: 'Started',
      cell: (row) => moment(row.startedAtMs, nowMs),
      field: 'started_at',
      value: (row) => isoTime(row.startedAtMs),
    },
    {
      key: 'packets',
      header: 'Peak',
      unit: 'packets/s',
      kind: 'figure',
      cell: (row) => formatCount(row.measured.peak.pps),
      field: 'peak_pps',
      value: (row) => row.measured.peak.pps,
    },
    {
      key: 'bits',
      header: 'Peak rate',
      kind: 'figure',
      cell: (row) => formatBitRate(row.measured.peak.bps),
      field: 'peak_bps',
      value: (row) => row.measured.peak.bps,
    },
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
