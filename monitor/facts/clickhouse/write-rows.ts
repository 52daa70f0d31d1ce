/** From the minutes of one upload to rows of every table. */
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { directionCode, evidenceCode, vantageCode } from '../contract/codes.ts';
import { collectUsage, localAddressOf, type NameApplication, type Usage } from '../contract/collect-facts.ts';
import { type FactUpload, pairsKeptMs } from '../contract/facts.ts';
import { sumPeers } from '../contract/sum-peers.ts';
import type { OriginMinute, PlacedMinutes } from '../control/capture-store.ts';
import { placeOf, type RowPlace } from '../control/row-place.ts';
import { addressBytes, counter, escaped, type Rows } from './row-writer.ts';

const place = ['site_id', 'minute', 'capture_id', 'sensor_id', 'capture'];
const verdict = ['segment', 'is_foreign', 'verdict_epoch'];
const service = ['vantage', 'direction', 'name', 'protocol', 'server_port', 'evidence', 'is_attributed'];
const totals = [
  ...(['packets', 'ipPackets', 'ipBytes', 'nonIpPackets', 'parserDropped'] as const),
  ...(['kernelDropped', 'detailTruncated', 'mergedFrames'] as const),
];

const tableColumns = {
  host_minutes: [
    ...[...place, 'address', ...verdict, 'device_key'],
    ...['rx_bytes', 'tx_bytes', 'packets', 'lan_rx_bytes', 'lan_tx_bytes'],
  ],
  application_facts: [
    ...[...place, 'local', ...verdict, ...service],
    ...['inbound_bytes', 'outbound_bytes', 'packets', 'last_sent_ms'],
  ],
  endpoint_pairs: [
    ...[...place, 'local', ...verdict, ...service],
    ...['client', 'server', 'client_bytes', 'server_bytes', 'packets'],
  ],
  peer_minutes: [
    ...[...place, 'local', ...verdict, 'vantage', 'direction', 'network'],
    ...['inbound_bytes', 'outbound_bytes', 'packets'],
  ],
  // The last: a minute counts as collected when all that was collected of it is there.
  capture_minutes: [
    ...[...place, 'spool_id', 'sequence', 'appended_at', 'vantage', 'observed_ms'],
    ...['packets', 'ip_packets', 'ip_bytes', 'non_ip_packets', 'parser_dropped', 'kernel_dropped'],
    ...['detail_truncated', 'merged_frames'],
  ],
} as const;

export type FactTable = keyof typeof tableColumns;
export const factTables = Object.keys(tableColumns) as FactTable[];

export type TableRows = Record<FactTable, Rows>;

export interface WriteOptions extends PlacedMinutes {
  nameApplication: NameApplication;
  verdictEpoch: number;
}

/** The rows of one upload, of which `minutes` are those of `how` that are its own. */
export function writeRows(
  { token }: Pick<FactUpload, 'token'>,
  minutes: readonly OriginMinute[],
  how: WriteOptions,
): TableRows {
  const tables = Object.fromEntries(
    factTables.map((table): [FactTable, Rows] => [table, { columns: tableColumns[table], lines: [] }]),
  ) as TableRows;
  for (const one of minutes) {
    const at = writer(one, how);
    const usage = collectUsage(one.minute.usage, how.nameApplication);
    writeHosts(tables.host_minutes, at, one.minute.hosts, usage.lan);
    writeFacts(tables.application_facts, at, usage.facts);
    // Pairs older than their 24 hours are not stored at all.
    if (at.minuteMs > how.nowMs - pairsKeptMs) writePairs(tables.endpoint_pairs, at, usage.pairs);
    writePeers(tables.peer_minutes, at, usage.pairs);
    writeCapture(tables.capture_minutes, at, one.minute, token, how.nowMs);
  }
  return tables;
}

interface Writer extends RowPlace {
  /** The first columns of every row. */
  head: string;
  /** A local address with its segment and verdict. */
  placeOf(address: string | null): string;
}

/** Rows are put together by templates: through lists they would cost twice as much, and every row of telemetry passes here. */
function writer(one: OriginMinute, { isForeign, verdictEpoch }: WriteOptions): Writer {
  const at = placeOf(one, isForeign);
  const { siteId, captureId, sensorId, minute } = one;
  // An address has rows of many applications in a minute.
  const places = new Map<string | null, string>();
  return {
    ...at,
    head: [siteId, minute.minute, captureId, sensorId, escaped(minute.capture)].join('\t'),
    placeOf(address) {
      let place = places.get(address);
      if (place === undefined) {
        place = `${addressBytes(address)}\t${escaped(at.segmentOf(address))}\t${at.isForeign(address) ? 1 : 0}\t${verdictEpoch}`;
        places.set(address, place);
      }
      return place;
    },
  };
}

function writeHosts(to: Rows, at: Writer, hosts: TelemetryMinute['hosts'], lan: Usage['lan']): void {
  for (const { isLocal, address, deviceKey, rxBytes, txBytes, packets } of hosts) {
    if (!isLocal) continue;
    const internal = lan.get(address);
    const own = `${at.head}\t${at.placeOf(address)}\t${escaped(deviceKey)}\t${counter(rxBytes)}\t${counter(txBytes)}`;
    to.lines.push(
      `${own}\t${counter(packets)}\t${counter(internal?.rxBytes ?? 0)}\t${counter(internal?.txBytes ?? 0)}\n`,
    );
  }
}

/** The columns of `service`; a service without a port has -1. */
const serviceOf = (at: Writer, row: Usage['facts'][number] | Usage['pairs'][number]): string =>
  `${at.vantage}\t${directionCode(row.direction)}\t${escaped(row.name)}\t${row.protocol}\t${row.serverPort ?? -1}\t${evidenceCode(row.evidence)}\t${row.isAttributed ? 1 : 0}`;

function writeFacts(to: Rows, at: Writer, facts: Usage['facts']): void {
  for (const fact of facts) {
    const sums = `${counter(fact.inboundBytes)}\t${counter(fact.outboundBytes)}\t${counter(fact.packets)}`;
    to.lines.push(
      `${at.head}\t${at.placeOf(fact.localAddress)}\t${serviceOf(at, fact)}\t${sums}\t${counter(fact.lastSentMs)}\n`,
    );
  }
}

function writePairs(to: Rows, at: Writer, pairs: Usage['pairs']): void {
  for (const pair of pairs) {
    const ends = `${addressBytes(pair.client)}\t${addressBytes(pair.server)}`;
    const sums = `${counter(pair.clientBytes)}\t${counter(pair.serverBytes)}\t${counter(pair.packets)}`;
    to.lines.push(
      `${at.head}\t${at.placeOf(localAddressOf(pair))}\t${serviceOf(at, pair)}\t${ends}\t${sums}\n`,
    );
  }
}

function writePeers(to: Rows, at: Writer, pairs: Usage['pairs']): void {
  for (const { direction, local, peer, inboundBytes, outboundBytes, packets } of sumPeers(pairs)) {
    const sums = `${counter(inboundBytes)}\t${counter(outboundBytes)}\t${counter(packets)}`;
    to.lines.push(
      `${at.head}\t${at.placeOf(local)}\t${at.vantage}\t${directionCode(direction)}\t${addressBytes(peer)}\t${sums}\n`,
    );
  }
}

function writeCapture(
  to: Rows,
  at: Writer,
  minute: TelemetryMinute,
  { spoolId, sequence }: FactUpload['token'],
  nowMs: number,
): void {
  const noted = [spoolId, sequence, Math.floor(nowMs / 1000), vantageCode(minute.role), minute.observedMs];
  const sums = totals.map((name) => counter(minute.totals[name] ?? 0));
  to.lines.push(`${[at.head, ...noted, ...sums].join('\t')}\n`);
}
