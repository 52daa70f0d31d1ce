/** An interface's totals on the wire, the same in minutes and in live windows. */
import { create } from '@bufbuild/protobuf';
import { isPlausible, looseCount } from './set-aside.ts';
import type { TelemetryTotals } from './telemetry.ts';
import { type InterfaceTotals, InterfaceTotalsSchema } from './telemetry_pb.js';
import { countOf, malformed } from './telemetry-values.ts';

export function encodeTotals(totals: TelemetryTotals): InterfaceTotals {
  return create(InterfaceTotalsSchema, {
    packets: BigInt(totals.packets),
    ipPackets: BigInt(totals.ipPackets),
    ipBytes: BigInt(totals.ipBytes),
    nonIpPackets: BigInt(totals.nonIpPackets),
    parserDropped: BigInt(totals.parserDropped),
    kernelDropped: BigInt(totals.kernelDropped),
    detailTruncated: BigInt(totals.detailTruncated),
    mergedFrames: BigInt(totals.mergedFrames ?? 0),
  });
}

/** The totals, or `telemetry.malformed` where they don't add up. `mergedFrames` is there when it says something. */
export function decodeTotals(wire: InterfaceTotals): TelemetryTotals {
  const totals: TelemetryTotals = {
    packets: countOf(wire.packets, 'totals.packets'),
    ipPackets: countOf(wire.ipPackets, 'totals.ip_packets'),
    ipBytes: countOf(wire.ipBytes, 'totals.ip_bytes'),
    nonIpPackets: countOf(wire.nonIpPackets, 'totals.non_ip_packets'),
    parserDropped: countOf(wire.parserDropped, 'totals.parser_dropped'),
    kernelDropped: countOf(wire.kernelDropped, 'totals.kernel_dropped'),
    detailTruncated: countOf(wire.detailTruncated, 'totals.detail_truncated'),
  };
  if (totals.packets !== totals.ipPackets + totals.nonIpPackets + totals.parserDropped) {
    throw malformed('totals.packets is not ip_packets + non_ip_packets + parser_dropped');
  }
  const mergedFrames = countOf(wire.mergedFrames, 'totals.merged_frames');
  return mergedFrames > 0 ? { ...totals, mergedFrames } : totals;
}

/** True when the totals of this time, or of a minute, are such as a link can carry; both directions are in one counter. */
export function arePlausible(wire: InterfaceTotals, observedMs?: number): boolean {
  const counters = [wire.packets, wire.nonIpPackets, wire.parserDropped, wire.kernelDropped];
  const all = [...counters, wire.detailTruncated, wire.mergedFrames].map(looseCount);
  if (all.some((count) => !Number.isSafeInteger(count))) return false;
  const bytes = looseCount(wire.ipBytes) / 2;
  return isPlausible([bytes, bytes], looseCount(wire.ipPackets), wire.mergedFrames > 0n, observedMs);
}
