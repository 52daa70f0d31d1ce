/** Assembles an inventory from the kernel's tables, within the contract's limits. */
import { readFileSync } from 'node:fs';
import {
  type HostInventory,
  type HostNeighbour,
  interfaceAddressesMax,
  interfacesMax,
  neighboursMax,
} from '#contracts/sensor-api/telemetry.ts';
import type { KernelTables } from './kernel-tables.ts';

/** The VLAN of untagged frames on a filtering bridge; they have no tag on the bridge. */
function defaultVlan(bridge: string): number {
  try {
    return Number(readFileSync(`/sys/class/net/${bridge}/bridge/default_pvid`, 'utf8'));
  } catch {
    return 0;
  }
}

/** MACs of the host itself. The MAC of a macvtap interface is its guest's. */
export function hostMacs(links: readonly { mac: string; kind: string }[]): Set<string> {
  return new Set(links.filter(({ mac, kind }) => mac !== '' && kind !== 'macvtap').map(({ mac }) => mac));
}

/** Joins the rows; rows above the limits are counted. `defaultVlanOf` is for tests. */
export function assembleInventory(
  tables: KernelTables,
  observedAtMs: number,
  defaultVlanOf: (bridge: string) => number = defaultVlan,
): HostInventory {
  const links = new Map(tables.links.map((link) => [link.index, link]));
  const nameOf = (index: number) => links.get(index)?.name ?? '';
  const addresses = new Map<number, string[]>();
  for (const { index, address } of tables.addresses) {
    const list = addresses.get(index) ?? [];
    if (list.length < interfaceAddressesMax) list.push(address);
    addresses.set(index, list);
  }
  const interfaces = [...tables.links]
    .sort((a, b) => a.index - b.index)
    .map(({ index, name, mac, kind, isUp, mtu, master, parent, vlan }) => ({
      name,
      index,
      mac,
      kind,
      isUp,
      mtu,
      master: nameOf(master),
      parent: nameOf(parent),
      vlan,
      addresses: addresses.get(index) ?? [],
    }));
  const gateways = new Set(tables.gateways);
  const routers = new Set(
    tables.neighbours.filter((row) => row.isRouter || gateways.has(row.address)).map((row) => row.mac),
  );
  const own = hostMacs(tables.links);
  const neighbours = new Map<string, HostNeighbour>();
  const withIp = new Set<string>();
  // Rows with an address first: a forwarding row counts only without them.
  for (const row of [...tables.neighbours].sort(
    (a, b) => Number(a.address === '') - Number(b.address === ''),
  )) {
    const segment = segmentOf(row.index, row.vlan);
    if (segment === '' || own.has(row.mac)) continue;
    const place = `${segment}|${row.mac}`;
    if (row.address === '' && withIp.has(place)) continue;
    if (row.address !== '') withIp.add(place);
    const isRouter = routers.has(row.mac);
    neighbours.set(`${place}|${row.address}`, { segment, mac: row.mac, address: row.address, isRouter });
  }
  return {
    observedAtMs,
    interfaces: interfaces.slice(0, interfacesMax),
    neighbours: [...neighbours.values()].slice(0, neighboursMax),
    interfacesLeftOut: Math.max(0, interfaces.length - interfacesMax),
    neighboursLeftOut: Math.max(0, neighbours.size - neighboursMax),
  };

  /** As in device keys: the interface's name, with the tag if there is a VLAN. */
  function segmentOf(index: number, forwardingVlan: number): string {
    const link = links.get(index);
    if (!link) return '';
    const parent = nameOf(link.parent);
    if (link.vlan > 0 && parent !== '') return `${parent}.${link.vlan}`;
    const isTagged = forwardingVlan > 0 && forwardingVlan !== defaultVlanOf(link.name);
    return isTagged ? `${link.name}.${forwardingVlan}` : link.name;
  }
}
