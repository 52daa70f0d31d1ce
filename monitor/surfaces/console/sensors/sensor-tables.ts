/** Tables of one sensor's page: the network of its host, addresses of other nodes, and spoofed traffic. */
import type { FastifyRequest } from 'fastify';
import type { ForeignAddress as ForeignRow } from '#monitor/facts/index.ts';
import type { HostInterfaces } from '#monitor/sensors/index.ts';
import type { SpoofedSum } from '#monitor/views/index.ts';
import {
  badge,
  code,
  formatAge,
  formatBytes,
  formatCount,
  html,
  link,
  section,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  dataTable,
  figureColumn,
  linkColumn,
  momentColumn,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import { bytesColumns } from '../parts/bytes-columns.ts';

/** Maximum number of interfaces on the page; files have all. */
const interfacesShown = 100;

/** The host's network as reported by its kernel. */
export function interfaceSection(request: FastifyRequest, host: HostInterfaces | undefined, nowMs: number) {
  const all = (host?.interfaces ?? []).filter((one) => one.name !== 'lo');
  const left = Math.max(0, all.length - interfacesShown) + (host?.interfacesLeftOut ?? 0);
  const place = (row: HostInterfaces['interfaces'][number]) =>
    row.master || (row.parent ? `${row.parent}, VLAN ${row.vlan}` : null);
  return section(
    {
      title: 'Interfaces',
      ...(host && {
        description: `As of ${formatAge(host.observedAtMs, nowMs)}; ${formatCount(host.neighbours)} neighbours known.`,
      }),
    },
    [
      dataTable<HostInterfaces['interfaces'][number]>(request, {
        id: 'interfaces',
        caption: 'Interfaces',
        card: { line: ['state', 'kind', 'addresses'] },
        rows: all.slice(0, interfacesShown),
        isComplete: left === 0,
        columns: [
          textColumn('name', 'Interface', (row) => row.name, { kind: 'code' }),
          textColumn('kind', 'Kind', (row) => row.kind || 'device'),
          {
            key: 'state',
            header: 'State',
            cell: (row) => (row.isUp ? badge('good', 'up') : badge('neutral', 'down')),
            value: (row) => (row.isUp ? 'up' : 'down'),
          },
          { key: 'mac', header: 'MAC', kind: 'code', cell: (row) => row.mac, value: (row) => row.mac },
          { key: 'place', header: 'Member of', cell: (row) => place(row) ?? 'none', value: place },
          {
            key: 'addresses',
            header: 'Addresses',
            cell: (row) => row.addresses.join(', ') || 'none',
            value: (row) => row.addresses.join(' '),
          },
        ],
        empty: { title: 'No interfaces yet', text: 'They appear with the first minutes of the sensor.' },
      }),
      left > 0 ? html`<p class="hint">${formatCount(left)} more are not shown.</p>` : null,
    ],
  );
}

export function foreignTable(request: FastifyRequest, siteId: number, rows: readonly ForeignRow[]) {
  return dataTable<ForeignRow>(request, {
    id: 'foreign',
    caption: 'Addresses of other nodes',
    card: { line: ['minutes', 'last'] },
    rows,
    columns: [
      linkColumn(
        'address',
        'Address',
        (row) => [row.address, `/sites/${siteId}/addresses/${encodeURIComponent(row.address)}`],
        { show: code },
      ),
      countColumn('minutes', 'Minutes', (row) => row.minutes),
      ...bytesColumns,
      timeColumn('last', 'Last minute', (row) => row.lastMinute * 1000),
    ],
    empty: { title: 'None', text: 'All reported addresses belong to its node or to no server.' },
  });
}

/** What was sent from addresses of others, by sender and address. */
export function spoofedTable(
  request: FastifyRequest,
  siteId: number,
  rows: readonly SpoofedSum[],
  nowMs: number,
) {
  return dataTable<SpoofedSum>(request, {
    id: 'spoofed',
    caption: 'Spoofed traffic',
    card: { line: ['address', 'bytes', 'last'] },
    rows,
    columns: [
      {
        key: 'sender',
        header: 'Sender',
        cell: (row) => (row.mac === '' ? 'other MACs' : html`${code(row.mac)} ${namesOf(row.senders)}`),
        field: 'mac',
        value: (row) => row.mac || null,
      },
      textColumn('capture', 'Segment', (row) => row.segment, { field: 'segment' }),
      {
        key: 'address',
        header: 'Sent from',
        cell: (row) =>
          row.address === null
            ? 'other addresses'
            : html`${link(`/sites/${siteId}/addresses/${encodeURIComponent(row.address)}`, code(row.address))} ${namesOf(row.owners)}`,
        value: (row) => row.address,
      },
      figureColumn('bytes', 'Bytes', (row) => row.bytes, formatBytes),
      countColumn('packets', 'Packets', (row) => row.packets),
      momentColumn('last', 'Last minute', (row) => row.lastMinuteMs, nowMs, { field: 'last_minute' }),
    ],
    fields: [
      { field: 'senders', value: (row) => row.senders.join(' ') },
      { field: 'owners', value: (row) => row.owners.join(' ') },
    ],
    empty: { title: 'None', text: 'Every guarded address was used by its own server only.' },
  });
}

const namesOf = (servers: readonly string[]) => (servers.length > 0 ? `(${servers.join(', ')})` : '');
