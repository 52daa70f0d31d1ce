import { formatBytes } from '#service-kit/pages/index.ts';
import type { DataColumn } from '#service-kit/web/index.ts';

interface Counted {
  rxBytes: number;
  txBytes: number;
}

/** Columns for bytes in and out of rows with an address's counters. */
export const bytesColumns: readonly DataColumn<Counted>[] = [
  {
    key: 'in',
    header: 'In',
    kind: 'figure',
    cell: (row) => formatBytes(row.rxBytes),
    field: 'in_bytes',
    value: (row) => row.rxBytes,
  },
  {
    key: 'out',
    header: 'Out',
    kind: 'figure',
    cell: (row) => formatBytes(row.txBytes),
    field: 'out_bytes',
    value: (row) => row.txBytes,
  },
];
