/** The table of one server's services: the evidence of scans, and what could be assessed. */
import type { FastifyRequest } from 'fastify';
import { unableRows } from '#contracts/findings.ts';
import type { ServiceWithFindings } from '#monitor/vulnerabilities/index.ts';
import {
  age,
  badge,
  type Content,
  code,
  formatCount,
  html,
  isoTime,
  link,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, pagedRows, textColumn } from '#service-kit/web/index.ts';
import { addressColumn, nvdLink, portText, rowsShown, type ServerTables } from './finding-tables.ts';
import { byTracker, evidenceAge, notConfirmed, ratingBadge, softwareText } from './finding-text.ts';

/** Findings of a package's original, which are read one step away. */
const originalsShown = 20;

const keyOf = (service: ServiceWithFindings) => `${service.address} ${portText(service)}`;

export function serviceTable(request: FastifyRequest, tables: ServerTables): Content {
  const { services, open, nowMs } = tables;
  return dataTable<ServiceWithFindings>(request, {
    ...pagedRows(request, 'services', services, rowsShown),
    caption: 'Services',
    card: { line: ['software', 'assessment'] },
    isStacked: true,
    rowTone: ({ reason }) => (reason === null ? undefined : 'neutral'),
    rowDetail: (service) =>
      service.reason !== null && keyOf(service) === open ? originalsOf(request, service) : '',
    columns: [
      textColumn('port', 'Port', portText, { show: code }),
      addressColumn(tables.siteId, (row) => row.address),
      { key: 'software', header: 'Software', kind: 'prose', cell: softwareText, value: softwareText },
      {
        key: 'assessment',
        header: 'Assessment',
        kind: 'prose',
        cell: (row) => assessmentCell(request, row),
        value: ({ reason }) => (reason === null ? 'assessed' : 'unable'),
      },
      countColumn('active', 'Active', (row) => countOf(row, false)),
      countColumn('ignored', 'Ignored', (row) => countOf(row, true)),
      {
        key: 'seen',
        header: 'Seen',
        kind: 'figure',
        cell: (row) => evidenceAge(row, nowMs),
        field: 'observed_at',
        value: ({ observedAtMs }) => isoTime(observedAtMs),
      },
      {
        key: 'database',
        header: 'Records',
        kind: 'figure',
        cell: ({ databaseAtMs }) => (databaseAtMs === null ? 'none' : age(databaseAtMs, nowMs)),
        field: 'database_at',
        value: ({ databaseAtMs }) => isoTime(databaseAtMs),
      },
      textColumn('scan', 'Scan', ({ scanId }) => scanId, {
        field: 'scan_id',
        show: (scanId) => html`<span title="${scanId}">${code(scanId.slice(0, 8))}</span>`,
      }),
    ],
    fields: [
      { field: 'reason', value: ({ reason }) => reason },
      { field: 'fingerprint', value: ({ fingerprint }) => fingerprint },
      { field: 'first_observed_at', value: ({ firstObservedAtMs }) => isoTime(firstObservedAtMs) },
      { field: 'common_observed_at', value: ({ commonAtMs }) => isoTime(commonAtMs) },
      { field: 'full_observed_at', value: ({ fullAtMs }) => isoTime(fullAtMs) },
      { field: 'findings_left_out', value: ({ leftOut }) => leftOut },
    ],
    empty: {
      title: 'No open ports',
      text: 'Scans of the last seven days found none, or their evidence has expired.',
    },
  });
}

const countOf = ({ reason, findings }: ServiceWithFindings, isIgnored: boolean) =>
  reason === null ? findings.filter(({ ignore }) => (ignore !== null) === isIgnored).length : 0;

function countColumn(
  key: string,
  header: string,
  read: (row: ServiceWithFindings) => number,
): DataColumn<ServiceWithFindings> {
  return {
    ...{ key, header, kind: 'figure' },
    cell: (row) => (row.reason === null ? formatCount(read(row)) : '–'),
    value: (row) => (row.reason === null ? read(row) : null),
  };
}

function assessmentCell(request: FastifyRequest, service: ServiceWithFindings): Content {
  if (service.reason === null)
    return html`${badge('good', 'assessed')} <span class="hint">${service.isJudged ? byTracker : notConfirmed}</span>`;
  const count = service.findings.length;
  const href = `${withQuery(request.url, { open: keyOf(service) })}#services`;
  return html`${badge('neutral', 'unable')} ${unableRows[service.reason].words}${
    count > 0 && html`. ${link(href, `Its original has ${formatCount(count)}`)}`
  }`;
}

/** What the original of a package has: no findings of the service. */
function originalsOf(request: FastifyRequest, { findings, version }: ServiceWithFindings): Content {
  const shown = findings.slice(0, originalsShown);
  const more = findings.length - shown.length;
  return html`<p><strong>The original of version ${version ?? 'unknown'}</strong>: not findings of this service, because the distribution may have mended them. ${link(`${withQuery(request.url, { open: undefined })}#services`, 'Close')}</p><ul>${shown.map(
    ({ finding }) => html`<li>${nvdLink(finding.cve)} ${ratingBadge(finding)} ${finding.summary}</li>`,
  )}</ul>${more > 0 && html`<p class="hint">and ${formatCount(more)} more</p>`}`;
}
