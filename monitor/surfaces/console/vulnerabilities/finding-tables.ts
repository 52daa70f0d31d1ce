/** Tables of one server's potential vulnerabilities: findings and ignores. */
import type { FastifyRequest } from 'fastify';
import type { ApartFinding, Finding, Ignore, ServiceWithFindings } from '#monitor/vulnerabilities/index.ts';
import {
  actionButton,
  age,
  type Content,
  code,
  formatTime,
  html,
  isoTime,
  link,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, linkColumn, pagedRows, textColumn } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';
import { addressHref } from '../parts/address-link.ts';
import {
  apartText,
  cveHref,
  ignoreHref,
  ratingBadge,
  remarks,
  serverHref,
  softwareText,
} from './finding-text.ts';

/** Of each table. */
export const rowsShown = 50;

export interface ServerTables {
  siteId: number;
  services: readonly ServiceWithFindings[];
  /** The service whose original's findings are shown. */
  open: string | undefined;
  viewer: Viewer;
  nowMs: number;
}

/** A finding with the service that it is of. */
export interface FindingLine {
  service: ServiceWithFindings;
  finding: Finding;
  ignore: Ignore | null;
}

export const portText = ({ transport, port }: { transport: string; port: number }) => `${transport}/${port}`;

/** Findings of services that could be assessed, known exploited ones and the most severe first. */
export function findingLines(services: readonly ServiceWithFindings[]): FindingLine[] {
  const scoreOf = ({ finding }: FindingLine) => finding.severity?.score ?? -1;
  return services
    .flatMap((service) =>
      service.reason === null ? service.findings.map((found) => ({ service, ...found })) : [],
    )
    .sort(
      (a, b) =>
        Number(b.finding.isKnownExploited) - Number(a.finding.isKnownExploited) || scoreOf(b) - scoreOf(a),
    );
}

export function addressColumn<Row>(siteId: number, read: (row: Row) => string): DataColumn<Row> {
  return linkColumn('address', 'Address', (row) => [
    read(row),
    addressHref(siteId, { address: read(row), segment: '' }),
  ]);
}

/** The record in the database itself. */
export const nvdLink = (cve: string): Content => link(`https://nvd.nist.gov/vuln/detail/${cve}`, cve);

/** How severe a finding is, and the service that it is of. */
const serviceColumns = (siteId: number): DataColumn<Pick<FindingLine, 'finding' | 'service'>>[] => [
  {
    key: 'severity',
    header: 'Severity',
    cell: ({ finding }) => ratingBadge(finding),
    value: ({ finding }) => finding.severity?.rating ?? null,
  },
  {
    key: 'service',
    header: 'Service',
    cell: ({ service }) => html`${code(portText(service))} ${softwareText(service)}`,
    value: ({ service }) => `${portText(service)} ${softwareText(service)}`,
  },
  addressColumn(siteId, ({ service }) => service.address),
];

const findingColumns = ({ siteId }: ServerTables): DataColumn<FindingLine>[] => [
  linkColumn('cve', 'CVE', ({ finding }) => [finding.cve, cveHref(siteId, finding.cve)]),
  ...serviceColumns(siteId),
];

const findingFields = [
  { field: 'score', value: ({ finding }: FindingLine) => finding.severity?.score ?? null },
  { field: 'incomplete', value: ({ finding }: FindingLine) => finding.incomplete.join(' ') },
  { field: 'known_exploited', value: ({ finding }: FindingLine) => finding.isKnownExploited },
  { field: 'disputed', value: ({ finding }: FindingLine) => finding.isDisputed },
  { field: 'published_at', value: ({ finding }: FindingLine) => finding.publishedAt },
  { field: 'modified_at', value: ({ finding }: FindingLine) => finding.modifiedAt },
  { field: 'scan_id', value: ({ service }: FindingLine) => service.scanId },
  { field: 'observed_at', value: ({ service }: FindingLine) => isoTime(service.observedAtMs) },
];

export function findingTable(request: FastifyRequest, tables: ServerTables, rows: readonly FindingLine[]) {
  const { siteId, viewer } = tables;
  return dataTable<FindingLine>(request, {
    ...pagedRows(request, 'findings', rows, rowsShown),
    caption: 'Active potential vulnerabilities',
    card: { line: ['severity', 'service'] },
    isStacked: true,
    columns: [
      ...findingColumns(tables),
      {
        key: 'summary',
        header: 'Summary',
        kind: 'prose',
        cell: ({ finding }) => html`${remarks(finding)} ${finding.summary}`,
        value: ({ finding }) => finding.summary,
      },
      ...(viewer.canChange ? [ignoreColumn(siteId)] : []),
    ],
    fields: findingFields,
    empty: {
      title: 'No active potential vulnerability',
      text: 'Records of the database that fit the version of a service appear here. Services that can not be assessed have none.',
    },
  });
}

/** A finding that is shown apart, with the service that it is of. */
export interface ApartLine extends ApartFinding {
  service: ServiceWithFindings;
}

export const apartLines = (services: readonly ServiceWithFindings[]): ApartLine[] =>
  services.flatMap((service) => service.apart.map((one) => ({ ...one, service })));

export function apartTable(request: FastifyRequest, { siteId }: ServerTables, rows: readonly ApartLine[]) {
  return dataTable<ApartLine>(request, {
    ...pagedRows(request, 'apart', rows, rowsShown),
    caption: 'Shown apart',
    card: { line: ['severity', 'service'] },
    isStacked: true,
    columns: [
      textColumn('cve', 'CVE', ({ finding }) => finding.cve, { show: nvdLink }),
      ...serviceColumns(siteId),
      { key: 'why', header: 'Why', kind: 'prose', cell: apartText, value: ({ why }) => why },
      textColumn('summary', 'Summary', ({ finding }) => finding.summary, { kind: 'prose' }),
    ],
    empty: { title: 'None', text: 'Records that say nothing certain of a version appear here.' },
  });
}

const ignoreColumn = (siteId: number): DataColumn<FindingLine> => ({
  key: 'actions',
  header: '',
  kind: 'actions',
  cell: ({ service, finding }) =>
    link(ignoreHref(siteId, { ...service, cve: finding.cve }), 'Ignore', {
      kind: 'button',
      label: `Ignore ${finding.cve} at ${service.address} ${portText(service)}`,
    }),
});

export function ignoredTable(request: FastifyRequest, tables: ServerTables, rows: readonly FindingLine[]) {
  const { siteId, viewer, nowMs } = tables;
  const ends: DataColumn<FindingLine> = {
    key: 'actions',
    header: '',
    kind: 'actions',
    cell: ({ ignore }) =>
      actionButton({
        action: `${serverHref(siteId, ignore!)}/ignores/${ignore!.id}/end`,
        csrfToken: viewer.csrfToken,
        label: 'End ignore',
      }),
  };
  return dataTable<FindingLine>(request, {
    ...pagedRows(request, 'ignored', rows, rowsShown),
    caption: 'Ignored',
    card: { line: ['severity', 'service'] },
    isStacked: true,
    columns: [
      ...findingColumns(tables),
      ...ignoreColumns<FindingLine>(({ ignore }) => ignore!, nowMs),
      ...(viewer.canChange ? [ends] : []),
    ],
    fields: findingFields,
    empty: { title: 'None ignored', text: 'Findings that an operator ignores appear here with the reason.' },
  });
}

function ignoreColumns<Row>(read: (row: Row) => Ignore, nowMs: number): DataColumn<Row>[] {
  return [
    textColumn('reason', 'Reason', (row) => read(row).reason, { kind: 'prose' }),
    textColumn('by', 'By', (row) => read(row).createdBy, { kind: 'prose' }),
    {
      key: 'since',
      header: 'Since',
      cell: (row) => age(read(row).createdAtMs, nowMs),
      field: 'ignored_at',
      value: (row) => isoTime(read(row).createdAtMs),
    },
    {
      key: 'until',
      header: 'Until',
      cell: (row) => {
        const { untilMs } = read(row);
        return untilMs === null ? 'ended by hand' : formatTime(untilMs);
      },
      field: 'until',
      value: (row) => isoTime(read(row).untilMs),
    },
  ];
}

const endTexts: Readonly<Record<string, string>> = {
  expired: 'it reached its end',
  reassigned: 'the address was assigned anew',
};

/** Ignores that are not in force any more, or whose software is gone. */
export function pastIgnoreTable(request: FastifyRequest, rows: readonly Ignore[], nowMs: number): Content {
  return dataTable<Ignore>(request, {
    ...pagedRows(request, 'past-ignores', rows, rowsShown),
    caption: 'Ended ignores',
    card: { line: ['place', 'ended'] },
    isStacked: true,
    columns: [
      { key: 'cve', header: 'CVE', cell: ({ cve }) => nvdLink(cve), value: ({ cve }) => cve },
      {
        key: 'place',
        header: 'Port',
        cell: (row) => html`${code(portText(row))} of ${row.address}`,
        value: (row) => `${row.address} ${portText(row)}`,
      },
      ...ignoreColumns<Ignore>((row) => row, nowMs),
      {
        key: 'ended',
        header: 'Ended',
        kind: 'prose',
        cell: (row) => endText(row, nowMs),
        field: 'ended_by',
        value: ({ endedBy }) => endedBy,
      },
    ],
    empty: { title: 'None', text: 'Ignores that ended appear here.' },
  });
}

function endText({ endedAtMs, endedBy, isOver }: Ignore, nowMs: number): Content {
  if (endedAtMs === null) return isOver ? 'it reached its end' : 'the software is not there any more';
  return html`${age(endedAtMs, nowMs)}, ${endTexts[endedBy ?? ''] ?? `by ${endedBy}`}`;
}
