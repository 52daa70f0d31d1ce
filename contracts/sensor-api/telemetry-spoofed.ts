/** Spoofed traffic of a capture's minute on the wire. */
import { type GuardReason, guardReasons } from '../guard-reasons.ts';
import type { SpoofedTraffic } from './telemetry.ts';
import type { SpoofedColumns } from './telemetry_pb.js';
import {
  canonicalAddressText,
  checkColumns,
  cleanText,
  countOf,
  plainText,
  textMax,
} from './telemetry-values.ts';

export function encodeSpoofed(rows: readonly SpoofedTraffic[]) {
  return {
    deviceKey: rows.map((row) => cleanText(row.deviceKey)),
    address: rows.map((row) => row.address),
    bytes: rows.map((row) => BigInt(row.bytes)),
    packets: rows.map((row) => BigInt(row.packets)),
    reason: rows.some((row) => row.reason) ? rows.map((row) => row.reason ?? 'address') : [],
  };
}

/** The rows of this message, without those whose reason is unknown here. Throws `telemetry.malformed`. */
export function decodeSpoofed(columns: SpoofedColumns): SpoofedTraffic[] {
  const { deviceKey, address, bytes, packets, reason } = columns;
  const reasons = reason.length > 0 ? [reason] : [];
  checkColumns('spoofed traffic', deviceKey.length, [address, bytes, packets, ...reasons]);
  return deviceKey.flatMap((key, i) => {
    const name = reason[i] ?? 'address';
    const row: SpoofedTraffic = {
      deviceKey: plainText(key, textMax, 'spoofed.device_key'),
      address: address[i] === '' ? '' : canonicalAddressText(address[i]!, 'spoofed.address'),
      bytes: countOf(bytes[i]!, 'spoofed.bytes'),
      packets: countOf(packets[i]!, 'spoofed.packets'),
      ...(name !== 'address' && { reason: name as GuardReason }),
    };
    return (guardReasons as string[]).includes(name) ? [row] : [];
  });
}
