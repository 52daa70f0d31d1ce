/** The plan of a sensor, and the servers of its node in the last import of the inventory. */
import type { FastifyRequest } from 'fastify';
import type { NodeServer } from '#monitor/inventory/index.ts';
import { leftOutOf, type SectionCount } from '#monitor/sensors/index.ts';
import { badge, formatCount, html, isoTime, moment, section } from '#service-kit/pages/index.ts';
import { countColumn, dataTable, momentColumn, textColumn } from '#service-kit/web/index.ts';

/** Maximum number of servers on the page and in files. */
export const nodeServersMax = 200;

export function planSection(request: FastifyRequest, plan: readonly SectionCount[]) {
  return section(
    {
      id: 'plan',
      title: 'Plan',
      description: 'Lists that the sensor fetches every 30 seconds. Entries above the limit are left out.',
    },
    dataTable<SectionCount>(request, {
      id: 'plan',
      caption: 'Plan',
      card: { line: ['entries', 'left'] },
      rows: plan,
      columns: [
        { key: 'list', header: 'List', cell: (row) => row.label, value: (row) => row.label },
        countColumn('entries', 'Entries', (row) => row.entries),
        countColumn('max', 'At most', (row) => row.entriesMax),
        textColumn('left', 'Left out', leftOutOf, {
          field: 'left_out',
          show: (leftOut) => (leftOut > 0 ? badge('warn', formatCount(leftOut)) : 'none'),
        }),
      ],
      empty: { title: 'Empty', text: 'The plan is empty.' },
    }),
  );
}

export function nodeServersSection(
  request: FastifyRequest,
  node: string,
  { rows, isComplete }: { rows: readonly NodeServer[]; isComplete: boolean },
  nowMs: number,
) {
  return section(
    {
      id: 'servers',
      title: 'Servers of its node',
      description: `Servers on ${node} with the time of the last import that listed them.`,
    },
    [
      dataTable<NodeServer>(request, {
        id: 'servers',
        caption: 'Servers of its node',
        card: { line: ['state', 'addresses'] },
        rows,
        isComplete,
        columns: [
          { key: 'name', header: 'Server', cell: (row) => row.name, value: (row) => row.name },
          { key: 'state', header: 'State', cell: (row) => row.state, value: (row) => row.state },
          {
            key: 'addresses',
            header: 'Addresses',
            kind: 'code',
            cell: (row) => row.addresses.join(', ') || 'none',
            value: (row) => row.addresses.join(' '),
          },
          momentColumn('seen', 'Listed', (row) => row.seenAtMs, nowMs, { field: 'listed_at' }),
          {
            key: 'interfaces',
            header: 'Interfaces listed',
            cell: (row) => (row.interfacesSeenAtMs === null ? 'none' : moment(row.interfacesSeenAtMs, nowMs)),
            field: 'interfaces_listed_at',
            value: (row) => (row.interfacesSeenAtMs === null ? null : isoTime(row.interfacesSeenAtMs)),
          },
        ],
        empty: { title: 'None', text: 'The inventory has no servers on this node.' },
      }),
      isComplete ? null : html`<p class="hint">More are not shown.</p>`,
    ],
  );
}
