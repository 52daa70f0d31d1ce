/**
 * The host's network as known to its kernel: interfaces, addresses, bridges, VLANs, and neighbours on the segments.
 *
 * Read every minute, shortly before the upload is committed, with a time limit. On an error the last inventory stays in
 * use until it is five minutes old; then there is none.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import {
  type HostInventory,
  type HostNeighbour,
  interfaceAddressesMax,
  interfacesMax,
  neighboursMax,
} from '#contracts/sensor-api/telemetry.ts';
import { inventoryRecords } from '#sensor/records/index.ts';
import { type KernelTables, readFiles } from './read-files.ts';

const refreshEveryMs = 55_000;
/** Scans use an inventory for this long (NET-2.7.8). */
const usableMs = 300_000;

export interface InterfacesOptions {
  clock: Clock;
  reporter: Reporter;
  /** Another reader, for tests. */
  read?: () => Promise<KernelTables>;
}

/** Creates the reader; it reads nothing before `start`. */
export function createInterfaces(options: InterfacesOptions) {
  const { clock, reporter } = options;
  const read = options.read ?? readKernel;
  const stopping = new AbortController();
  let inventory: HostInventory | null = null;
  let foreign: ReadonlySet<string> = new Set();
  let isFailing = false;
  let running: Promise<void> = Promise.resolve();

  async function refresh(): Promise<void> {
    try {
      inventory = assembleInventory(await read(), clock.nowMs());
      foreign = new Set([
        ...hostMacs(inventory.interfaces),
        ...inventory.neighbours.filter((one) => one.isRouter).map((one) => one.mac),
      ]);
      isFailing = false;
    } catch (error) {
      if (!isFailing) reporter.warn("the host's interfaces can not be read", { why: describeError(error) });
      isFailing = true;
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.wait(refreshEveryMs, stopping.signal);
      if (!stopping.signal.aborted) await refresh();
    }
  }

  return {
    name: 'interfaces',
    kind: inventoryRecords,
    /** The newest inventory; null before the first one and when it is too old. */
    ready: (): HostInventory | null =>
      inventory && clock.nowMs() - inventory.observedAtMs < usableMs ? inventory : null,
    /** MACs of this host and of its routers: they own no address (NET-2.2.9). */
    foreignMacs: () => foreign,
    async start() {
      await refresh();
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Uses the kernel's sockets if possible, otherwise its files. */
async function readKernel(): Promise<KernelTables> {
  try {
    return (await import('./read-netlink.ts')).readNetlink();
  } catch {
    return readFiles();
  }
}

/** Speed of an interface's link in bits a second; null where its driver does not know it, or makes one up as tun and tap do. */
export function readLinkBps(interfaceName: string, folder = '/sys/class/net'): number | null {
  const at = `${folder}/${interfaceName}`;
  try {
    if (existsSync(`${at}/tun_flags`)) return null;
    // -1, or an error, where it is unknown; 4,294,967,295 in older kernels.
    const megabits = Number(readFileSync(`${at}/speed`, 'utf8'));
    return megabits > 0 && megabits < 2 ** 32 - 1 ? megabits * 1e6 : null;
  } catch {
    return null;
  }
}

// Assembles an inventory from the kernel's tables, within the contract's limits.

/** The VLAN of untagged frames on a filtering bridge; they have no tag on the bridge. */
function defaultVlan(bridge: string): number {
  try {
    return Number(readFileSync(`/sys/class/net/${bridge}/bridge/default_pvid`, 'utf8'));
  } catch {
    return 0;
  }
}

/** MACs of the host itself. The MAC of a macvtap interface is its guest's. */
function hostMacs(links: readonly { mac: string; kind: string }[]): Set<string> {
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
