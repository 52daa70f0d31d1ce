/** Potential vulnerabilities by service: what there is to upgrade. */
import type { FindingRow } from '#operations/views/index.ts';
import {
  badge,
  type Column,
  type Content,
  code,
  formatCount,
  type Html,
  html,
  severityBadge,
  type TableOptions,
  table,
} from '#service-kit/pages/index.ts';

/** Findings that a table of services is made of. */
export const groupedMax = 500;

/** A service with its findings, at all addresses that run the same version of it. */
interface ServiceGroup<Row> {
  /** Worst first; one of each CVE and address. */
  rows: [Row, ...Row[]];
  addresses: string[];
  cves: number;
}

interface ServicesTable<Row> extends Pick<TableOptions<ServiceGroup<Row>>, 'isFirst' | 'jsonHref'> {
  /** The worst active ones, at most `groupedMax`. */
  findings: readonly Row[];
  /** All active ones. */
  active: number;
  /** What tells services with the same software and port apart. */
  placeOf?: (row: Row) => unknown;
  nameOf: (worst: Row) => Content;
  /** Behind the name of the service. */
  columns?: readonly Column<Row>[];
}

/** One row a service, the worst first. */
export function servicesTable<Row extends FindingRow>(options: ServicesTable<Row>): Html {
  const { findings, active, placeOf, nameOf, columns = [], ...rest } = options;
  const groups = Map.groupBy(findings, (row) =>
    JSON.stringify([row.transport, row.port, row.product, row.version, placeOf?.(row)]),
  );
  return table<ServiceGroup<Row>>({
    ...rest,
    caption: 'Services with potential vulnerabilities',
    card: { line: ['server', 'cves', 'worst', 'fixed'] },
    columns: [
      {
        key: 'service',
        header: 'Service',
        cell: ({ rows: [worst] }) => [
          nameOf(worst),
          html` <span class="hint">${worst.transport}/${worst.port}</span>`,
        ],
      },
      ...columns.map(({ cell, ...column }) => ({
        ...{ key: column.key, header: column.header },
        cell: ({ rows: [worst] }: ServiceGroup<Row>) => cell(worst),
      })),
      { key: 'cves', header: 'CVEs', kind: 'figure', cell: ({ cves }) => formatCount(cves) },
      {
        key: 'worst',
        header: 'Worst',
        cell: ({ rows }) => [
          severityBadge(rows[0].severity, rows[0].score),
          ' ',
          rows.some(({ isKnownExploited }) => isKnownExploited) && badge('bad', 'known exploited'),
        ],
      },
      { key: 'fixed', header: 'Worst fixed in', cell: ({ rows: [worst] }) => worst.package?.fixed_in ?? '' },
      {
        key: 'addresses',
        header: 'Addresses',
        kind: 'code',
        cell: ({ addresses }) => addresses.map((address) => html`${code(address)} `),
      },
    ],
    rows: [...groups.values()].map((rows) => ({
      rows: rows as ServiceGroup<Row>['rows'],
      addresses: [...new Set(rows.map(({ address }) => address))],
      cves: new Set(rows.map(({ cveId }) => cveId)).size,
    })),
    pages:
      active > findings.length
        ? { label: `Of the ${formatCount(findings.length)} worst findings` }
        : undefined,
    empty: { title: 'No findings', text: 'Services with potential vulnerabilities appear here.' },
  });
}
