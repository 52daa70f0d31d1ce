/** Collects the sightings of devices in a batch of uploads. */
import { isGloballyUnique, parseAddress } from '#common/ip/index.ts';
import type { HostInventory } from '#contracts/sensor-api/telemetry.ts';
import type { ForeignCheck, Spoken } from '#monitor/placements/index.ts';
import { type ForeignReason, parseDeviceKey, parseMac } from './device.ts';

/** One upload's part: the minutes of a sensor and the network tables of its host. */
export interface SightingUpload {
  siteId: number;
  /** The reporting sensor. Data without a sensor comes from the monitor itself and is never foreign. */
  sensorId?: number;
  minutes: readonly SeenMinute[];
  inventory?: Pick<HostInventory, 'interfaces' | 'neighbours'> | undefined;
}

/** A minute of one capture; a `TelemetryMinute` fits. */
export interface SeenMinute {
  /** Start of the minute, seconds since 1970. */
  minute: number;
  hosts: readonly { address: string; deviceKey: string }[];
}

/** A device, and one of its addresses if any was seen. */
export interface Observation {
  siteId: number;
  segment: string;
  mac: string;
  /** Canonical text; null when the device was seen without an address. */
  address: string | null;
  /** The scope of the address: the device's segment; blank for a globally unique one. */
  addressSegment: string;
  /** Starts of minutes, ascending and distinct. */
  minutes: number[];
  /** True when the host's own neighbour table has it. Packets alone could have been forwarded by a router. */
  isNeighbour: boolean;
}

/** A MAC that owns no address: of a host itself or of its next hops. */
export interface ForeignMac {
  siteId: number;
  mac: string;
  reason: ForeignReason;
}

export interface Observations {
  observations: Observation[];
  foreign: ForeignMac[];
}

/** The addresses and MACs in the reports, each once per sensor. */
export function listSpoken(batch: readonly SightingUpload[]): Record<'addresses' | 'macs', Spoken[]> {
  const addresses = new Map<number, Set<string>>();
  const macs = new Map<number, Set<string>>();
  // The same key occurs in every minute and capture.
  const parsed = new Map<string, string | undefined>();
  const macOf = (deviceKey: string) => {
    if (!parsed.has(deviceKey)) parsed.set(deviceKey, parseDeviceKey(deviceKey)?.mac);
    return parsed.get(deviceKey);
  };
  const note = (
    spoken: Map<number, Set<string>>,
    sensorId: number | undefined,
    subject: string | null | undefined,
  ) => {
    if (!subject || sensorId === undefined) return;
    const known = spoken.get(sensorId);
    if (known) known.add(subject);
    else spoken.set(sensorId, new Set([subject]));
  };
  for (const { sensorId, minutes, inventory } of batch) {
    for (const { hosts } of minutes) {
      for (const { deviceKey, address } of hosts) {
        if (deviceKey === '') continue;
        note(addresses, sensorId, address);
        note(macs, sensorId, macOf(deviceKey));
      }
    }
    for (const { mac, address } of inventory?.neighbours ?? []) {
      note(addresses, sensorId, address);
      note(macs, sensorId, parseMac(mac));
    }
    for (const { mac } of inventory?.interfaces ?? []) note(macs, sensorId, parseMac(mac));
  }
  const listed = (spoken: Map<number, Set<string>>) =>
    [...spoken].flatMap(([sensorId, subjects]) => [...subjects].map((subject) => ({ sensorId, subject })));
  return { addresses: listed(addresses), macs: listed(macs) };
}

/** Checks whether a reported address or MAC belongs to a server of another node. */
export interface ForeignChecks {
  address: ForeignCheck;
  mac: ForeignCheck;
}

/**
 * Groups a batch's sightings by site, device and address, in one order for every process. A blank or malformed key
 * matches no device (NET-2.2.9); sightings of other nodes' servers are left out.
 */
export function collectObservations(
  batch: readonly SightingUpload[],
  isForeign: ForeignChecks,
): Observations {
  const found = new Map<string, Observation>();
  const foreign = new Map<string, ForeignMac>();
  const parsed = new Map<string, ReturnType<typeof parseDeviceKey>>();
  const add = (
    { siteId, sensorId }: SightingUpload,
    deviceKey: string,
    address: string,
    minute: number,
    isNeighbour: boolean,
  ) => {
    let device = parsed.get(deviceKey);
    if (device === undefined) {
      device = parseDeviceKey(deviceKey);
      parsed.set(deviceKey, device);
    }
    if (!device) return;
    if (sensorId !== undefined) {
      if (isForeign.mac(sensorId, device.mac, minute)) return;
      if (address !== '' && isForeign.address(sensorId, address, minute, [device.segment])) return;
    }
    const key = `${siteId} ${deviceKey} ${address}`;
    const known = found.get(key);
    if (known) {
      known.isNeighbour ||= isNeighbour;
      if (known.minutes.at(-1) !== minute) known.minutes.push(minute);
      return;
    }
    found.set(key, {
      siteId,
      ...device,
      address: address || null,
      addressSegment: addressSegmentOf(device.segment, address),
      minutes: [minute],
      isNeighbour,
    });
  };
  for (const upload of batch) {
    const { siteId, sensorId, minutes, inventory } = upload;
    let newest = 0;
    for (const { minute, hosts } of minutes) {
      newest = Math.max(newest, minute);
      for (const { deviceKey, address } of hosts) {
        if (deviceKey !== '') add(upload, deviceKey, address, minute, false);
      }
    }
    if (!inventory) continue;
    for (const { siteId: site, mac, reason } of foreignMacs(siteId, inventory)) {
      const key = `${site} ${mac}`;
      // Otherwise a host could claim another node's server as its own and take its addresses.
      if (sensorId !== undefined && isForeign.mac(sensorId, mac, newest || Number.MAX_VALUE)) continue;
      // A host's report about itself outranks another host's report about its next hop.
      if (reason === 'sensor' || !foreign.has(key)) foreign.set(key, { siteId: site, mac, reason });
    }
    if (newest === 0) continue;
    for (const { segment, mac, address } of inventory.neighbours)
      add(upload, `${segment}|${mac}`, address, newest, true);
  }
  return { observations: [...merged(found.values())].sort(inOrder), foreign: [...foreign.values()] };
}

/** Two networks may use the same private address; a globally unique address has one owner on all segments. */
function addressSegmentOf(segment: string, address: string): string {
  const bytes = parseAddress(address);
  return bytes === null || isGloballyUnique(bytes) ? '' : segment;
}

/** The MACs of a host's interfaces are its own, except a macvtap interface's, which is its guest's. */
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

/** Different notations of one key are one device. */
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
