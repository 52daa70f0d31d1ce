/**
 * Which network an address is of. A globally unique address is one address wherever it is seen. A private, shared,
 * link-local or unique local one is known by its segment: the one on which a bridge saw its owner.
 */
import { isGloballyUnique, parseAddress } from '#common/ip/index.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';

/** True for an address that is known by itself. */
export function isUnique(address: string): boolean {
  const bytes = parseAddress(address);
  return bytes === null || isGloballyUnique(bytes);
}

/** The segment of a device key, blank for a blank key. */
function segmentOf(deviceKey: string): string {
  return deviceKey.slice(0, Math.max(0, deviceKey.lastIndexOf('|')));
}

/** Says of the local addresses of a capture's minute on which segment they are; blank where that does not matter or is not known. */
export function segmentsOf(
  minute: Pick<TelemetryMinute, 'role' | 'hosts'>,
): (address: string | null) => string {
  const segments = new Map<string, string>();
  // An uplink carries many networks, and a key of it names the uplink.
  if (minute.role === 'bridge') {
    for (const { address, deviceKey } of minute.hosts)
      if (deviceKey !== '' && !isUnique(address)) segments.set(address, segmentOf(deviceKey));
  }
  if (segments.size === 0) return () => '';
  return (address) => (address === null ? '' : (segments.get(address) ?? ''));
}
