/**
 * The guests of one world: defined, powered, restarted, removed; kept on disk.
 *
 * Calls run one after another, from all callers. A definition is on disk before its guest is made and until its
 * guest is removed, so a crash in between leaves nothing that the next start would not put right.
 */
import type { TalkCounts } from '../traffic/talk.ts';
import { type GuardReading, readGuards } from '../world/guard.ts';
import type { FirewallPlan } from '../world/guest-firewall.ts';
import { nameGuestLink, type WorldNames } from '../world/name-world.ts';
import { links } from '../world/networks.ts';
import type { PrivateNic } from '../world/private-networks.ts';
import { runTool } from '../world/run-tool.ts';
import { DefinedGuests } from './defined-guests.ts';
import type { GuardState, GuestDefinition, GuestSize, Power } from './guest.ts';
import { GuestChanges } from './guest-changes.ts';
import type { GuestInput } from './guest-definition.ts';
import { GuestNetworks } from './guest-networks.ts';
import { createGuestPower, type GuestPowerDeps } from './guest-power.ts';
import { portsOf } from './plug-guest.ts';

export interface Guest extends GuestDefinition {
  /** Its link on the bridge, in the hypervisor's namespace; null for a guest without one. */
  interface: string | null;
  namespace: string;
  /** What its client has done since its process started; null while it is off. */
  talk: TalkCounts | null;
}

/** What the guard of one interface has dropped since it stands. */
export interface InterfaceGuard extends GuardReading {
  link: string;
  /** The private network; null: the public interface. */
  network: number | null;
}

export type Guests = ReturnType<typeof createGuests>;

export interface GuestsDeps extends Omit<GuestPowerDeps, 'changed'> {
  /** Called with the guests that are on, whenever they change. */
  changed: (running: readonly GuestDefinition[]) => void;
}

export function createGuests(deps: GuestsDeps) {
  const { names } = deps;
  const guests = new DefinedGuests(names.guestsFile);
  const inTurn = createTurns();
  const machines = createGuestPower({
    ...deps,
    changed: (running) => deps.changed(guests.all().filter((guest) => running.has(guest.name))),
  });
  const networks = new GuestNetworks({ names, guests, machines });
  const changes = new GuestChanges({ names, guests, machines, networks });
  const show = (guest: GuestDefinition): Guest => ({
    ...guest,
    interface: guest.mac === null ? null : nameGuestLink(guest.name),
    namespace: names.guestNamespacePrefix + guest.name,
    talk: machines.counts(guest.name),
  });

  return {
    start: () =>
      inTurn(async () => {
        guests.load();
        for (const guest of guests.all()) if (guest.power === 'on') await machines.switchOn(guest);
      }),
    stop: () => inTurn(() => machines.stopAll()),
    list: (): Guest[] =>
      guests
        .all()
        .map(show)
        .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    /** What each guest's public link has carried since it was plugged in, by link name. */
    readCounters: () => readLinkCounters(names),
    /** What the guard of each interface that stands has dropped, by the name of its guest. */
    async readGuards(): Promise<Map<string, InterfaceGuard[]>> {
      const readings = await readGuards(names);
      return new Map(
        guests.all().map((guest) => [
          guest.name,
          portsOf(guest).flatMap(({ link, network }) => {
            const reading = readings.get(link);
            return reading === undefined ? [] : [{ link, network, ...reading }];
          }),
        ]),
      );
    },
    /** Throws `lab.guest_unknown`. */
    get: (name: string): Guest => show(guests.find(name)),
    /** True when it was made now, false when it stood. Throws `lab.guest_differs`, `lab.address_taken`, `lab.mac_taken`. */
    put: (input: GuestInput): Promise<boolean> => inTurn(() => changes.put(input)),
    setPower: (name: string, power: Power) => inTurn(async () => changes.setPower(guests.find(name), power)),
    restart: (name: string) =>
      inTurn(async () => {
        await changes.setPower(guests.find(name), 'off');
        await changes.setPower(guests.find(name), 'on');
      }),
    /** Throws `lab.rebuilt_since`. */
    rebuild: (name: string, image: string, rebuild: number) =>
      inTurn(async () => changes.rebuild(guests.find(name), image, rebuild)),
    /** Lets the guest start from this image, or null: from its own disk, and leaves it off then. Throws `lab.rescued_since`. */
    rescue: (name: string, image: string | null, change: number) =>
      inTurn(async () => changes.rescue(guests.find(name), image, change)),
    /** Throws `lab.drive_changed_since`. */
    changeIso: (name: string, iso: string | null, change: number) =>
      inTurn(async () => changes.changeIso(guests.find(name), iso, change)),
    /** Keeps a copy of the guest's disk under this number, once. */
    keepSnapshot: (name: string, snapshot: number) =>
      inTurn(async () => changes.keepSnapshot(guests.find(name), snapshot)),
    /** Gives the guest a disk of this snapshot, and leaves it off. Throws `lab.snapshot_unknown`, `lab.rebuilt_since`. */
    restore: (name: string, snapshot: number, rebuild: number) =>
      inTurn(async () => changes.restore(guests.find(name), snapshot, rebuild)),
    /** Nothing happens when there is no such guest or snapshot. */
    dropSnapshot: (name: string, snapshot: number) =>
      inTurn(async () => changes.dropSnapshot(name, snapshot)),
    /** Throws `lab.guest_runs`, `lab.disk_smaller`. */
    resize: (name: string, size: GuestSize) => inTurn(async () => changes.resize(guests.find(name), size)),
    /** Gives the guest these public addresses and no others. Throws `lab.address_taken`. */
    setAddresses: (name: string, addresses: NonNullable<GuestInput['addresses']>) =>
      inTurn(async () => {
        await changes.setAddresses(guests.find(name), addresses);
        deps.changed(guests.all().filter((guest) => machines.isOn(guest.name)));
      }),
    /** Nothing happens when there is no such guest. */
    remove: (name: string) => inTurn(() => changes.remove(name)),
    /** Gives the guest this NIC in place of any other it has on that network. Throws `lab.mac_taken`, `lab.address_taken`. */
    attachNic: (name: string, nic: PrivateNic) => inTurn(async () => networks.attach(guests.find(name), nic)),
    /** Takes the guest's NIC with this MAC away; nothing happens when there is none. */
    detachNic: (name: string, network: number, mac: string) =>
      inTurn(async () => {
        const guest = guests.get(name);
        if (guest) await networks.detach(guest, network, mac);
      }),
    /** Filters what the guest's public link carries, from now on and after each start; null: nothing is filtered. */
    setFirewall: (name: string, plan: FirewallPlan | null) =>
      inTurn(async () => changes.setFirewall(guests.find(name), plan)),
    /** Guards all interfaces of the guest, or none, from now on and after each start. */
    setGuard: (name: string, guard: GuardState) =>
      inTurn(async () => changes.setGuard(guests.find(name), guard)),
    /** Limits what the guest's public link sends and receives a second, from now on and after each start; null: no limit. */
    setSpeed: (name: string, mbit: number | null) =>
      inTurn(async () => changes.setSpeed(guests.find(name), mbit)),
    /** Makes the network's segment hold exactly these NICs. */
    syncNetwork: (network: number, members: readonly { guest: string; nic: PrivateNic }[]) =>
      inTurn(() => networks.sync(network, members)),
    /** Removes the segment; throws `lab.network_in_use` while a guest has a NIC on it. */
    removeNetwork: (network: number) => inTurn(() => networks.remove(network)),
  };
}

/** Runs tasks one after another, also after a failed one. */
function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
}

interface LinkCounters {
  receivedBytes: number;
  sentBytes: number;
}

interface Way {
  bytes: number;
  packets: number;
}

const ethernetHeaderBytes = 14;

/**
 * What the kernel counts on guests' links on the public bridge, in IP bytes as everything of the lab; by link name, from the guest's point of view: what the hypervisor's end sent is what
 * the guest received.
 */
async function readLinkCounters(names: WorldNames): Promise<Map<string, LinkCounters>> {
  const output = await runTool([
    ...['ip', '-n', names.hypervisorNamespace, '-j', '-s', 'link', 'show', 'master', links.bridge],
  ]);
  const shown = JSON.parse(output || '[]') as { ifname?: string; stats64?: { rx: Way; tx: Way } }[];
  const counters = new Map<string, LinkCounters>();
  for (const { ifname, stats64 } of shown) {
    if (ifname === undefined || stats64 === undefined) continue;
    counters.set(ifname, { receivedBytes: ipBytes(stats64.tx), sentBytes: ipBytes(stats64.rx) });
  }
  return counters;
}

function ipBytes(way: Way): number {
  return Math.max(0, way.bytes - ethernetHeaderBytes * way.packets);
}
