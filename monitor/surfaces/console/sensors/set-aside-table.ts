import type { FastifyRequest } from 'fastify';
import type { SetAsideHost } from '#contracts/sensor-api/set-aside.ts';
import { type Content, code, isoTime } from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';

/** Counters that were left out of a sensor's uploads, by address. */
export function setAsideTable(request: FastifyRequest, rows: readonly SetAsideHost[]): Content {
  return dataTable<SetAsideHost>(request, {
    id: 'set-aside',
    caption: 'Counters ignored',
    card: { line: ['capture', 'address'] },
    rows,
    empty: { title: 'None', text: 'All counters of this sensor are plausible.' },
    columns: [
      {
        key: 'minute',
        header: 'Minute',
        cell: (row) => isoTime(row.minute * 1000) ?? '',
        value: (row) => isoTime(row.minute * 1000),
      },
      { key: 'capture', header: 'Capture', cell: (row) => row.capture, value: (row) => row.capture },
      {
        key: 'address',
        header: 'Address',
        kind: 'code',
        cell: (row) => code(row.address),
        value: (row) => row.address,
      },
    ],
  });
}
