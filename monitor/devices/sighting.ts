/** What uploads say of devices, put together for a whole batch. */
import type { HostInventory } from '#contracts/sensor-api/telemetry.ts';
import { type ForeignReason, parseDeviceKey, parseMac } from './device.ts';

/** One upload's part: the minutes of a sensor and what its host's kernel knew of its network. */
export interface SightingUpload {
  siteId: number;
  minutes: readonly SeenMinute[];
  inventory?: Pick<HostInventory, 'interfaces' | 'neighbours'> | undefined;
}

/** A minute of one capture; a `TelemetryMinute` is one. */
export interface SeenMinute {
  /** Start of the minute, seconds since 1970. */
  minute: number;
  hosts: readonly { address: string; deviceKey: string }[];
}

/** A device, and one of its addresses where it showed one. */
export interface Observation {
  siteId: number;
  segment: string;
  mac: string;
  /** Canonical text; null where the device was seen without one. */
  address: string | null;
  /** Starts of minutes, rising, none twice. */
  minutes: number[];
  /** Whether its own kernel's neighbour table says so, and not packets alone, which a router forwards as well. */
  isNeighbour: boolean;
}

/** A MAC that owns no address, as a host told of itself or of its next hops. */
export interface ForeignMac {
  siteId: number;
  mac: string;
  reason: ForeignReason;
}

export interface Observations {
  observations: Observation[];
  foreign: ForeignMac[];
}

/**
 * Puts a batch's sightings together by site, device and address, in one order for every process. A blank or malformed
 * key attaches to no device (NET-2.2.9).
 */
export function collectObservations(batch: readonly SightingUpload[]): Observations {
  const found = new Map<string, Observation>();
  const foreign = new Map<string, ForeignMac>();
  const parsed = new Map<string, ReturnType<typeof parseDeviceKey>>();
  const add = (siteId: number, deviceKey: string, address: string, minute: number, isNeighbour: boolean) => {
    const key = `${siteId} ${deviceKey} ${address}`;
    const known = found.get(key);
    if (known) {
      known.isNeighbour ||= isNeighbour;
      if (known.minutes.at(-1) !== minute) known.minutes.push(minute);
      return;
    }
    let device = parsed.get(deviceKey);
    if (device === undefined) {
      device = parseDeviceKey(deviceKey);
      parsed.set(deviceKey, device);
    }
    if (device)
      found.set(key, { siteId, ...device, address: address || null, minutes: [minute], isNeighbour });
  };
  for (const { siteId, minutes, inventory } of batch) {
    let newest = 0;
    for (const { minute, hosts } of minutes) {
      newest = Math.max(newest, minute);
      for (const { deviceKey, address } of hosts) {
        if (deviceKey !== '') add(siteId, deviceKey, address, minute, false);
      }
    }
    if (!inventory) continue;
    for (const { siteId: site, mac, reason } of foreignMacs(siteId, inventory)) {
      const key = `${site} ${mac}`;
      // A host's own word about itself counts for more than another's about its next hop.
      if (reason === 'sensor' || !foreign.has(key)) foreign.set(key, { siteId: site, mac, reason });
    }
    if (newest === 0) continue;
    for (const { segment, mac, address } of inventory.neighbours)
      add(siteId, `${segment}|${mac}`, address, newest, true);
  }
  return { observations: [...merged(found.values())].sort(inOrder), foreign: [...foreign.values()] };
}

/** Interfaces of the host are its own, but for a macvtap's, which is its guest's. */
function foreignMacs(
  siteId: number,
  inventory: Pick<HostInventory, 'interfaces' | 'neighbours'>,
): ForeignMac[] {
  const list: ForeignMac[] = [];
  for (const { mac: text, kind } of inventory.interfaces) {
    const mac = kind === 'macvtap' ? null : parseMac(text);
    if (mac) list.push({ siteId, mac, reason: 'sensor' });
  }
  for (const { mac: text, isRouter } of inventory.neighbours) {
    const mac = isRouter ? parseMac(text) : null;
    if (mac) list.push({ siteId, mac, reason: 'router' });
  }
  return list;
}

/** Different spellings of one key are one device. */
function merged(list: Iterable<Observation>): Iterable<Observation> {
  const byKey = new Map<string, Observation>();
  for (const one of list) {
    const key = `${one.siteId} ${one.segment}|${one.mac} ${one.address ?? ''}`;
    const known = byKey.get(key);
    if (!known) byKey.set(key, one);
    else {
      known.minutes.push(...one.minutes);
      known.isNeighbour ||= one.isNeighbour;
    }
  }
  for (const one of byKey.values()) {
    if (one.minutes.length > 1) one.minutes = [...new Set(one.minutes)].sort((a, b) => a - b);
  }
  return byKey.values();
}

function inOrder(a: Observation, b: Observation): number {
  return (
    a.siteId - b.siteId ||
    compare(a.segment, b.segment) ||
    compare(a.mac, b.mac) ||
    compare(a.address ?? '', b.address ?? '')
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
