/** What protects an address: its thresholds with the levels that they come from, and whether sensors watch it at all. */
import { parseAddress, parsePrefix, prefixContains, prefixesOverlap } from '#common/ip/index.ts';
import type { ThresholdSet } from '#contracts/sensor-api/detection.ts';
import {
  findServersOfAddress,
  listAddressesOfServers,
  listProtectedAddresses,
  type ServerName,
} from '#monitor/views/address-store.ts';
import { type AddressEpoch, listEpochsOf } from '#monitor/views/detector-store.ts';
import { type Applying, findApplying, indexGroups, resolveAddress } from './compile-plan.ts';
import type { ProtectionDeps } from './index.ts';
import { requireAddress } from './prefixes.ts';
import type { Settings } from './settings.ts';
import { readSettings } from './store.ts';
import { describeOddities, type ResolvedSet, resolveSite, valuesOf } from './thresholds.ts';

export interface AddressProtection {
  /** Canonical. */
  address: string;
  settings: Settings;
  applying: Applying;
  resolved: ResolvedSet;
  thresholds: ThresholdSet;
  /** Servers that have the address now; usually one. */
  servers: ServerName[];
  /** Why sensors watch it: as the address of a server, by an additional prefix, or not at all. */
  protectedBy: { kind: 'target' } | { kind: 'additional'; cidr: string } | { kind: 'nothing' };
  oddities: string[];
  /** Of the sensors that say that they protect it now. */
  epochs: AddressEpoch[];
}

/** Throws `protection.invalid` for a text that is no address. */
export async function explainAddress(
  deps: ProtectionDeps,
  siteId: number,
  typed: string,
): Promise<AddressProtection> {
  const address = requireAddress(typed);
  const clusterIds = await clustersOf(deps, siteId);
  const [settings, servers, targets, epochs] = await Promise.all([
    readSettings(deps.db(), siteId),
    findServersOfAddress(deps.db(), clusterIds, address),
    listProtectedAddresses(deps.db(), clusterIds, null),
    listEpochsOf(deps.db(), siteId, address),
  ]);
  const applying = findApplying(indexGroups(settings.groups), settings.servers, address, servers);
  const resolved = resolveAddress(settings, applying);
  const thresholds = valuesOf(resolved);
  const bytes = parseAddress(address)!;
  const cidr = settings.site.additionalCidrs.find((one) => prefixContains(parsePrefix(one)!, bytes));
  return {
    address,
    settings,
    applying,
    resolved,
    thresholds,
    servers,
    protectedBy: targets.includes(address)
      ? { kind: 'target' }
      : cidr === undefined
        ? { kind: 'nothing' }
        : { kind: 'additional', cidr },
    oddities: describeOddities(thresholds),
    epochs,
  };
}

export async function clustersOf(deps: Pick<ProtectionDeps, 'sites'>, siteId: number): Promise<number[]> {
  const mapped = (await deps.sites.listClusters()).filter((mapping) => mapping.siteId === siteId);
  return mapped.map(({ clusterId }) => clusterId);
}

/** A setting that has less effect than it seems, with the group or server that it is about. */
export interface Warning {
  /** Null: the site. */
  groupId: number | null;
  text: string;
}

/** More addresses than a sensor has counters for. */
const wideBits = 12;

export interface SiteProtection {
  settings: Settings;
  /** Addresses of servers of the site. */
  targets: number;
  warnings: Warning[];
}

export async function describeSite(
  deps: ProtectionDeps,
  siteId: number,
  localCidrs: readonly string[],
): Promise<SiteProtection> {
  const [settings, targets] = await Promise.all([
    readSettings(deps.db(), siteId),
    listProtectedAddresses(deps.db(), await clustersOf(deps, siteId), null),
  ]);
  const thresholds = valuesOf(resolveSite(settings.site.thresholds));
  const warnings = describeOddities(thresholds).map((text): Warning => ({ groupId: null, text }));
  warnings.push(...cidrWarnings(settings, localCidrs), ...groupWarnings(settings, targets));
  return { settings, targets: targets.length, warnings };
}

function cidrWarnings({ site }: Settings, localCidrs: readonly string[]): Warning[] {
  const local = localCidrs.map((cidr) => parsePrefix(cidr)!);
  return site.additionalCidrs.flatMap((cidr): Warning[] => {
    const prefix = parsePrefix(cidr)!;
    const found: Warning[] = [];
    if (!local.some((one) => prefixesOverlap(one, prefix)))
      found.push({
        groupId: null,
        text: `${cidr} is outside the local prefixes of this site. Attacks on it are found only if its packets pass an interface that a sensor of this site captures.`,
      });
    if (prefix.bytes.length * 8 - prefix.length > wideBits)
      found.push({
        groupId: null,
        text: `${cidr} has more addresses than a sensor counts one by one (4,096). Further ones are judged by their /24 or /48 only.`,
      });
    return found;
  });
}

/** A group of which no prefix contains a protected address does nothing yet. */
function groupWarnings({ site, groups }: Settings, targets: readonly string[]): Warning[] {
  const bytes = targets.map((target) => parseAddress(target)!);
  const additional = site.additionalCidrs.map((cidr) => parsePrefix(cidr)!);
  return groups.flatMap((group): Warning[] => {
    const idle = group.prefixes.filter((text) => {
      const prefix = parsePrefix(text)!;
      return (
        !additional.some((cidr) => prefixesOverlap(cidr, prefix)) &&
        !bytes.some((address) => prefixContains(prefix, address))
      );
    });
    if (idle.length === 0) return [];
    const names = `${idle.slice(0, 3).join(', ')}${idle.length > 3 ? ` and ${idle.length - 3} more` : ''}`;
    const text = `No protected address of this site is in ${names} now, so these prefixes of "${group.name}" have no effect. They take effect when a server gets such an address, or when you add them to the additional prefixes.`;
    return [{ groupId: group.id, text }];
  });
}

/** A server with its addresses, for its page. */
export async function listAddressesOf(
  deps: Pick<ProtectionDeps, 'db'>,
  server: { clusterId: number; serverId: number },
): Promise<string[]> {
  return (await listAddressesOfServers(deps.db(), [server])).map((one) => one.address);
}
