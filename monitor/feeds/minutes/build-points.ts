/**
 * Minute facts of one address as the points of the feed (NET-2.4.0).
 *
 * Rates are `bytes * 8 / 60`, not rounded, so that the bytes come back exactly. A gap is never filled with zeros: where its
 * reason is known and the receiver takes reasons, it is a point without values, else no point. Attack and expected rates are
 * those of the minute's verdict (NET-2.4.5, NET-2.4.6).
 */
import type { TelemetryApplication, TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import { transportName } from '#contracts/ip-protocols.ts';
import { gapRows, type MinuteReason } from '#contracts/minute-reasons.ts';
import type { DroppedCounters, OwnScanCounters } from '#contracts/sensor-api/telemetry.ts';
import type { AddressApplication } from '#monitor/facts/index.ts';
import type { AddressMinute } from '#monitor/traffic/index.ts';
import type { RangeContent } from './read-ahead.ts';

/** Identities of one minute (NET-2.4.1). */
export const identitiesMax = 20;
const nameLengthMax = 253;

/** True when the minute makes a point. */
export function hasPoint(entry: AddressMinute, withReason: boolean): boolean {
  return !entry.isGap || (withReason && entry.loss !== null);
}

/** What the receiver takes: transport and port; why values are unknown; the part that our own port scans are; what filters dropped. */
export interface PointFields {
  withIdentity: boolean;
  withReason: boolean;
  withOwnScan: boolean;
  withDropped: boolean;
}

/** A point for each minute that was observed, and for each gap whose reason the receiver takes, in order. */
export function buildPoints(
  { minutes, applications, verdicts }: RangeContent,
  { withIdentity, withReason, withOwnScan, withDropped }: PointFields,
): TelemetryPoint[] {
  const byMinute = Map.groupBy(applications, (row) => row.minute);
  const points: TelemetryPoint[] = [];
  for (const entry of minutes) {
    if (!hasPoint(entry, withReason)) continue;
    if (entry.isGap) {
      points.push(gapPoint(entry.minute, gapRows[entry.loss!].told));
      continue;
    }
    const rows = byMinute.get(entry.minute) ?? [];
    const verdict = verdicts.get(entry.minute);
    // What was lost explains also why nothing is known of attacks.
    const reason = entry.loss === null ? (verdict?.reason ?? null) : gapRows[entry.loss].told;
    points.push({
      timestamp: new Date(entry.minute * 1000).toISOString(),
      inbound_bps: (entry.rxBytes * 8) / 60,
      outbound_bps: (entry.txBytes * 8) / 60,
      pps: entry.packets === null ? null : entry.packets / 60,
      expected_bps: verdict?.expectedBps ?? null,
      expected_pps: verdict?.expectedPps ?? null,
      ddos_bps: rateOf(verdict?.ddosBytes, 8),
      ddos_pps: rateOf(verdict?.ddosPackets, 1),
      // An attack minute that its own source did not check (NET-2.4.3).
      coverage: verdict?.isChecked === false ? null : entry.coverage,
      applications: withIdentity ? listIdentities(rows) : listNames(rows),
      ...(withReason && reason !== null ? { reason } : {}),
      ...(withOwnScan && entry.ownScan ? { own_scan: ownScanOf(entry.ownScan) } : {}),
      ...(withDropped && entry.dropped ? { dropped: droppedRates(entry.dropped) } : {}),
    });
  }
  return points;
}

function gapPoint(minute: number, reason: MinuteReason): TelemetryPoint {
  return {
    timestamp: new Date(minute * 1000).toISOString(),
    ...{ inbound_bps: null, outbound_bps: null, pps: null, expected_bps: null, expected_pps: null },
    ...{ ddos_bps: null, ddos_pps: null, coverage: 0, applications: [], reason },
  };
}

const ownScanOf = ({ rxBytes, txBytes }: OwnScanCounters) => ({
  inbound_bps: (rxBytes * 8) / 60,
  outbound_bps: (txBytes * 8) / 60,
});

const droppedRates = ({ rxBytes, txBytes, rxPackets, txPackets }: DroppedCounters) => ({
  ...{ inbound_bps: (rxBytes * 8) / 60, outbound_bps: (txBytes * 8) / 60 },
  ...{ inbound_pps: rxPackets / 60, outbound_pps: txPackets / 60 },
});

const rateOf = (amount: number | null | undefined, times: number) =>
  amount === null || amount === undefined ? null : (amount * times) / 60;

/**
 * At most 20 identities of name, transport and port: those that sent first, then by bytes; the rest is left out
 * without an aggregate. What only a remote address names never leaves the monitor (NET-2.4.4).
 */
export function listIdentities(rows: readonly AddressApplication[]): TelemetryApplication[] {
  const identities = new Map<string, Required<TelemetryApplication>>();
  for (const row of rows) {
    if (!row.isAttributed) continue;
    const transport = transportName(row.protocol);
    const name = row.name.slice(0, nameLengthMax);
    const key = JSON.stringify([name, transport, row.serverPort]);
    const identity = identities.get(key);
    if (identity) addBytes(identity, row);
    else {
      identities.set(key, {
        name,
        inbound_bytes: row.inboundBytes,
        outbound_bytes: sentBytes(row),
        transport,
        server_port: row.serverPort,
      });
    }
  }
  return [...identities.values()].sort(compareUse).slice(0, identitiesMax);
}

/** For receivers without identities: names only; the top 19 and Other where there are more than 20. */
export function listNames(rows: readonly AddressApplication[]): TelemetryApplication[] {
  const names = new Map<string, TelemetryApplication>();
  for (const row of rows) {
    if (!row.isAttributed) continue;
    const name = row.name.slice(0, nameLengthMax);
    const entry = names.get(name);
    if (entry) addBytes(entry, row);
    else names.set(name, { name, inbound_bytes: row.inboundBytes, outbound_bytes: sentBytes(row) });
  }
  const sorted = [...names.values()].sort(compareUse);
  if (sorted.length <= identitiesMax) return sorted;
  const other = { name: 'Other', inbound_bytes: 0, outbound_bytes: 0 };
  for (const entry of sorted.slice(identitiesMax - 1)) {
    other.inbound_bytes += entry.inbound_bytes;
    other.outbound_bytes += entry.outbound_bytes;
  }
  return [...sorted.slice(0, identitiesMax - 1), other];
}

function addBytes(entry: TelemetryApplication, row: AddressApplication): void {
  entry.inbound_bytes += row.inboundBytes;
  entry.outbound_bytes += sentBytes(row);
}

/**
 * The receiver takes outbound bytes for an application's sign of life. Resets and other refusals of a scan are bytes of
 * the address, which its totals have, but not of an application (NET-2.4.4).
 */
function sentBytes(row: AddressApplication): number {
  return row.lastSentMs === null ? 0 : row.outboundBytes;
}

/** Outbound evidence first, then bytes; names and ports break ties, so that a replay sends the same rows. */
function compareUse(a: TelemetryApplication, b: TelemetryApplication): number {
  const hasSent = Number(b.outbound_bytes > 0) - Number(a.outbound_bytes > 0);
  if (hasSent !== 0) return hasSent;
  const bytes = b.inbound_bytes + b.outbound_bytes - (a.inbound_bytes + a.outbound_bytes);
  if (bytes !== 0) return bytes;
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  const transport = (a.transport ?? '').localeCompare(b.transport ?? '');
  return transport !== 0 ? transport : (a.server_port ?? -1) - (b.server_port ?? -1);
}
