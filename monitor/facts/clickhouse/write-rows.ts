/** From the minutes of uploads to rows of every table. */
import { parseAddress } from '#common/ip/index.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { directionCode, evidenceCode, vantageCode } from '../contract/codes.ts';
import {
  type ApplicationFact,
  collectUsage,
  localAddressOf,
  type NameApplication,
  type NamedPair,
} from '../contract/collect-facts.ts';
import { type FactUpload, pairsKeptMs } from '../contract/facts.ts';
import { type PeerSum, sumPeers } from '../contract/peer-networks.ts';
import type { OriginMinute, PlacedMinutes } from '../control/capture-store.ts';
import { placeOf, type RowPlace } from '../control/row-place.ts';
import { bytes, type Column, numbers, Rows, texts } from './native-columns.ts';

/** A capture's minute, which all its rows name. */
interface Minute extends RowPlace {
  sensorId: number;
  minute: number;
  capture: string;
  verdictEpoch: number;
}

/** A local address with its segment and verdict. */
interface Local {
  address: Uint8Array;
  segment: string;
  isForeign: boolean;
}

interface RowOf<Told> {
  at: Minute;
  local: Local;
  told: Told;
}

type Host = TelemetryMinute['hosts'][number] & { lanRxBytes: number; lanTxBytes: number };
type Capture = TelemetryMinute & { token: FactUpload['token']; nowMs: number };

/** Limits counters of a sensor to values that a double holds exactly. */
const counterMax = Number.MAX_SAFE_INTEGER;

const counter = <Told>(name: string, of: (told: Told) => number): Column<{ told: Told }> =>
  numbers('UInt64', name, ({ told }) => Math.min(of(told), counterMax));

const place: Column<{ at: Minute }>[] = [
  numbers('UInt32', 'site_id', ({ at }) => at.siteId),
  numbers('DateTime', 'minute', ({ at }) => at.minute),
  numbers('UInt32', 'capture_id', ({ at }) => at.captureId),
  numbers('UInt32', 'sensor_id', ({ at }) => at.sensorId),
  texts('capture', ({ at }) => at.capture),
];
const vantage: Column<{ at: Minute }> = numbers('UInt8', 'vantage', ({ at }) => at.vantage);

/** The local address in the column of this name, with its verdict. */
const judged = (name: string): Column<{ at: Minute; local: Local }>[] => [
  bytes(name, ({ local }) => local.address),
  texts('segment', ({ local }) => local.segment),
  numbers('UInt8', 'is_foreign', ({ local }) => Number(local.isForeign)),
  numbers('UInt32', 'verdict_epoch', ({ at }) => at.verdictEpoch),
];

const service: Column<RowOf<ApplicationFact | NamedPair>>[] = [
  vantage,
  numbers('UInt8', 'direction', ({ told }) => directionCode(told.direction)),
  texts('name', ({ told }) => told.name),
  numbers('UInt8', 'protocol', ({ told }) => told.protocol),
  // A service without a port has -1.
  numbers('Int32', 'server_port', ({ told }) => told.serverPort ?? -1),
  numbers('UInt8', 'evidence', ({ told }) => evidenceCode(told.evidence)),
  numbers('UInt8', 'is_attributed', ({ told }) => Number(told.isAttributed)),
];

const hostColumns: Column<RowOf<Host>>[] = [
  ...place,
  ...judged('address'),
  texts('device_key', ({ told }) => told.deviceKey),
  counter('rx_bytes', (host) => host.rxBytes),
  counter('tx_bytes', (host) => host.txBytes),
  counter('packets', (host) => host.packets),
  counter('lan_rx_bytes', (host) => host.lanRxBytes),
  counter('lan_tx_bytes', (host) => host.lanTxBytes),
  counter('own_scan_rx_bytes', ({ ownScan }) => ownScan?.rxBytes ?? 0),
  counter('own_scan_tx_bytes', ({ ownScan }) => ownScan?.txBytes ?? 0),
  counter('own_scan_packets', ({ ownScan }) => ownScan?.packets ?? 0),
  counter('dropped_rx_bytes', ({ dropped }) => dropped?.rxBytes ?? 0),
  counter('dropped_tx_bytes', ({ dropped }) => dropped?.txBytes ?? 0),
  counter('dropped_rx_packets', ({ dropped }) => dropped?.rxPackets ?? 0),
  counter('dropped_tx_packets', ({ dropped }) => dropped?.txPackets ?? 0),
];

const factColumns: Column<RowOf<ApplicationFact>>[] = [
  ...place,
  ...judged('local'),
  ...service,
  counter('inbound_bytes', (fact) => fact.inboundBytes),
  counter('outbound_bytes', (fact) => fact.outboundBytes),
  counter('packets', (fact) => fact.packets),
  counter('last_sent_ms', (fact) => fact.lastSentMs),
];

const pairColumns: Column<RowOf<NamedPair>>[] = [
  ...place,
  ...judged('local'),
  ...service,
  bytes('client', ({ told }) => addressBytes(told.client)),
  bytes('server', ({ told }) => addressBytes(told.server)),
  counter('client_bytes', (pair) => pair.clientBytes),
  counter('server_bytes', (pair) => pair.serverBytes),
  counter('packets', (pair) => pair.packets),
];

const peerColumns: Column<RowOf<PeerSum>>[] = [
  ...place,
  ...judged('local'),
  vantage,
  numbers('UInt8', 'direction', ({ told }) => directionCode(told.direction)),
  bytes('network', ({ told }) => addressBytes(told.peer)),
  counter('inbound_bytes', (sum) => sum.inboundBytes),
  counter('outbound_bytes', (sum) => sum.outboundBytes),
  counter('packets', (sum) => sum.packets),
];

const total = (name: string, of: keyof TelemetryMinute['totals']) =>
  counter<Capture>(name, ({ totals }) => totals[of] ?? 0);

const captureColumns: Column<{ at: Minute; told: Capture }>[] = [
  ...place,
  texts('spool_id', ({ told }) => told.token.spoolId),
  counter('sequence', ({ token }) => token.sequence),
  numbers('DateTime', 'appended_at', ({ told }) => Math.floor(told.nowMs / 1000)),
  numbers('UInt8', 'vantage', ({ told }) => vantageCode(told.role)),
  numbers('UInt32', 'observed_ms', ({ told }) => told.observedMs),
  total('packets', 'packets'),
  total('ip_packets', 'ipPackets'),
  total('ip_bytes', 'ipBytes'),
  total('non_ip_packets', 'nonIpPackets'),
  total('parser_dropped', 'parserDropped'),
  total('kernel_dropped', 'kernelDropped'),
  total('detail_truncated', 'detailTruncated'),
  total('merged_frames', 'mergedFrames'),
];

const createTables = () => ({
  host_minutes: new Rows(hostColumns),
  application_facts: new Rows(factColumns),
  endpoint_pairs: new Rows(pairColumns),
  peer_minutes: new Rows(peerColumns),
  // The last: a minute counts as collected when all that was collected of it is there.
  capture_minutes: new Rows(captureColumns),
});

/** Rows of every table, which uploads are added to. */
export type TableRows = ReturnType<typeof createTables>;
export const createTableRows: () => TableRows = createTables;

export type FactTable = keyof TableRows;
export const factTables = Object.keys(createTables()) as FactTable[];

export interface WriteOptions extends PlacedMinutes {
  nameApplication: NameApplication;
  verdictEpoch: number;
}

/** Adds the rows of one upload, of which `minutes` are those of `how` that are its own. */
export function writeRows(
  to: TableRows,
  { token }: Pick<FactUpload, 'token'>,
  minutes: readonly OriginMinute[],
  how: WriteOptions,
): void {
  const { nowMs } = how;
  for (const one of minutes) {
    const { hosts, usage } = one.minute;
    const { at, localOf } = openMinute(one, how);
    const { facts, pairs, lan } = collectUsage(usage, how.nameApplication);
    const rowsOf = <Told>(all: Iterable<Told>, addressOf: (told: Told) => string | null) =>
      Array.from(all, (told): RowOf<Told> => ({ at, local: localOf(addressOf(told)), told }));
    const local = hosts
      .filter(({ isLocal }) => isLocal)
      .map((host): Host => {
        const internal = lan.get(host.address);
        return { ...host, lanRxBytes: internal?.rxBytes ?? 0, lanTxBytes: internal?.txBytes ?? 0 };
      });
    to.host_minutes.add(rowsOf(local, ({ address }) => address));
    to.application_facts.add(rowsOf(facts, ({ localAddress }) => localAddress));
    // Pairs older than their 24 hours are not stored at all.
    if (at.minuteMs > nowMs - pairsKeptMs) to.endpoint_pairs.add(rowsOf(pairs, localAddressOf));
    to.peer_minutes.add(rowsOf(sumPeers(pairs), (sum) => sum.local));
    to.capture_minutes.add([{ at, told: { ...one.minute, token, nowMs } }]);
  }
}

function openMinute(one: OriginMinute, { isForeign, verdictEpoch }: WriteOptions) {
  const { minute, capture } = one.minute;
  const at: Minute = {
    ...placeOf(one, isForeign),
    ...{ sensorId: one.sensorId, minute, capture, verdictEpoch },
  };
  // An address has rows of many applications in a minute.
  const known = new Map<string | null, Local>();
  const localOf = (address: string | null): Local => {
    let local = known.get(address);
    if (local === undefined) {
      local = {
        address: addressBytes(address),
        segment: at.segmentOf(address),
        isForeign: at.isForeign(address),
      };
      known.set(address, local);
    }
    return local;
  };
  return { at, localOf };
}

/** Addresses whose bytes are remembered between rows. */
const addressesMax = 65_536;
let addresses = new Map<string, Uint8Array>();
const noBytes = new Uint8Array();

/** The bytes of an address; none for null. */
function addressBytes(address: string | null): Uint8Array {
  if (address === null) return noBytes;
  const held = addresses.get(address);
  if (held !== undefined) return held;
  const parsed = parseAddress(address);
  if (!parsed) throw new Error(`${address} is no address`);
  if (addresses.size >= addressesMax) addresses = new Map();
  addresses.set(address, parsed);
  return parsed;
}
