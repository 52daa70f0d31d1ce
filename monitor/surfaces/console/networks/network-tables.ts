/** Tables of networks that addresses talked to. */
import type { FastifyRequest } from 'fastify';
import { keptMs, keptText } from '#contracts/retention.ts';
import type { PeerHit, PeerNetwork } from '#monitor/peers/index.ts';
import {
  code,
  formatBytes,
  formatCount,
  formatTime,
  html,
  link,
  type Range,
  readRange,
  type TableOptions,
  withQuery,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  type DataColumn,
  dataTable,
  figureColumn,
  linkColumn,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import { addressHref, addressText } from '../parts/address-link.ts';

const opened = { address: 'the address', network: 'the network', both: 'both' } as const;

const exchangedColumns: readonly DataColumn<PeerNetwork>[] = [
  figureColumn('in', 'In', (row) => row.inboundBytes, formatBytes, { field: 'in_bytes' }),
  figureColumn('out', 'Out', (row) => row.outboundBytes, formatBytes, { field: 'out_bytes' }),
  countColumn('packets', 'Packets', (row) => row.packets),
  countColumn('minutes', 'Minutes', (row) => row.minutes),
  textColumn('opened_by', 'Opened by', (row) => row.openedBy, { show: (openedBy) => opened[openedBy] }),
  timeColumn('first', 'First hour', (row) => row.firstHour * 1000, { field: 'first_hour' }),
  timeColumn('last', 'Last hour', (row) => row.lastHour * 1000, { field: 'last_hour' }),
];

/** Only what the files of the operator know of these networks. */
function nameColumns(rows: readonly PeerNetwork[]): DataColumn<PeerNetwork>[] {
  const columns: DataColumn<PeerNetwork>[] = [];
  if (rows.some((row) => row.asNumber !== null))
    columns.push({
      key: 'as',
      header: 'AS',
      cell: (row) =>
        row.asNumber !== null && html`AS${String(row.asNumber)}${row.asName !== null && ` ${row.asName}`}`,
      field: 'as_number',
      value: (row) => row.asNumber,
    });
  if (rows.some((row) => row.country !== null))
    columns.push(textColumn('country', 'Country', (row) => row.country));
  return columns;
}

/** Networks of one address. */
export function networkTable(
  request: FastifyRequest,
  of: { siteId: number; rows: readonly PeerNetwork[]; total: number; emptyText: string },
) {
  const { rows, total } = of;
  return dataTable<PeerNetwork>(request, {
    id: 'networks',
    caption: 'Networks that this address talked to',
    card: { line: ['in', 'out', 'as', 'country'] },
    refreshSeconds: 60,
    rows,
    isComplete: rows.length === total,
    columns: [
      linkColumn(
        'network',
        'Network',
        (row) => [row.network, networkHref(of.siteId, row.network, hourRange(row))],
        { show: code },
      ),
      ...nameColumns(rows),
      ...exchangedColumns,
    ],
    pages: cutOf(rows.length, total),
    empty: { title: 'No networks', text: of.emptyText },
  });
}

/** Addresses that talked to a network, and whose they were. */
export function peerTable(
  request: FastifyRequest,
  of: { siteId: number; rows: readonly PeerHit[]; total: number; emptyText: string },
) {
  const { siteId, rows, total } = of;
  return dataTable<PeerHit>(request, {
    id: 'peers',
    caption: 'Addresses that talked to this network',
    card: { line: ['server', 'in', 'out'] },
    refreshSeconds: 60,
    rows,
    isComplete: rows.length === total,
    columns: [
      {
        key: 'address',
        header: 'Address',
        cell: (row) => link(addressHref(siteId, row, hourRange(row)), addressText(row)),
        value: (row) => row.address,
      },
      {
        key: 'server',
        header: 'Server at that time',
        cell: (row) =>
          row.servers.length > 0
            ? row.servers.map(({ name }) => name).join(', ')
            : html`<span class="unknown">unknown</span>`,
        value: (row) => row.servers.map(({ name }) => name).join(', ') || null,
      },
      textColumn('network', 'Network', (row) => row.network, { kind: 'code' }),
      ...nameColumns(rows),
      ...exchangedColumns,
    ] as DataColumn<PeerHit>[],
    fields: [
      { field: 'segment', value: (row) => row.segment || null },
      { field: 'vm_ids', value: (row) => row.servers.map(({ serverId }) => serverId).join(' ') || null },
    ],
    pages: cutOf(rows.length, total),
    empty: { title: 'No traffic with this network', text: of.emptyText },
  });
}

const cutOf = (shown: number, total: number): TableOptions<never>['pages'] =>
  total > shown ? { label: `The ${formatCount(shown)} largest of ${formatCount(total)}` } : undefined;

// Ranges of pages about networks: whole hours, at most as long as networks are kept.

const hourMs = 3_600_000;
const readMaxMs = keptMs('traffic');

/** The range of a query in whole hours, as networks are kept. */
export function readHours(query: Readonly<Record<string, unknown>>, nowMs: number): Range {
  const range = readRange(query, nowMs, '7d');
  if (range.toMs - range.fromMs > readMaxMs)
    return {
      ...wholeHours(readRange({ range: '30d' }, nowMs)),
      error: `Networks are kept for ${keptText('traffic')}.`,
    };
  return wholeHours(range);
}

function wholeHours(range: Range): Range {
  return {
    ...range,
    fromMs: Math.floor(range.fromMs / hourMs) * hourMs,
    toMs: Math.ceil(range.toMs / hourMs) * hourMs,
  };
}

/** `2026-11-20 14:00 to 2026-11-20 15:00 UTC`. */
export const hoursText = ({ fromMs, toMs }: Range): string =>
  `${formatTime(fromMs).replace(/ UTC$/, '')} to ${formatTime(toMs)}`;

/** The hours of a row as a query. */
function hourRange({ firstHour, lastHour }: { firstHour: number; lastHour: number }) {
  const utc = (second: number) => `${new Date(second * 1000).toISOString().slice(0, 16)}Z`;
  return { range: 'custom', from: utc(firstHour), to: utc(lastHour + 3600) };
}

/** URL of who talked to a network. */
const networkHref = (
  siteId: number,
  network: string,
  query: Readonly<Record<string, string | undefined>>,
): string => withQuery(`/sites/${siteId}/networks`, { network, ...query });
