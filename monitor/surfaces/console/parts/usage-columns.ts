/** Columns of tables with traffic by name: a site's applications and an address's. */

import { describeService } from '#monitor/applications/index.ts';
import { badge, formatBytes } from '#service-kit/pages/index.ts';
import type { DataColumn } from '#service-kit/web/index.ts';
import { ageColumn, figureColumn, textColumn } from '#service-kit/web/index.ts';

/** Labels for the evidence of an application's name. */
const evidenceWords: Readonly<Record<string, string>> = {
  ip_protocol: 'IP protocol',
  tls_sni: 'TLS name',
  tls_outer: 'TLS public name (ECH)',
  http_host: 'HTTP host',
  http_connect: 'HTTP CONNECT',
  dns: 'DNS answer',
};

/** Without evidence from the traffic, the port gives the name, or there is none. */
function evidenceText(row: { evidence: string; isAttributed: boolean }): string {
  return evidenceWords[row.evidence] ?? (row.isAttributed ? 'port' : 'none');
}

interface Used {
  protocol: number;
  serverPort: number | null;
  evidence: string;
  isAttributed: boolean;
  /** Null: only another capture than the counted one has the name, without bytes. */
  inboundBytes: number | null;
  outboundBytes: number | null;
  lastSentMs: number | null;
}

export const serviceColumn: DataColumn<Used> = textColumn(
  'service',
  'Service',
  (row) => describeService(row.protocol, row.serverPort),
  { kind: 'code' },
);

export const evidenceColumn: DataColumn<Used> = {
  key: 'evidence',
  header: 'Evidence',
  cell: evidenceText,
  value: (row) => row.evidence,
};

/** Bytes in and out; `nameOnly` replaces the bytes of a name without bytes. */
export function exchangedColumns<Row extends Used>(
  nameOnly: (row: Row) => string,
): readonly DataColumn<Row>[] {
  const cell = (row: Row, bytes: number | null) =>
    bytes === null ? badge('neutral', nameOnly(row)) : formatBytes(bytes);
  return [
    {
      key: 'in',
      header: 'In',
      kind: 'figure',
      cell: (row) => cell(row, row.inboundBytes),
      field: 'in_bytes',
      value: (row) => row.inboundBytes,
    },
    {
      key: 'out',
      header: 'Out',
      kind: 'figure',
      cell: (row) => cell(row, row.outboundBytes),
      field: 'out_bytes',
      value: (row) => row.outboundBytes,
    },
  ];
}

export const lastSentColumn = (nowMs: number): DataColumn<Used> =>
  ageColumn('sent', 'Last sent', (row) => row.lastSentMs, nowMs, { field: 'last_sent' });

interface Counted {
  rxBytes: number;
  txBytes: number;
}

/** Columns for bytes in and out of rows with an address's counters. */
export const bytesColumns: readonly DataColumn<Counted>[] = [
  figureColumn('in', 'In', (row) => row.rxBytes, formatBytes, { field: 'in_bytes' }),
  figureColumn('out', 'Out', (row) => row.txBytes, formatBytes, { field: 'out_bytes' }),
];
