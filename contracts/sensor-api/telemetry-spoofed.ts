/** Spoofed traffic of a capture's minute on the wire. */
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
  };
}

/** The rows of this message. Throws `telemetry.malformed`. */
export function decodeSpoofed({ deviceKey, address, bytes, packets }: SpoofedColumns): SpoofedTraffic[] {
  checkColumns('spoofed traffic', deviceKey.length, [address, bytes, packets]);
  return deviceKey.map((key, i) => ({
    deviceKey: plainText(key, textMax, 'spoofed.device_key'),
    address: address[i] === '' ? '' : canonicalAddressText(address[i]!, 'spoofed.address'),
    bytes: countOf(bytes[i]!, 'spoofed.bytes'),
    packets: countOf(packets[i]!, 'spoofed.packets'),
  }));
}
