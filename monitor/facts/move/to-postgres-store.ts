/**
 * Copies a day of a site from ClickHouse to PostgreSQL, within one transaction of the caller. Sums by minute and hour are made of the
 * rows afterwards, by the marks.
 */
import { copyText, type Queryable } from '#service-kit/postgres/index.ts';
import type { Engine } from '../clickhouse/engine-store.ts';
import { ch, type Fragment, number, plain, second } from '../clickhouse/statement.ts';
import { readForeign } from '../clickhouse/verdict-store.ts';
import type { SiteDay } from '../control/engine-use-store.ts';
import { countLines } from './to-clickhouse-store.ts';

export interface ToPostgres extends SiteDay {
  /** What is older is being removed. */
  fromMinute: number;
  /** Of pairs the same. */
  pairsFrom: number;
}

/** Throws what `onRows` throws. */
export async function copyToPostgres(
  { trx, engine }: { trx: Queryable; engine: Engine },
  { siteId, day, fromMinute, pairsFrom }: ToPostgres,
  onRows: (rows: number) => Promise<void>,
): Promise<void> {
  const bounds = { siteIds: [siteId], fromMinute: Math.max(day, fromMinute), toMinute: day + 86_400 };
  const foreign = await readForeign(trx, bounds);
  const within = (from: number) =>
    ch`site_id = ${number(siteId)} and minute >= ${second(Math.max(from, bounds.fromMinute))} and minute < ${second(bounds.toMinute)}`;
  for (const { table, columns, query } of tables(within, foreign, pairsFrom)) {
    const rows = await engine.read(query);
    const counted = async function* () {
      for await (const piece of rows) {
        await onRows(countLines(piece));
        yield piece;
      }
    };
    await copyText(trx, table, columns, counted());
  }
}

/** Text of an address; null for none. Four bytes become sixteen for the branch that is not taken. */
const address = (column: string): Fragment =>
  plain(`multiIf(length(${column}) = 4, IPv4NumToString(reinterpretAsUInt32(reverse(toString(${column})))),
    length(${column}) = 16, IPv6NumToString(toFixedString(if(length(${column}) = 16, toString(${column}), repeat('\\0', 16)), 16)), null)`);
const moment = (column: string): Fragment => plain(`concat(toString(${column}), '+00')`);
const service = ['vantage', 'direction', 'name', 'protocol', 'server_port', 'evidence', 'is_attributed'];
const serviceColumns = plain(
  `vantage, direction, name, protocol, if(server_port < 0, null, server_port), evidence, is_attributed`,
);
const ownScans = ['own_scan_rx_bytes', 'own_scan_tx_bytes', 'own_scan_packets'];
const dropped = ['dropped_rx_bytes', 'dropped_tx_bytes', 'dropped_rx_packets', 'dropped_tx_packets'];
const captureTotals = [
  ...['packets', 'ip_packets', 'ip_bytes', 'non_ip_packets', 'parser_dropped', 'kernel_dropped'],
  ...['detail_truncated', 'merged_frames'],
];

function tables(
  within: (from: number) => Fragment,
  foreign: (address: 'address' | 'local') => Fragment,
  pairsFrom: number,
): { table: string; columns: readonly string[]; query: Fragment }[] {
  const at = plain(`site_id, concat(toString(minute), '+00'), capture_id`);
  const place = ['site_id', 'minute', 'capture_id'];
  const judged = (column: 'address' | 'local') => ch`if(${foreign(column)}, 't', 'f'), segment`;
  const sums = captureTotals.map((name) => `least(sum(t.${name}), 9007199254740991)`).join(', ');
  return [
    {
      table: 'host_minutes',
      columns: [
        ...[...place, 'address', 'is_foreign', 'segment', 'device_key', 'rx_bytes', 'tx_bytes', 'packets'],
        ...['lan_rx_bytes', 'lan_tx_bytes', ...ownScans, ...dropped],
      ],
      query: ch`select ${at}, ${address('address')}, ${judged('address')}, device_key, rx_bytes, tx_bytes, packets, lan_rx_bytes, lan_tx_bytes,
          ${plain([...ownScans, ...dropped.map((name) => `if(dropped_rx_packets + dropped_tx_packets = 0, null, ${name})`)].join(', '))}
        from host_minutes where ${within(0)}`,
    },
    {
      table: 'application_facts',
      columns: [
        ...[...place, 'local_address', 'is_foreign', 'segment', ...service],
        ...['inbound_bytes', 'outbound_bytes', 'packets', 'last_sent_at'],
      ],
      query: ch`select ${at}, ${address('local')}, ${judged('local')}, ${serviceColumns}, inbound_bytes, outbound_bytes, packets,
          if(last_sent_ms = 0, null, ${moment("fromUnixTimestamp64Milli(toInt64(last_sent_ms), 'UTC')")})
        from application_facts where ${within(0)}`,
    },
    {
      table: 'endpoint_pairs',
      columns: [
        ...[...place, 'is_foreign', 'segment', ...service, 'client', 'server'],
        ...['client_bytes', 'server_bytes', 'packets'],
      ],
      query: ch`select ${at}, ${judged('local')}, ${serviceColumns}, ${address('client')}, ${address('server')}, client_bytes, server_bytes,
          packets from endpoint_pairs where ${within(pairsFrom)}`,
    },
    {
      // Also of minutes with pairs: what is in the pairs as well counts once.
      table: 'late_peer_minutes',
      columns: [
        ...[...place, 'vantage', 'direction', 'local', 'is_foreign', 'segment', 'peer'],
        ...['inbound_bytes', 'outbound_bytes', 'packets'],
      ],
      query: ch`select ${at}, vantage, direction, ${address('local')}, ${judged('local')}, ${address('network')}, inbound_bytes,
          outbound_bytes, packets from peer_minutes where ${within(0)} and capture_id != 0`,
    },
    {
      table: 'peer_network_hours',
      columns: [
        ...['site_id', 'hour', 'direction', 'local', 'segment', 'network', 'inbound_bytes', 'outbound_bytes'],
        ...['packets', 'minutes', 'is_late'],
      ],
      query: ch`select site_id, ${moment('minute')}, direction, ${address('local')}, segment,
          concat(${address('network')}, if(length(network) = 4, '/24', '/48')), inbound_bytes, outbound_bytes, packets, minutes, 'f'
        from peer_minutes where ${within(0)} and capture_id = 0`,
    },
    {
      table: 'capture_minutes',
      columns: [...place, 'vantage', 'observed_ms', ...captureTotals],
      query: ch`select site_id, ${moment('at')}, capture_id, min(t.vantage), least(sum(t.observed_ms), 60000), ${plain(sums)}
        from (select *, minute as at from capture_minutes where ${within(0)}) t group by site_id, at, capture_id`,
    },
  ];
}
