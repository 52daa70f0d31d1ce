/**
 * The thresholds of a site as its sensors receive them: every group whole, and each prefix in one group.
 *
 * A sensor takes the values of the longest prefix and nothing else, so the levels are put together in advance. Prefixes
 * with the same values share a group of the plan. Pure.
 */
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import { type PlanDetection, type ThresholdSet, thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import type { ServerAddress } from '#monitor/views/address-store.ts';
import { hostPrefix, PrefixMap } from './prefixes.ts';
import type { HostGroup, ServerSettings, Settings } from './settings.ts';
import {
  type Level,
  type ResolvedSet,
  resolveLevels,
  type ThresholdChoices,
  valuesOf,
} from './thresholds.ts';

export type PlanGroup = PlanDetection['groups'][number];

/** The contract's bound of one group. */
const groupPrefixesMax = 4096;

interface Chosen {
  level: Level;
  choices: ThresholdChoices;
}

/** What applies to one address, the nearest level last. */
export interface Applying {
  group: HostGroup | null;
  /** The prefix of the group that counts. */
  prefix: string | null;
  server: ServerSettings | null;
  address: ServerSettings | null;
}

/** The groups of a site by their prefixes. */
export function indexGroups(groups: readonly HostGroup[]): PrefixMap<HostGroup> {
  const map = new PrefixMap<HostGroup>();
  for (const group of groups) for (const prefix of group.prefixes) map.set(prefix, group);
  return map;
}

/** The thresholds of an address to which these levels apply. */
export function resolveAddress(settings: Settings, applying: Applying): ResolvedSet {
  const { group, server, address } = applying;
  const chosen: Chosen[] = [{ level: 'site', choices: settings.site.thresholds }];
  if (group) chosen.push({ level: 'group', choices: group.thresholds });
  if (server) chosen.push({ level: 'server', choices: server.thresholds });
  if (address) chosen.push({ level: 'address', choices: address.thresholds });
  return resolveLevels(thresholdDefaults, chosen);
}

/** What the levels above this one give: what a blank field of its form stands for. */
export function resolveAbove(
  settings: Settings,
  applying: Applying,
  level: 'server' | 'address',
): ResolvedSet {
  const above = { ...applying, address: null };
  return resolveAddress(settings, level === 'address' ? above : { ...above, server: null });
}

/** What an address of a server has: the server of the first of several that claim it. */
export function findApplying(
  index: PrefixMap<HostGroup>,
  servers: readonly ServerSettings[],
  address: string,
  ownedBy: readonly { clusterId: number; serverId: number }[],
): Applying {
  const found = index.find(address);
  const isOwner = (one: ServerSettings) =>
    ownedBy.some(({ clusterId, serverId }) => clusterId === one.clusterId && serverId === one.serverId);
  return {
    group: found?.value ?? null,
    prefix: found?.prefix ?? null,
    server: servers.find((one) => one.serverId !== null && isOwner(one)) ?? null,
    address: servers.find((one) => one.address === address) ?? null,
  };
}

/**
 * All groups of the plan, the most specific first: those are the last that a bound leaves out. `addresses` are those of
 * the servers with thresholds of their own.
 */
export function compileGroups(settings: Settings, addresses: readonly ServerAddress[]): PlanGroup[] {
  const { groups, servers } = settings;
  const index = indexGroups(groups);
  const byPrefix = new Map<string, ThresholdSet>();
  for (const group of groups) {
    const none = { prefix: null, server: null, address: null };
    const values = valuesOf(resolveAddress(settings, { ...none, group }));
    for (const prefix of group.prefixes) byPrefix.set(prefix, values);
  }
  const owners = new Map<string, ServerAddress[]>();
  for (const one of addresses) {
    const known = owners.get(one.address);
    if (known) known.push(one);
    else owners.set(one.address, [one]);
  }
  const byServer = new Map(servers.map((one) => [`${one.clusterId}/${one.serverId}`, one]));
  const byAddress = new Map(servers.flatMap((one) => (one.address === null ? [] : [[one.address, one]])));
  for (const address of new Set([...owners.keys(), ...byAddress.keys()])) {
    const owner = owners.get(address)?.find((one) => byServer.has(`${one.clusterId}/${one.serverId}`));
    const values = resolveAddress(settings, {
      group: index.find(address)?.value ?? null,
      prefix: null,
      server: owner ? byServer.get(`${owner.clusterId}/${owner.serverId}`)! : null,
      address: byAddress.get(address) ?? null,
    });
    byPrefix.set(hostPrefix(address), valuesOf(values));
  }
  return groupByValues(byPrefix);
}

/** Prefixes with the same thresholds, in groups of at most as many as the contract allows. */
export function groupByValues(byPrefix: ReadonlyMap<string, ThresholdSet>): PlanGroup[] {
  const byValues = new Map<string, { values: ThresholdSet; prefixes: string[] }>();
  for (const [prefix, values] of byPrefix) {
    const key = JSON.stringify(values);
    const known = byValues.get(key);
    if (known) known.prefixes.push(prefix);
    else byValues.set(key, { values, prefixes: [prefix] });
  }
  const groups: PlanGroup[] = [];
  for (const { values, prefixes } of byValues.values()) {
    prefixes.sort(bySpecificity);
    for (let i = 0; i < prefixes.length; i += groupPrefixesMax)
      groups.push({ prefixes: prefixes.slice(i, i + groupPrefixesMax), ...toWire(values) });
  }
  return groups.sort((a, b) => bySpecificity(a.prefixes[0]!, b.prefixes[0]!));
}

/** The groups that can matter to a sensor: those of its targets, and those that overlap its additional prefixes. */
export function scopeGroups(
  groups: readonly PlanGroup[],
  targets: readonly string[],
  overlaps: (prefix: string) => boolean,
): PlanGroup[] {
  const index = new PrefixMap<number>();
  for (const [i, group] of groups.entries()) for (const prefix of group.prefixes) index.set(prefix, i);
  const kept = new Set<string>();
  for (const target of targets) {
    const found = index.find(target);
    if (found) kept.add(found.prefix);
  }
  for (const [prefix] of index.entries()) if (overlaps(prefix)) kept.add(prefix);
  return groups.flatMap((group) => {
    const prefixes = group.prefixes.filter((prefix) => kept.has(prefix));
    return prefixes.length > 0 ? [{ ...group, prefixes }] : [];
  });
}

/** Every metric, so that a sensor with other defaults judges the same. */
export function toWire(values: ThresholdSet): Pick<PlanGroup, AttackDirection> {
  return Object.fromEntries(
    attackDirections.map((direction) => [direction, { ...values[direction] }]),
  ) as unknown as Pick<PlanGroup, AttackDirection>;
}

function bySpecificity(a: string, b: string): number {
  const depth = (prefix: string) =>
    Number(prefix.slice(prefix.indexOf('/') + 1)) * (prefix.includes(':') ? 1 : 4);
  return depth(b) - depth(a) || (a < b ? -1 : 1);
}
