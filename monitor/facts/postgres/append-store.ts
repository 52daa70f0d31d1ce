/**
 * Writing facts. Everything of a batch of uploads is written with one COPY per table, for any number of uploads.
 * Only `capture_minutes`, one row a capture and minute, adds up in place.
 */
import { sql } from 'kysely';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { zeroTotals } from '#contracts/sensor-api/telemetry-totals.ts';
import type { ForeignCheck } from '#monitor/placements/index.ts';
import { copyRows, type Queryable, RowWriter } from '#service-kit/postgres/index.ts';
import { directionCode, evidenceCode, vantageCode } from '../contract/codes.ts';
import {
  collectUsage,
  localAddressOf,
  type NameApplication,
  type NamedPair,
  type Usage,
} from '../contract/collect-facts.ts';
import { type FactUpload, pairsKeptMs } from '../contract/facts.ts';
import { sumPeers } from '../contract/peer-networks.ts';
import { type OriginMinute, placeMinutes } from '../control/capture-store.ts';
import { divideUploads } from '../control/divide-uploads.ts';
import { insertGaps } from '../control/gap-store.ts';
import { placeOf, type RowPlace } from '../control/row-place.ts';
import { claimTokens } from '../control/token-store.ts';
import { type SensorMinute, trimUnobservedGaps } from '../control/unobserved-gap-store.ts';

/** Limits counters of a sensor to values that a double holds exactly. */
const counterMax = Number.MAX_SAFE_INTEGER;

const origin = ['site_id', 'minute', 'capture_id'];
const service = ['name', 'protocol', 'server_port', 'evidence', 'is_attributed'];
const verdict = ['is_foreign', 'segment'];
const hostColumns = [
  ...[...origin, 'address', 'rx_bytes', 'tx_bytes', 'packets', 'device_key', 'lan_rx_bytes', 'lan_tx_bytes'],
  ...['own_scan_rx_bytes', 'own_scan_tx_bytes', 'own_scan_packets'],
  ...['dropped_rx_bytes', 'dropped_tx_bytes', 'dropped_rx_packets', 'dropped_tx_packets', ...verdict],
];
const factColumns = [
  ...[...origin, 'vantage', 'direction', 'local_address', ...service],
  ...['inbound_bytes', 'outbound_bytes', 'packets', 'last_sent_at', ...verdict],
];
const pairColumns = [
  ...[...origin, 'vantage', 'direction', 'client', 'server', ...service],
  ...['client_bytes', 'server_bytes', 'packets', ...verdict],
];
/** Peer networks of minutes that arrive too late for their pairs, written beside the facts. */
const latePeerColumns = [
  ...[...origin, 'vantage', 'direction', 'local', 'peer'],
  ...['inbound_bytes', 'outbound_bytes', 'packets', ...verdict],
];

/** Appends the uploads that were not appended before to every table of facts, and marks the sites' minutes as changed. */
export async function appendUploads(
  trx: Queryable,
  uploads: readonly FactUpload[],
  nameApplication: NameApplication,
): Promise<void> {
  const fresh = await claimTokens(trx, uploads);
  if (fresh.length === 0) return;
  const trimmed = await trimUnobservedGaps(trx, fresh, findKnown);
  for (const part of divideUploads(trimmed)) await appendPart(trx, part, nameApplication);
  await insertGaps(trx, trimmed);
}

async function appendPart(trx: Queryable, uploads: readonly FactUpload[], nameApplication: NameApplication) {
  const placed = await placeMinutes(trx, uploads);
  if (!placed) return;
  const { minutes, isForeign, nowMs } = placed;
  await addCaptureMinutes(trx, minutes);
  await copyFacts(trx, minutes, { nameApplication, isForeign, pairsFromMs: nowMs - pairsKeptMs });
  await markMinutes(trx, minutes);
}

/** Adds captures' totals; a window that arrives in several uploads adds up (NET-2.2.9). */
async function addCaptureMinutes(trx: Queryable, minutes: readonly OriginMinute[]): Promise<void> {
  const rows = sumCaptureMinutes(minutes);
  const all = (read: (row: CaptureSum) => number) => rows.map(read);
  const sum = (column: string) =>
    sql`${sql.ref(column)} = least(${sql.ref(`capture_minutes.${column}`)} + ${sql.ref(`excluded.${column}`)}, ${sql.lit(counterMax)})`;
  await sql`
    insert into capture_minutes (site_id, minute, capture_id, vantage, observed_ms, packets, ip_packets, ip_bytes,
      non_ip_packets, parser_dropped, kernel_dropped, detail_truncated, merged_frames)
    select site_id, to_timestamp(minute), capture_id, vantage, observed_ms, packets, ip_packets, ip_bytes, non_ip_packets,
      parser_dropped, kernel_dropped, detail_truncated, merged_frames
    from unnest(${all((r) => r.siteId)}::bigint[], ${all((r) => r.minute)}::float8[], ${all((r) => r.captureId)}::bigint[],
      ${all((r) => r.vantage)}::smallint[], ${all((r) => r.observedMs)}::int[], ${all((r) => r.packets)}::bigint[],
      ${all((r) => r.ipPackets)}::bigint[], ${all((r) => r.ipBytes)}::bigint[], ${all((r) => r.nonIpPackets)}::bigint[],
      ${all((r) => r.parserDropped)}::bigint[], ${all((r) => r.kernelDropped)}::bigint[],
      ${all((r) => r.detailTruncated)}::bigint[], ${all((r) => r.mergedFrames)}::bigint[])
      as given (site_id, minute, capture_id, vantage, observed_ms, packets, ip_packets, ip_bytes, non_ip_packets,
        parser_dropped, kernel_dropped, detail_truncated, merged_frames)
    on conflict (site_id, minute, capture_id) do update set
      vantage = least(capture_minutes.vantage, excluded.vantage),
      observed_ms = least(capture_minutes.observed_ms + excluded.observed_ms, 60000),
      ${sum('packets')}, ${sum('ip_packets')}, ${sum('ip_bytes')}, ${sum('non_ip_packets')}, ${sum('parser_dropped')},
      ${sum('kernel_dropped')}, ${sum('detail_truncated')}, ${sum('merged_frames')}`.execute(trx);
}

interface CaptureSum extends Required<TelemetryMinute['totals']> {
  siteId: number;
  captureId: number;
  minute: number;
  vantage: number;
  observedMs: number;
}

/** One statement may not touch a row twice, so uploads of one window are added here first. */
function sumCaptureMinutes(minutes: readonly OriginMinute[]): CaptureSum[] {
  const sums = new Map<string, CaptureSum>();
  for (const { siteId, captureId, minute } of minutes) {
    const { totals } = minute;
    const key = `${captureId} ${minute.minute}`;
    let row = sums.get(key);
    if (!row) {
      const origin = { siteId, captureId, minute: minute.minute, vantage: 2, observedMs: 0 };
      row = { ...origin, ...zeroTotals() };
      sums.set(key, row);
    }
    row.vantage = Math.min(row.vantage, vantageCode(minute.role));
    row.observedMs = Math.min(row.observedMs + minute.observedMs, 60_000);
    for (const name of Object.keys(totals) as (keyof typeof totals)[])
      row[name] = Math.min(row[name] + (totals[name] ?? 0), counterMax);
  }
  return [...sums.values()];
}

async function copyFacts(
  trx: Queryable,
  minutes: readonly OriginMinute[],
  how: { nameApplication: NameApplication; isForeign: ForeignCheck; pairsFromMs: number },
): Promise<void> {
  const hosts = new RowWriter(256 * 1024);
  const facts = new RowWriter(1024 * 1024);
  const pairs = new RowWriter(1024 * 1024);
  const late = new RowWriter(64 * 1024);
  for (const one of minutes) {
    const place = placeOf(one, how.isForeign);
    const usage = collectUsage(one.minute.usage, how.nameApplication);
    writeHosts(hosts, place, one.minute.hosts, usage.lan);
    writeFacts(facts, place, usage.facts);
    // Pairs older than their 24 hours are not stored at all.
    if (place.minuteMs > how.pairsFromMs) writePairs(pairs, place, usage.pairs);
    if (isLateForPeers(place.minuteMs, how.pairsFromMs)) writeLatePeers(late, place, usage.pairs);
  }
  if (hosts.count > 0) await copyRows(trx, 'host_minutes', hostColumns, hosts.finish());
  if (facts.count > 0) await copyRows(trx, 'application_facts', factColumns, facts.finish());
  if (pairs.count > 0) await copyRows(trx, 'endpoint_pairs', pairColumns, pairs.finish());
  if (late.count > 0) await copyRows(trx, 'late_peer_minutes', latePeerColumns, late.finish());
}

function beginRow(to: RowWriter, columns: readonly string[], place: RowPlace): void {
  to.row(columns.length);
  to.bigint(place.siteId);
  to.timestamp(place.minuteMs);
  to.bigint(place.captureId);
}

function writeDirection(to: RowWriter, place: RowPlace, direction: NamedPair['direction']): void {
  to.smallint(place.vantage);
  to.smallint(directionCode(direction));
}

function writeService(to: RowWriter, row: Usage['facts'][number] | NamedPair): void {
  to.text(row.name);
  to.smallint(row.protocol);
  to.integer(row.serverPort);
  to.smallint(evidenceCode(row.evidence));
  to.boolean(row.isAttributed);
}

function writeVerdict(to: RowWriter, place: RowPlace, local: string | null): void {
  to.boolean(place.isForeign(local));
  to.text(place.segmentOf(local));
}

function writeHosts(to: RowWriter, place: RowPlace, hosts: TelemetryMinute['hosts'], lan: Usage['lan']) {
  for (const host of hosts) {
    if (!host.isLocal) continue;
    const internal = lan.get(host.address);
    beginRow(to, hostColumns, place);
    to.inet(host.address);
    to.bigint(host.rxBytes);
    to.bigint(host.txBytes);
    to.bigint(host.packets);
    to.text(host.deviceKey);
    to.bigint(internal?.rxBytes ?? 0);
    to.bigint(internal?.txBytes ?? 0);
    to.bigint(host.ownScan?.rxBytes ?? 0);
    to.bigint(host.ownScan?.txBytes ?? 0);
    to.bigint(host.ownScan?.packets ?? 0);
    to.bigint(host.dropped?.rxBytes ?? null);
    to.bigint(host.dropped?.txBytes ?? null);
    to.bigint(host.dropped?.rxPackets ?? null);
    to.bigint(host.dropped?.txPackets ?? null);
    writeVerdict(to, place, host.address);
  }
}

function writeFacts(to: RowWriter, place: RowPlace, facts: Usage['facts']): void {
  for (const fact of facts) {
    beginRow(to, factColumns, place);
    writeDirection(to, place, fact.direction);
    to.inet(fact.localAddress);
    writeService(to, fact);
    to.bigint(Math.min(fact.inboundBytes, counterMax));
    to.bigint(Math.min(fact.outboundBytes, counterMax));
    to.bigint(Math.min(fact.packets, counterMax));
    to.timestamp(fact.lastSentMs || null);
    writeVerdict(to, place, fact.localAddress);
  }
}

function writePairs(to: RowWriter, place: RowPlace, pairs: readonly NamedPair[]): void {
  for (const pair of pairs) {
    beginRow(to, pairColumns, place);
    writeDirection(to, place, pair.direction);
    to.inet(pair.client);
    to.inet(pair.server);
    writeService(to, pair);
    to.bigint(pair.clientBytes);
    to.bigint(pair.serverBytes);
    to.bigint(pair.packets);
    writeVerdict(to, place, localAddressOf(pair));
  }
}

/** Pairs of a capture's minute, summed by local address and network. */
function writeLatePeers(to: RowWriter, place: RowPlace, pairs: readonly NamedPair[]): void {
  for (const sum of sumPeers(pairs)) {
    beginRow(to, latePeerColumns, place);
    writeDirection(to, place, sum.direction);
    to.inet(sum.local);
    to.inet(sum.peer);
    to.bigint(Math.min(sum.inboundBytes, counterMax));
    to.bigint(Math.min(sum.outboundBytes, counterMax));
    to.bigint(Math.min(sum.packets, counterMax));
    writeVerdict(to, place, sum.local);
  }
}

const hourMs = 3_600_000;

/**
 * Whether the minute's hour may have lost pairs before it is rolled up again. An hour ahead of time, because the roll-up waits
 * until facts have settled; what is in the pairs as well is counted once.
 */
const isLateForPeers = (minuteMs: number, pairsFromMs: number): boolean =>
  Math.floor(minuteMs / hourMs) * hourMs < pairsFromMs + hourMs;

async function markMinutes(trx: Queryable, minutes: readonly OriginMinute[]): Promise<void> {
  const marks = new Map(
    minutes.map(({ siteId, minute }) => [`${siteId} ${minute.minute}`, [siteId, minute.minute]]),
  );
  const given = [...marks.values()];
  await sql`insert into site_minute_marks (site_id, minute)
    select site_id, to_timestamp(minute)
    from unnest(${given.map((mark) => mark[0])}::bigint[], ${given.map((mark) => mark[1])}::float8[])
      as given (site_id, minute)`.execute(trx);
}

/** Those of these minutes for which something is stored. */
async function findKnown(trx: Queryable, minutes: readonly SensorMinute[]): Promise<SensorMinute[]> {
  const { rows } = await sql<SensorMinute>`
    select given.sensor_id, given.capture, given.minute
    from unnest(${minutes.map((one) => one.sensorId)}::bigint[], ${minutes.map((one) => one.capture)}::text[],
      ${minutes.map((one) => one.minute)}::float8[]) as given (sensor_id, capture, minute)
    join captures c on c.sensor_id = given.sensor_id and c.name = given.capture
    join capture_minutes m on m.site_id = c.site_id and m.minute = to_timestamp(given.minute)
      and m.capture_id = c.id`.execute(trx);
  return rows;
}
