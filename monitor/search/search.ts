import { parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import * as views from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { parseQuestion, type Question } from './question.ts';

/** Matches by kind; each list is limited. */
export interface Found {
  question: Question;
  addresses: views.AddressHit[];
  /** Sites whose local prefixes contain the address. */
  localSites: views.SiteHit[];
  devices: views.DeviceHit[];
  machines: views.MachineHit[];
  applications: views.ApplicationHit[];
  sensors: views.SensorHit[];
  sites: views.SiteHit[];
  /** True when a list was cut at the limit. */
  hasMore: boolean;
}

/** Searches all kinds; null for an empty question. */
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
      ? views.findAddresses(db, address, address, all)
      : range
        ? views.findAddresses(db, range.first, range.last, all)
        : [],
    mac ? views.findDevicesByMac(db, mac, all) : [],
    isAddress ? [] : views.findDevicesByName(db, words, all),
    isAddress ? [] : views.findMachines(db, { id, words }, all),
    // An address may be the name of an unnamed application.
    views.findApplications(
      db,
      { names: isAddress ? [address] : names, words: isAddress ? [address] : words },
      all,
    ),
    views.findSensors(db, text, all),
    views.findSites(db, text, all),
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
): views.SiteHit[] {
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
