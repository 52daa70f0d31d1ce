import { formatAddress, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import { readAddress, readAddressRange } from '#common/ip/typed-address.ts';
import { parseMac } from '#monitor/devices/index.ts';
import * as views from '#monitor/views/search-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

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

// Parses search text: an address in any notation, a MAC, a number, the beginnings of words.

/** Longer texts are truncated; no name is longer. */
export const textMax = 100;
/** Further words are ignored. */
const wordsMax = 6;

interface Question {
  /** The text without surrounding spaces. */
  text: string;
  /** Canonical address, if it is one. */
  address: string | null;
  /** First and last address of a prefix or of an address's beginning. */
  range: { first: string; last: string } | null;
  /** Beginning of a MAC in the stored form, or the whole MAC. */
  mac: string | null;
  /** A number, for ids. */
  id: number | null;
  /** Lower-case beginnings of words; all must match. */
  words: string[];
  /** Parent domains of the text: `www.example.com` also searches `example.com`. */
  names: string[];
}

/** Null for an empty question. */
export function parseQuestion(typed: string): Question | null {
  // Characters that PostgreSQL can not store become spaces.
  const text = typed
    .slice(0, textMax)
    .replace(/\p{Cc}|\p{Cs}/gu, ' ')
    .trim();
  const words = text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .slice(0, wordsMax);
  if (words.length === 0) return null;
  // `2001:db8::` is a valid address too, but here it means a beginning.
  const bytes = text.endsWith('::') ? null : readAddress(text);
  return {
    text,
    address: bytes ? formatAddress(bytes) : null,
    range: bytes ? null : readAddressRange(text),
    mac: macOf(text),
    id: /^(vm[- #]?)?\d{1,15}$/i.test(text) ? Number(text.replace(/\D/g, '')) : null,
    words,
    names: namesOf(text),
  };
}

/** At least two digits, in pairs, in groups of four or without separators, complete or not. */
function macOf(text: string): string | null {
  const whole = parseMac(text);
  if (whole) return whole;
  const isBeginning =
    /^[0-9a-f]{2}([:-][0-9a-f]{2}){0,4}([:-][0-9a-f]?)?$/i.test(text) ||
    /^[0-9a-f]{4}(\.[0-9a-f]{0,4}){1,2}$/i.test(text) ||
    /^[0-9a-f]{4,11}$/i.test(text);
  if (!isBeginning) return null;
  const digits = text.replace(/[:.-]/g, '').toLowerCase();
  return digits.match(/..?/g)!.join(':');
}

function namesOf(text: string): string[] {
  const labels = text
    .toLowerCase()
    .replace(/^[a-z]+:\/\//, '')
    .split(/[/:?#]/)[0]!
    .split('.');
  if (labels.length < 2 || labels.some((label) => !/^[\p{L}\p{N}_-]+$/u.test(label))) return [];
  return labels.slice(0, -1).map((_, index) => labels.slice(index).join('.'));
}
