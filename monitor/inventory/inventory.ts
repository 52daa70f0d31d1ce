import { canonicalAddress, isGloballyUnique, parseAddress } from '#common/ip/index.ts';
import type { InventoryVm } from '#contracts/admin-api/schemas.ts';
import { type MatchInput, parseMac } from '#monitor/devices/index.ts';
import type { PlacedInterface } from '#monitor/placements/index.ts';

/** A stored machine: canonical MACs and addresses, texts of limited length. */
export interface InventoryMachine {
  clusterId: number;
  serverId: number;
  node: string | null;
  name: string;
  state: string;
  updatedAt: string;
  interfaces: InventoryInterface[];
}

export interface InventoryInterface {
  interfaceId: number;
  mac: string;
  bridge: string | null;
  vlan: number | null;
  addresses: string[];
}

const textLengthMax = 253;

/** Converts a listed machine; an interface without a valid MAC is left out, because it can not be matched. */
export function toMachine(vm: InventoryVm): InventoryMachine {
  const interfaces: InventoryInterface[] = [];
  for (const entry of vm.interfaces) {
    const mac = parseMac(entry.mac_address);
    if (!mac) continue;
    const addresses = entry.addresses.map(canonicalAddress).filter((address) => address !== null);
    interfaces.push({
      interfaceId: entry.id,
      mac,
      bridge: bounded(entry.bridge),
      vlan: entry.vlan,
      addresses,
    });
  }
  return {
    clusterId: vm.cluster_id,
    serverId: vm.id,
    node: bounded(vm.node),
    name: bounded(vm.name) || `VM ${vm.id}`,
    state: bounded(vm.state) ?? '',
    updatedAt: vm.updated_at,
    interfaces,
  };
}

function bounded<T extends string | null>(text: T): T {
  // PostgreSQL can not store NUL, and names are shown on pages, so control characters are replaced.
  return (text === null ? null : text.replace(/\p{Cc}/gu, ' ').slice(0, textLengthMax)) as T;
}

/**
 * The machine of each MAC of a site. A MAC that two machines of one site list is ambiguous and has no match (devices
 * keep their last match); a cluster without a site has no matches.
 */
export function findMatches(
  machines: readonly InventoryMachine[],
  siteOf: ReadonlyMap<number, number>,
): MatchInput[] {
  const owners = new Map<string, MatchInput | null>();
  for (const { clusterId, serverId, name, interfaces } of machines) {
    const siteId = siteOf.get(clusterId);
    if (siteId === undefined) continue;
    for (const { mac } of interfaces) {
      const key = `${siteId}|${mac}`;
      const other = owners.get(key);
      const isSame = other === undefined || (other?.clusterId === clusterId && other.serverId === serverId);
      owners.set(key, isSame ? { siteId, mac, clusterId, serverId, serverName: name } : null);
    }
  }
  return [...owners.values()].filter((match) => match !== null);
}

/** Places of the machines: one for each interface, and one for each of its addresses. */
export function placesOf(machines: readonly InventoryMachine[]): PlacedInterface[] {
  const places: PlacedInterface[] = [];
  for (const { clusterId, serverId, node, interfaces } of machines) {
    for (const { mac, bridge, vlan, addresses } of interfaces) {
      const segment = bridge === null ? '' : vlan ? `${bridge}.${vlan}` : bridge;
      const place = { clusterId, serverId, node, mac, segment };
      places.push({ ...place, address: null, isUnique: true });
      for (const address of addresses)
        places.push({ ...place, address, isUnique: isGloballyUnique(parseAddress(address)!) });
    }
  }
  return places;
}
