/**
 * An interface's totals on the wire, the same in minutes and in live windows.
 *
 * The counters are the fields of `InterfaceTotals` in telemetry.proto: one that is added there is encoded and decoded
 * without a change of this file.
 */
import { create } from '@bufbuild/protobuf';
import { isPlausible, looseCount } from './set-aside.ts';
import type { TelemetryTotals } from './telemetry.ts';
import { type InterfaceTotals, InterfaceTotalsSchema } from './telemetry_pb.js';
import { countOf, malformed } from './telemetry-values.ts';

const counters = InterfaceTotalsSchema.fields.map(({ name, localName }) => ({
  wireName: `totals.${name}`,
  name: localName as keyof TelemetryTotals,
}));

/** Every counter at zero. */
export function zeroTotals(): Required<TelemetryTotals> {
  return Object.fromEntries(counters.map(({ name }) => [name, 0])) as Record<keyof TelemetryTotals, number>;
}

export function encodeTotals(totals: TelemetryTotals): InterfaceTotals {
  const wire = counters.map(({ name }) => [name, BigInt(totals[name] ?? 0)]);
  return create(InterfaceTotalsSchema, Object.fromEntries(wire));
}

/** The totals, or `telemetry.malformed` where they don't add up. Later counters are there when they say something. */
export function decodeTotals(wire: InterfaceTotals): TelemetryTotals {
  const totals: TelemetryTotals = {
    packets: 0,
    ipPackets: 0,
    ipBytes: 0,
    nonIpPackets: 0,
    parserDropped: 0,
    kernelDropped: 0,
    detailTruncated: 0,
  };
  for (const { name, wireName } of counters) {
    const count = countOf(wire[name], wireName);
    if (count > 0) totals[name] = count;
  }
  if (totals.packets !== totals.ipPackets + totals.nonIpPackets + totals.parserDropped) {
    throw malformed('totals.packets is not ip_packets + non_ip_packets + parser_dropped');
  }
  return totals;
}

/** True when the totals of this time, or of a minute, are such as a link can carry; both directions are in one counter. */
export function arePlausible(wire: InterfaceTotals, observedMs?: number): boolean {
  const counts = counters.filter(({ name }) => name !== 'ipBytes').map(({ name }) => looseCount(wire[name]));
  if (counts.some((count) => !Number.isSafeInteger(count))) return false;
  const bytes = looseCount(wire.ipBytes) / 2;
  return isPlausible([bytes, bytes], looseCount(wire.ipPackets), wire.mergedFrames > 0n, observedMs);
}
