import type { Events } from '#monitor/events/index.ts';
import { checkAddresses, checkMacs } from '#monitor/placements/index.ts';
import type { Vendors } from '#monitor/vendors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { placeMinutes } from './binding.ts';
import {
  collectObservations,
  type ForeignMac,
  listSpoken,
  type Observation,
  type SightingUpload,
} from './sighting.ts';
import * as store from './sightings-store.ts';

interface SightingDeps {
  events: Events;
  vendors: Pick<Vendors, 'findKnown'>;
}

/** More addresses than a customer's host has: a MAC with more of them forwards for others. */
export const addressesOfHostMax = 64;

/**
 * Stores which devices owned which addresses, for uploads of many sensors. Call it once in a transaction, last.
 * Sightings of other nodes' servers make no device and no claim.
 *
 * Sightings may come late and in any order. Without new data it reads once and writes nothing, or the time every five
 * minutes; only new data takes the site's lock.
 */
export async function recordSightings(deps: SightingDeps, trx: Queryable, batch: readonly SightingUpload[]) {
  const spoken = listSpoken(batch);
  const { observations, foreign } = collectObservations(batch, {
    address: await checkAddresses(trx, spoken.addresses),
    mac: await checkMacs(trx, spoken.macs),
  });
  const newForeign = await store.findNewForeign(trx, [...foreign, ...forwarders(observations)]);
  if (observations.length === 0 && newForeign.length === 0) return;
  let needs = await store.findNeeds(trx, observations);
  if (newForeign.length > 0 || needs.some((need) => need.isNews)) {
    const news = needs.filter((need) => need.isNews).map((need) => observations[need.index]!.siteId);
    await store.lockSites(trx, [...new Set([...news, ...newForeign.map((one) => one.siteId)])]);
    const freed = newForeign.length > 0 ? await store.upsertForeign(trx, newForeign) : [];
    // Read again, because other transactions may have written before the lock was taken.
    needs = await store.findNeeds(trx, observations);
    const placed = needs
      .filter((need) => need.isNews)
      .map((need) => ({ ...observations[need.index]!, ...need }));
    const touched = placed.length > 0 ? await placeNews(deps, trx, placed) : [];
    await settleAddresses(deps, trx, [...freed, ...touched]);
  }
  await refresh(trx, observations, needs);
}

type News = Observation & store.Need;

/** MACs with more addresses in one batch than a host has stay foreign. */
function forwarders(observations: readonly Observation[]): ForeignMac[] {
  const counts = new Map<string, { siteId: number; mac: string; addresses: number }>();
  for (const { siteId, segment, mac, address } of observations) {
    if (address === null) continue;
    const key = `${siteId} ${segment}|${mac}`;
    const count = counts.get(key) ?? { siteId, mac, addresses: 0 };
    count.addresses += 1;
    counts.set(key, count);
  }
  const found = new Map<string, ForeignMac>();
  for (const { siteId, mac, addresses } of counts.values()) {
    if (addresses > addressesOfHostMax)
      found.set(`${siteId} ${mac}`, { siteId, mac, reason: 'many_addresses' });
  }
  return [...found.values()];
}

/** Returns the addresses whose owners may have changed. */
async function placeNews(
  deps: SightingDeps,
  trx: Queryable,
  news: readonly News[],
): Promise<store.SiteAddress[]> {
  const devices = await store.upsertDevices(trx, await toDevices(deps, trx, news));
  const byKey = new Map(devices.map((device) => [deviceKeyOf(device), device]));
  const claims = news.flatMap((one) =>
    one.address !== null && one.mayOwn
      ? {
          address: one.address,
          segment: one.addressSegment,
          minutes: one.minutes,
          device: byKey.get(deviceKeyOf(one))!,
        }
      : [],
  );
  if (claims.length === 0) return [];
  await placeClaims(trx, claims);
  const addresses = claims.map(({ device, address, segment }) => ({
    siteId: device.siteId,
    address,
    segment,
  }));
  const owners = claims.map(({ device }) => device);
  return [...addresses, ...(await store.excludeCrowded(trx, owners, addressesOfHostMax))];
}

async function toDevices(
  deps: SightingDeps,
  trx: Queryable,
  news: readonly News[],
): Promise<store.DeviceSighting[]> {
  const unknown = news.filter((one) => one.deviceId === null).map((one) => one.mac);
  const makers = await deps.vendors.findKnown(trx, [...new Set(unknown)]);
  const devices = new Map<string, store.DeviceSighting>();
  for (const { siteId, segment, mac, minutes } of news) {
    const first = minutes[0]!;
    const last = minutes.at(-1)!;
    const key = deviceKeyOf({ siteId, segment, mac });
    const known = devices.get(key);
    if (known) {
      known.firstMinute = Math.min(known.firstMinute, first);
      known.lastMinute = Math.max(known.lastMinute, last);
      continue;
    }
    const manufacturer = makers.get(mac) ?? null;
    devices.set(key, { siteId, segment, mac, manufacturer, firstMinute: first, lastMinute: last });
  }
  return [...devices.values()];
}

interface Claim {
  device: store.SeenDevice;
  address: string;
  segment: string;
  minutes: number[];
}

async function placeClaims(trx: Queryable, claims: readonly Claim[]): Promise<void> {
  const pairs = claims.map(({ device, address }) => ({ deviceId: device.id, address }));
  const stored = Map.groupBy(
    await store.listBindingsOf(trx, pairs),
    (binding) => `${binding.deviceId} ${binding.address}`,
  );
  const updated: store.NewBinding[] = [];
  const inserted: store.NewBinding[] = [];
  const removed: number[] = [];
  for (const { device, address, segment, minutes } of claims) {
    const placed = placeMinutes(stored.get(`${device.id} ${address}`) ?? [], minutes, device.releasedMs);
    removed.push(...placed.removed);
    for (const binding of placed.written) {
      const row = {
        ...binding,
        siteId: device.siteId,
        deviceId: device.id,
        mac: device.mac,
        address,
        segment,
      };
      (binding.id === null ? inserted : updated).push(row);
    }
  }
  await store.deleteBindings(trx, removed);
  await store.updateBindings(trx, updated);
  await store.insertBindings(trx, inserted);
}

/** Ends claims of owners without recent sightings, and opens and resolves conflicts. */
async function settleAddresses(
  deps: Pick<SightingDeps, 'events'>,
  trx: Queryable,
  addresses: readonly store.SiteAddress[],
): Promise<void> {
  if (addresses.length === 0) return;
  await store.endSuperseded(trx, addresses);
  for (const { siteId, macs, ...place } of await store.openConflicts(trx, addresses)) {
    await deps.events.record(trx, {
      kind: 'ip_conflict_opened',
      siteId,
      details: { ...placeDetails(place), mac_addresses: macs },
    });
  }
  for (const { siteId, macs, ...place } of await store.resolveConflicts(trx, addresses)) {
    await deps.events.record(trx, {
      kind: 'ip_conflict_resolved',
      siteId,
      details: { ...placeDetails(place), mac_addresses: macs, reason: 'one_owner_left' },
    });
  }
}

/** The place, for events. */
export function placeDetails({ address, segment }: Pick<store.SiteAddress, 'address' | 'segment'>) {
  return segment === '' ? { address } : { address, segment };
}

async function refresh(trx: Queryable, observations: readonly Observation[], needs: readonly store.Need[]) {
  const devices = new Map<number, number>();
  const bindings = new Map<number, number>();
  for (const { index, deviceId, bindingId, isNews, mayOwn } of needs) {
    if (isNews || deviceId === null) continue;
    const last = observations[index]!.minutes.at(-1)!;
    devices.set(deviceId, Math.max(devices.get(deviceId) ?? 0, last));
    if (bindingId !== null && mayOwn) bindings.set(bindingId, last);
  }
  await store.refreshTimes(trx, 'devices', devices);
  await store.refreshTimes(trx, 'ip_bindings', bindings);
}

function deviceKeyOf(device: { siteId: number; segment: string; mac: string }): string {
  return `${device.siteId} ${device.segment}|${device.mac}`;
}
