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
  isoTime,
  link,
  moment,
  section,
  utcTime,
} from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';
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
          {
            key: 'name',
            header: 'Interface',
            kind: 'code',
            cell: (row) => row.name,
            value: (row) => row.name,
          },
          {
            key: 'kind',
            header: 'Kind',
            cell: (row) => row.kind || 'device',
            value: (row) => row.kind || 'device',
          },
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
      {
        key: 'address',
        header: 'Address',
        cell: (row) =>
          link(`/sites/${siteId}/addresses/${encodeURIComponent(row.address)}`, code(row.address)),
        value: (row) => row.address,
      },
      {
        key: 'minutes',
        header: 'Minutes',
        kind: 'figure',
        cell: (row) => formatCount(row.minutes),
        value: (row) => row.minutes,
      },
      ...bytesColumns,
      {
        key: 'last',
        header: 'Last minute',
        kind: 'time',
        cell: (row) => utcTime(row.lastMinute * 1000),
        value: (row) => isoTime(row.lastMinute * 1000),
      },
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
      {
        key: 'capture',
        header: 'Segment',
        cell: (row) => row.segment,
        field: 'segment',
        value: (row) => row.segment,
      },
      {
        key: 'address',
        header: 'Sent from',
        cell: (row) =>
          row.address === null
            ? 'other addresses'
            : html`${link(`/sites/${siteId}/addresses/${encodeURIComponent(row.address)}`, code(row.address))} ${namesOf(row.owners)}`,
        value: (row) => row.address,
      },
      {
        key: 'bytes',
        header: 'Bytes',
        kind: 'figure',
        cell: (row) => formatBytes(row.bytes),
        value: (row) => row.bytes,
      },
      {
        key: 'packets',
        header: 'Packets',
        kind: 'figure',
        cell: (row) => formatCount(row.packets),
        value: (row) => row.packets,
      },
      {
        key: 'last',
        header: 'Last minute',
        cell: (row) => moment(row.lastMinuteMs, nowMs),
        field: 'last_minute',
        value: (row) => isoTime(row.lastMinuteMs),
      },
    ],
    fields: [
      { field: 'senders', value: (row) => row.senders.join(' ') },
      { field: 'owners', value: (row) => row.owners.join(' ') },
    ],
    empty: { title: 'None', text: 'Every guarded address was used by its own server only.' },
  });
}

const namesOf = (servers: readonly string[]) => (servers.length > 0 ? `(${servers.join(', ')})` : '');
