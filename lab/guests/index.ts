/**
 * The guests of one world: defined, powered, restarted, removed; kept on disk.
 *
 * Calls run one after another, from all callers. A definition is on disk before its guest is made and until its
 * guest is removed, so a crash in between leaves nothing that the next start would not put right.
 */
import { CodedError } from '#common/errors/index.ts';
import type { TalkCounts } from '../traffic/talk.ts';
import { clearFirewall, type FirewallPlan, setFirewall } from '../world/guest-firewall.ts';
import { type LinkCounters, readLinkCounters } from '../world/link-counters.ts';
import { nameGuestLink } from '../world/name-world.ts';
import {
  ensureSegment,
  isPlugged,
  type PrivateNic,
  plugNic,
  removeSegment,
  unplugNic,
} from '../world/private-networks.ts';
import { invalid } from './check-body.ts';
import { defineFirewall } from './define-firewall.ts';
import type { GuestDefinition, Power } from './guest.ts';
import { defineGuest, type GuestInput, isSameGuest } from './guest-definition.ts';
import { readGuestFile, writeGuestFile } from './guest-file.ts';
import { createGuestPower, type GuestPowerDeps } from './guest-power.ts';
import { filtered } from './plug-guest.ts';
import { defineNic, isSameNic, refuseTakenNic } from './private-nics.ts';

export interface Guest extends GuestDefinition {
  /** Its link on the bridge, in the hypervisor's namespace; null for a guest without one. */
  interface: string | null;
  namespace: string;
  /** What its client has done since its process started; null while it is off. */
  talk: TalkCounts | null;
}

export interface Guests {
  start(): Promise<void>;
  stop(): Promise<void>;
  list(): Guest[];
  /** What each guest's public link has carried since it was plugged in, by link name. */
  readCounters(): Promise<Map<string, LinkCounters>>;
  /** Throws `lab.guest_unknown`. */
  get(name: string): Guest;
  /** True when it was made now, false when it stood. Throws `lab.guest_differs`, `lab.address_taken`, `lab.mac_taken`. */
  put(input: GuestInput): Promise<boolean>;
  setPower(name: string, power: Power): Promise<void>;
  restart(name: string): Promise<void>;
  /** Nothing happens when there is no such guest. */
  remove(name: string): Promise<void>;
  /** Gives the guest this NIC in place of any other it has on that network. Throws `lab.mac_taken`, `lab.address_taken`. */
  attachNic(name: string, nic: PrivateNic): Promise<void>;
  /** Takes the guest's NIC with this MAC away; nothing happens when there is none. */
  detachNic(name: string, network: number, mac: string): Promise<void>;
  /** Filters what the guest's public link carries, from now on and after each start; null: nothing is filtered. */
  setFirewall(name: string, plan: FirewallPlan | null): Promise<void>;
  /** Makes the network's segment hold exactly these NICs. */
  syncNetwork(network: number, members: readonly { guest: string; nic: PrivateNic }[]): Promise<void>;
  /** Removes the segment; throws `lab.network_in_use` while a guest has a NIC on it. */
  removeNetwork(network: number): Promise<void>;
}

export interface GuestsDeps extends Omit<GuestPowerDeps, 'changed'> {
  /** Called with the guests that are on, whenever they change. */
  changed: (running: readonly GuestDefinition[]) => void;
}

export function createGuests(deps: GuestsDeps): Guests {
  const { names } = deps;
  const definitions = new Map<string, GuestDefinition>();
  const inTurn = createTurns();
  const machines = createGuestPower({
    ...deps,
    changed: (running) => deps.changed([...definitions.values()].filter((guest) => running.has(guest.name))),
  });
  const save = () => writeGuestFile(names.guestsFile, [...definitions.values()]);
  const setPower = async (guest: GuestDefinition, power: Power): Promise<void> => {
    guest.power = power;
    save();
    await (power === 'on' ? machines.switchOn(guest) : machines.switchOff(guest));
  };
  const put = async (input: GuestInput): Promise<boolean> => {
    const wanted = defineGuest(input);
    // A new one; a guest that stands may have lost its last NIC since.
    if (wanted.mac === null && wanted.nics.length === 0)
      throw invalid('"mac" and "addresses", or "private_interfaces", must be given');
    const existing = definitions.get(wanted.name);
    if (existing) {
      refuseDifference(existing, wanted);
      // A guest that an earlier call could not switch on is tried again.
      await setPower(existing, input.power ?? existing.power);
      for (const nic of wanted.nics) await attachNic(existing, nic);
      return false;
    }
    refuseTaken(definitions.values(), wanted);
    for (const nic of wanted.nics) refuseTakenNic(definitions.values(), wanted.name, nic);
    definitions.set(wanted.name, wanted);
    await setPower(wanted, wanted.power);
    return true;
  };
  const attachNic = async (guest: GuestDefinition, wanted: PrivateNic): Promise<void> => {
    const nic = defineNic(wanted);
    const present = guest.nics.find((one) => one.network === nic.network);
    if (present && isSameNic(present, nic)) return;
    refuseTakenNic(definitions.values(), guest.name, nic);
    guest.nics = [...guest.nics.filter((one) => one !== present), nic];
    save();
    const namespace = names.guestNamespacePrefix + guest.name;
    if (machines.isOn(guest.name)) await plugNic(names, { name: guest.name, namespace }, nic);
  };
  const detachNic = async (guest: GuestDefinition, network: number, mac?: string): Promise<void> => {
    const nic = guest.nics.find((one) => one.network === network && (mac ?? one.mac) === one.mac);
    if (!nic) return;
    await unplugNic(names, guest.name, network);
    guest.nics = guest.nics.filter((one) => one !== nic);
    save();
  };
  const syncNetwork = async (
    network: number,
    members: readonly { guest: string; nic: PrivateNic }[],
  ): Promise<void> => {
    const wanted = members.map((member) => ({ guest: find(member.guest), nic: defineNic(member.nic) }));
    for (const guest of definitions.values())
      if (!wanted.some((member) => member.guest === guest)) await detachNic(guest, network);
    await ensureSegment(names, network);
    for (const { guest, nic } of wanted) {
      await attachNic(guest, nic);
      // A sync restores a link that was removed outside the lab.
      const namespace = names.guestNamespacePrefix + guest.name;
      if (machines.isOn(guest.name) && !(await isPlugged(names, guest.name, network)))
        await plugNic(names, { name: guest.name, namespace }, nic);
    }
  };
  const changeFirewall = async (guest: GuestDefinition, plan: FirewallPlan | null): Promise<void> => {
    guest.firewall = plan === null ? null : defineFirewall(plan);
    save();
    if (!machines.isOn(guest.name)) return;
    if (guest.firewall === null) await clearFirewall(names, filtered(guest));
    else await setFirewall(names, filtered(guest), guest.firewall);
  };
  const removeNetwork = async (network: number): Promise<void> => {
    const member = [...definitions.values()].find((guest) =>
      guest.nics.some((nic) => nic.network === network),
    );
    if (member) throw new CodedError('lab.network_in_use', `"${member.name}" is on network ${network}`);
    await removeSegment(names, network);
  };
  const remove = async (name: string): Promise<void> => {
    const guest = definitions.get(name);
    if (!guest) return;
    await machines.switchOff(guest);
    definitions.delete(name);
    save();
  };
  const find = (name: string): GuestDefinition => {
    const guest = definitions.get(name);
    if (!guest) throw new CodedError('lab.guest_unknown', `There is no guest "${name}"`);
    return guest;
  };
  const show = (guest: GuestDefinition): Guest => ({
    ...guest,
    interface: guest.mac === null ? null : nameGuestLink(guest.name),
    namespace: names.guestNamespacePrefix + guest.name,
    talk: machines.counts(guest.name),
  });

  return {
    start: () =>
      inTurn(async () => {
        for (const guest of readGuestFile(names.guestsFile)) definitions.set(guest.name, guest);
        for (const guest of definitions.values()) if (guest.power === 'on') await machines.switchOn(guest);
      }),
    stop: () => inTurn(() => machines.stopAll()),
    list: () => [...definitions.values()].map(show).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    readCounters: () => readLinkCounters(names),
    get: (name) => show(find(name)),
    put: (input) => inTurn(() => put(input)),
    setPower: (name, power) => inTurn(() => setPower(find(name), power)),
    restart: (name) =>
      inTurn(async () => {
        await setPower(find(name), 'off');
        await setPower(find(name), 'on');
      }),
    remove: (name) => inTurn(() => remove(name)),
    attachNic: (name, nic) => inTurn(async () => attachNic(find(name), nic)),
    detachNic: (name, network, mac) =>
      inTurn(async () => {
        const guest = definitions.get(name);
        if (guest) await detachNic(guest, network, mac);
      }),
    setFirewall: (name, plan) => inTurn(() => changeFirewall(find(name), plan)),
    syncNetwork: (network, members) => inTurn(() => syncNetwork(network, members)),
    removeNetwork: (network) => inTurn(() => removeNetwork(network)),
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

function refuseDifference(existing: GuestDefinition, wanted: GuestDefinition): void {
  if (isSameGuest(existing, wanted)) return;
  const message = `The guest "${wanted.name}" stands with another MAC or addresses. Destroy it first`;
  throw new CodedError('lab.guest_differs', message);
}

function refuseTaken(others: Iterable<GuestDefinition>, wanted: GuestDefinition): void {
  const addresses = new Set(wanted.addresses.map((entry) => entry.address));
  for (const other of others) {
    if (wanted.mac !== null && other.mac === wanted.mac) {
      throw new CodedError('lab.mac_taken', `${wanted.mac} belongs to the guest "${other.name}"`);
    }
    const taken = other.addresses.find((entry) => addresses.has(entry.address));
    if (taken) {
      throw new CodedError('lab.address_taken', `${taken.address} belongs to the guest "${other.name}"`);
    }
  }
}
