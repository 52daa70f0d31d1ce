import { parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { parseQuestion, type Question } from './question.ts';
import * as store from './store.ts';

/** What fits, by kind; each list is cut at the limit. */
export interface Found {
  question: Question;
  addresses: store.AddressHit[];
  /** Sites whose local prefixes hold the address that was asked for, whoever owns it. */
  localSites: store.SiteHit[];
  devices: store.DeviceHit[];
  machines: store.MachineHit[];
  applications: store.ApplicationHit[];
  sensors: store.SensorHit[];
  sites: store.SiteHit[];
  /** True where a list was cut. */
  hasMore: boolean;
}

/** All kinds at once; null for a text that asks for nothing. */
export async function search(
  db: Queryable,
  sites: readonly { id: number; name: string; localCidrs: readonly string[] }[],
  typed: string,
  limit: number,
): Promise<Found | null> {
  const question = parseQuestion(typed);
  if (!question) return null;
  const { address, range, mac, id, text, words, names } = question;
  const all = limit + 1;
  const isAddress = address !== null;
  const [addresses, byMac, byName, machines, applications, sensors, found] = await Promise.all([
    isAddress
      ? store.findAddresses(db, address, address, all)
      : range
        ? store.findAddresses(db, range.first, range.last, all)
        : [],
    mac ? store.findDevicesByMac(db, mac, all) : [],
    isAddress ? [] : store.findDevicesByName(db, words, all),
    isAddress ? [] : store.findMachines(db, { id, words }, all),
    // An address may be the name of what has no better one.
    store.findApplications(
      db,
      { names: isAddress ? [address] : names, words: isAddress ? [address] : words },
      all,
    ),
    store.findSensors(db, text, all),
    store.findSites(db, text, all),
  ]);
  const known = new Set(byMac.map((device) => device.deviceId));
  const devices = [...byMac, ...byName.filter((device) => !known.has(device.deviceId))];
  const lists = { addresses, devices, machines, applications, sensors, sites: found };
  const cut = Object.entries(lists).map(([kind, list]) => [kind, (list as unknown[]).slice(0, limit)]);
  return {
    question,
    ...(Object.fromEntries(cut) as typeof lists),
    localSites: isAddress ? localSites(sites, address, limit) : [],
    hasMore: Object.values(lists).some((list) => list.length > limit),
  };
}

function localSites(
  sites: readonly { id: number; name: string; localCidrs: readonly string[] }[],
  address: string,
  limit: number,
): store.SiteHit[] {
  const bytes = parseAddress(address)!;
  return sites
    .filter((site) =>
      site.localCidrs.some((cidr) => {
        const prefix = parsePrefix(cidr);
        return prefix !== null && prefixContains(prefix, bytes);
      }),
    )
    .slice(0, limit)
    .map((site) => ({ siteId: site.id, siteName: site.name }));
}
