import { formatBytes } from '#service-kit/pages/index.ts';
import type { DataColumn } from '#service-kit/web/index.ts';
import { figureColumn } from '#service-kit/web/index.ts';

interface Counted {
  rxBytes: number;
  txBytes: number;
}

/** Columns for bytes in and out of rows with an address's counters. */
export const bytesColumns: readonly DataColumn<Counted>[] = [
  figureColumn('in', 'In', (row) => row.rxBytes, formatBytes, { field: 'in_bytes' }),
  figureColumn('out', 'Out', (row) => row.txBytes, formatBytes, { field: 'out_bytes' }),
];
