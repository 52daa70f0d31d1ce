import type { Events } from '#monitor/events/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { parseDeviceKey } from './device.ts';
import { findManufacturer } from './manufacturer.ts';
import { type DeviceSighting, openConflicts, upsertClaims, upsertDevices } from './store.ts';

/** One host row of a minute, as a sensor reported it. */
export interface HostSighting {
  /** `segment|MAC`; blank when unknown or contradictory. */
  deviceKey: string;
  /** Canonical text; blank where a device was seen without one. */
  address: string;
  /** Start of the minute, seconds since 1970. */
  minute: number;
}

interface Span {
  firstMinute: number;
  lastMinute: number;
}

interface ClaimSpan extends Span {
  key: string;
  address: string;
}

/**
 * Notes which devices owned which addresses in these minutes; call it in the transaction that adds the minutes.
 *
 * Sightings may come late and in any order. A blank or malformed key attaches to no device (NET-2.2.9).
 */
export async function recordSightings(
  deps: { events: Events },
  trx: Queryable,
  siteId: number,
  hosts: readonly HostSighting[],
): Promise<void> {
  const devices = new Map<string, DeviceSighting>();
  const claims = new Map<string, ClaimSpan>();
  for (const { deviceKey, address, minute } of hosts) {
    const parsed = parseDeviceKey(deviceKey);
    if (!parsed) continue;
    const key = `${parsed.segment}|${parsed.mac}`;
    widen<DeviceSighting>(devices, key, minute, (span) => ({ ...parsed, manufacturer: null, ...span }));
    if (address !== '')
      widen<ClaimSpan>(claims, `${key}|${address}`, minute, (span) => ({ key, address, ...span }));
  }
  if (devices.size === 0) return;
  for (const device of devices.values()) device.manufacturer = await findManufacturer(device.mac);
  const ids = await upsertDevices(trx, siteId, [...devices.values()]);
  const owned = [...claims.values()].map(({ key, ...claim }) => ({ ...claim, deviceId: ids.get(key)! }));
  await upsertClaims(trx, siteId, owned);
  const addresses = [...new Set(owned.map((claim) => claim.address))];
  for (const conflict of await openConflicts(trx, siteId, addresses)) {
    await deps.events.record(trx, {
      kind: 'ip_conflict_opened',
      siteId,
      details: { address: conflict.address, mac_addresses: conflict.macs },
    });
  }
}

function widen<T extends Span>(
  spans: Map<string, T>,
  key: string,
  minute: number,
  create: (span: Span) => T,
): void {
  const span = spans.get(key);
  if (!span) {
    spans.set(key, create({ firstMinute: minute, lastMinute: minute }));
    return;
  }
  span.firstMinute = Math.min(span.firstMinute, minute);
  span.lastMinute = Math.max(span.lastMinute, minute);
}
