/** Names of devices, and properties of their MACs. */
import { isLocallyAdministered } from '#monitor/vendors/index.ts';

/** The MAC of a sensor's host, of a router, or of a host that claims too many addresses (NET-2.2.9). */
export type ForeignReason = 'sensor' | 'router' | 'many_addresses';

/** A device as pages show it. */
export interface Device {
  id: number;
  siteId: number;
  segment: string;
  /** Lower case, with colons. */
  mac: string;
  isRandomized: boolean;
  operatorName: string | null;
  manufacturer: string | null;
  match: DeviceMatch | null;
  firstSeenMs: number;
  lastSeenMs: number;
  archivedAtMs: number | null;
  /** Why it owns no addresses; null for an ordinary device. */
  foreignReason: ForeignReason | null;
}

/** The last match that an import confirmed (NET-2.1.2). */
export interface DeviceMatch {
  clusterId: number;
  serverId: number;
  serverName: string;
  matchedAtMs: number;
  /** When the machine was destroyed; null while it exists. */
  endedAtMs: number | null;
}

export interface DeviceLabel {
  text: string;
  source: 'operator' | 'vm' | 'manufacturer' | 'mac' | 'randomized';
}

/** Name of a device with a randomized MAC and no other name. */
const randomizedLabel = 'Randomized device';

/**
 * Operator name, then VM name, then manufacturer, then MAC (NET-2.1.1); a randomized MAC is never a name (NET-2.1.4).
 *
 * A device that was seen again after its machine was destroyed is another machine, so an ended match names it only
 * while it is archived.
 */
export function labelDevice(
  device: Pick<Device, 'mac' | 'isRandomized' | 'operatorName' | 'manufacturer' | 'match' | 'archivedAtMs'>,
): DeviceLabel {
  if (device.operatorName) return { text: device.operatorName, source: 'operator' };
  const { match } = device;
  if (match && (match.endedAtMs === null || device.archivedAtMs !== null)) {
    return { text: match.serverName, source: 'vm' };
  }
  if (device.isRandomized) return { text: randomizedLabel, source: 'randomized' };
  if (device.manufacturer) return { text: device.manufacturer, source: 'manufacturer' };
  return { text: device.mac, source: 'mac' };
}

/** A unicast MAC in lower case with colons, from any usual notation; null for anything else. */
export function parseMac(text: string): string | null {
  const isUsual =
    /^[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}$/i.test(text) ||
    /^[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}$/i.test(text) ||
    /^[0-9a-f]{12}$/i.test(text);
  if (!isUsual) return null;
  const digits = text.replace(/[:.-]/g, '').toLowerCase();
  // Group addresses and zeros identify no device.
  if (Number.parseInt(digits.slice(0, 2), 16) & 1 || /^0+$/.test(digits)) return null;
  return digits.match(/../g)!.join(':');
}

/** A locally administered MAC was not assigned by a manufacturer (NET-2.1.4). */
export const isRandomizedMac = isLocallyAdministered;

/** Splits a host device key `segment|MAC`; null when blank or malformed, which matches no device (NET-2.2.9). */
export function parseDeviceKey(key: string): { segment: string; mac: string } | null {
  const bar = key.lastIndexOf('|');
  if (bar < 1) return null;
  const mac = parseMac(key.slice(bar + 1));
  const segment = key.slice(0, bar);
  return mac && segment.length <= 128 ? { segment, mac } : null;
}

/** A device's key, as used in facts. */
export function deviceKeyOf(device: { segment: string; mac: string }): string {
  return `${device.segment}|${device.mac}`;
}
