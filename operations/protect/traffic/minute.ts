/** What a minute of an allocation is. */
import type { TelemetryApplication, TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import type { MinuteReason } from '#contracts/minute-reasons.ts';

/** What is known of a minute, or of a step of several; null: unknown. */
export interface MinuteValues {
  inboundBytes: number | null;
  outboundBytes: number | null;
  /** The part of the bytes that the provider's own port scans caused; null where the bytes are unknown. */
  ownScanInboundBytes: number | null;
  ownScanOutboundBytes: number | null;
  /** What filters at hypervisors dropped beside these bytes; null where the bytes are unknown. */
  droppedInboundBytes: number | null;
  droppedOutboundBytes: number | null;
  droppedInboundPackets: number | null;
  droppedOutboundPackets: number | null;
  inboundBps: number | null;
  outboundBps: number | null;
  pps: number | null;
  expectedBps: number | null;
  expectedPps: number | null;
  ddosBps: number | null;
  ddosPps: number | null;
  coverage: number | null;
  /** Why a value is unknown; of several reasons the first by name. */
  reason: MinuteReason | null;
}

/** A point as it is stored: whole minute, rates as sent, bytes as whole numbers. */
export interface StoredMinute extends MinuteValues {
  minuteMs: number;
  applications: StoredApplication[];
}

export interface StoredApplication {
  name: string;
  transport: string | null;
  server_port: number | null;
  inbound_bytes: number;
  outbound_bytes: number;
}

/** Of one minute. */
export const minuteMs = 60_000;

/** Delivery takes a minute or two after the minute's end; later than this something is wrong. */
const staleMs = 5 * minuteMs;

/** Whether the newest minute that was observed says nothing about now. */
export function isStale(latestMinuteMs: number, nowMs: number): boolean {
  return nowMs - (latestMinuteMs + minuteMs) > staleMs;
}

/** Bytes of a minute out of its rate: the inverse of `bytes * 8 / 60`, which is exact below 2^50 bytes. */
export function bytesOfRate(bitsPerSecond: number): number;
export function bytesOfRate(bitsPerSecond: number | null): number | null;
export function bytesOfRate(bitsPerSecond: number | null): number | null {
  return bitsPerSecond === null ? null : Math.round((bitsPerSecond * 60) / 8);
}

export function toStoredMinute(point: TelemetryPoint): StoredMinute {
  return {
    minuteMs: Date.parse(point.timestamp),
    inboundBytes: bytesOfRate(point.inbound_bps),
    outboundBytes: bytesOfRate(point.outbound_bps),
    inboundBps: point.inbound_bps,
    outboundBps: point.outbound_bps,
    ownScanInboundBytes: bytesOfRate(point.own_scan?.inbound_bps ?? 0),
    ownScanOutboundBytes: bytesOfRate(point.own_scan?.outbound_bps ?? 0),
    droppedInboundBytes: bytesOfRate(point.dropped?.inbound_bps ?? 0),
    droppedOutboundBytes: bytesOfRate(point.dropped?.outbound_bps ?? 0),
    droppedInboundPackets: Math.round((point.dropped?.inbound_pps ?? 0) * 60),
    droppedOutboundPackets: Math.round((point.dropped?.outbound_pps ?? 0) * 60),
    pps: point.pps,
    expectedBps: point.expected_bps,
    expectedPps: point.expected_pps,
    ddosBps: point.ddos_bps,
    ddosPps: point.ddos_pps,
    coverage: point.coverage,
    reason: point.reason ?? null,
    applications: point.applications.map(toStoredApplication),
  };
}

function toStoredApplication(application: TelemetryApplication): StoredApplication {
  return {
    name: application.name,
    transport: application.transport ?? null,
    server_port: application.server_port ?? null,
    inbound_bytes: application.inbound_bytes,
    outbound_bytes: application.outbound_bytes,
  };
}
