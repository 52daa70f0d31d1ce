/**
 * Which addresses a sensor may scan, and from where (NET-2.7.8): running servers of its own node that the inventory listed
 * just now, from a local address of the same family on the interface that owns it.
 */
import {
  canonicalAddress,
  isGlobalUnicast,
  type Prefix,
  parseAddress,
  prefixContains,
} from '#common/ip/index.ts';
import type { HostInterface } from '#contracts/sensor-api/telemetry.ts';
import type { ScanCandidate, ScanHost } from '#monitor/views/scan-candidate-store.ts';

/** The inventory of operations, and the interfaces of the host, are not used when older. */
export const listedAgeSecondsMax = 15 * 60;
export const interfacesAgeSecondsMax = 5 * 60;

/** Why an address is not scanned, in the order in which they are checked. */
export const exclusions = [
  'interfaces_stale',
  'node_ambiguous',
  'not_running',
  'stale',
  'not_public',
  'own_address',
  'ambiguous',
  'no_source',
] as const;
export type Exclusion = (typeof exclusions)[number];

export interface ChosenTarget {
  candidate: ScanCandidate;
  interface: string;
  sourceAddress: string;
}

export interface Choice {
  targets: ChosenTarget[];
  excluded: { candidate: ScanCandidate; why: Exclusion }[];
}

/** A local address that scans may leave from. */
interface Source {
  interface: string;
  address: string;
  family: number;
  prefix: Prefix;
  /** The interface carries the uplink. */
  isUplink: boolean;
}

export function chooseTargets(
  host: ScanHost,
  candidates: readonly ScanCandidate[],
  documentationIsGlobal: boolean,
): Choice {
  const choice: Choice = { targets: [], excluded: [] };
  const sources = listSources(host);
  const own = new Set(host.hostAddresses.map((address) => canonicalAddress(address) ?? address));
  for (const candidate of candidates) {
    const why = findExclusion(host, candidate, own, documentationIsGlobal);
    const source = why === null ? findSource(sources, candidate.address) : null;
    if (source)
      choice.targets.push({ candidate, interface: source.interface, sourceAddress: source.address });
    else choice.excluded.push({ candidate, why: why ?? 'no_source' });
  }
  return choice;
}

function findExclusion(
  host: ScanHost,
  candidate: ScanCandidate,
  own: ReadonlySet<string>,
  documentationIsGlobal: boolean,
): Exclusion | null {
  const age = host.interfacesAgeSeconds;
  if (age === null || age > interfacesAgeSecondsMax) return 'interfaces_stale';
  // The node of a sensor without a cluster may be either of two with its name.
  if (host.clusters > 1) return 'node_ambiguous';
  if (candidate.state !== 'running') return 'not_running';
  if (Math.max(candidate.serverAgeSeconds, candidate.interfaceAgeSeconds) > listedAgeSecondsMax)
    return 'stale';
  if (!isGlobalUnicast(parseAddress(candidate.address)!, documentationIsGlobal)) return 'not_public';
  if (own.has(candidate.address)) return 'own_address';
  if (candidate.holders > 1 || candidate.macHolders > 1) return 'ambiguous';
  return null;
}

/** Addresses of the interfaces that captures name, of the bridge or bond above them, and of VLAN interfaces on these. */
function listSources({ interfaces, captures }: ScanHost): Source[] {
  const reached = (role: string) => {
    const names = new Set(captures.filter((one) => one.role === role).map(({ name }) => name));
    // A bridge over a bond over two uplinks: each round goes one interface up.
    for (let before = -1; before !== names.size; ) {
      before = names.size;
      for (const one of interfaces) {
        if (names.has(one.name) && one.master !== '') names.add(one.master);
        if (one.parent !== '' && names.has(one.parent)) names.add(one.name);
      }
    }
    return names;
  };
  const [uplinks, bridges] = [reached('uplink'), reached('bridge')];
  return interfaces
    .filter((one) => one.isUp && (uplinks.has(one.name) || bridges.has(one.name)))
    .flatMap((one) => sourcesOf(one, uplinks.has(one.name)));
}

function sourcesOf(one: HostInterface, isUplink: boolean): Source[] {
  return one.addresses.flatMap((text) => {
    const [address, length] = text.split('/') as [string, string];
    const bytes = parseAddress(address);
    const isLinkLocal = /^fe[89ab]/i.test(address) || address.startsWith('169.254.');
    if (!bytes || isLinkLocal) return [];
    const prefix = { bytes, length: Number(length) };
    return [{ interface: one.name, address, family: bytes.length, prefix, isUplink }];
  });
}

/** The address on the network of the target; else the WAN's own, through which the host reaches it. */
function findSource(sources: readonly Source[], target: string): Source | null {
  const bytes = parseAddress(target)!;
  const sameFamily = sources.filter(({ family }) => family === bytes.length);
  const near = sameFamily
    .filter(({ prefix }) => prefixContains(prefix, bytes))
    .sort((a, b) => b.prefix.length - a.prefix.length);
  return near[0] ?? sameFamily.find(({ isUplink }) => isUplink) ?? null;
}
