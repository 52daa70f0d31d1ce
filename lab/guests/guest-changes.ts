/** Defines, powers, filters and removes guests. Calls must come one after another. */
import { CodedError } from '#common/errors/index.ts';
import { guardPort, unguardPort } from '../world/guard.ts';
import { clearFirewall, type FirewallPlan, setFirewall } from '../world/guest-firewall.ts';
import type { WorldNames } from '../world/name-world.ts';
import { invalid } from './check-body.ts';
import { defineFirewall } from './define-firewall.ts';
import type { DefinedGuests } from './defined-guests.ts';
import type { GuardState, GuestDefinition, GuestSize, Power } from './guest.ts';
import { defineAddresses, defineGuest, type GuestInput, isSameGuest } from './guest-definition.ts';
import type { GuestNetworks } from './guest-networks.ts';
import type { GuestPower } from './guest-power.ts';
import { changeAddresses, filtered, limitSpeed, portsOf } from './plug-guest.ts';
import { refuseTakenNic } from './private-nics.ts';

export interface GuestChangesDeps {
  names: WorldNames;
  guests: DefinedGuests;
  machines: GuestPower;
  networks: GuestNetworks;
}

export class GuestChanges {
  readonly #deps: GuestChangesDeps;

  constructor(deps: GuestChangesDeps) {
    this.#deps = deps;
  }

  /** True when the guest was made now, false when it stood. */
  async put(input: GuestInput): Promise<boolean> {
    const wanted = defineGuest(input);
    // A new one; a guest that stands may have lost its last NIC since.
    if (wanted.mac === null && wanted.nics.length === 0)
      throw invalid('"mac" and "addresses", or "private_interfaces", must be given');
    const { guests, networks } = this.#deps;
    const existing = guests.get(wanted.name);
    if (existing) {
      refuseDifference(existing, wanted);
      // A guest that an earlier call could not switch on is tried again.
      await this.setPower(existing, input.power ?? existing.power);
      for (const nic of wanted.nics) await networks.attach(existing, nic);
      return false;
    }
    refuseTaken(guests.all(), wanted);
    const { source } = input;
    if (source) wanted.image = findSnapshot(guests.find(source.guest), source.snapshot).image;
    for (const nic of wanted.nics) refuseTakenNic(guests.all(), wanted.name, nic);
    guests.add(wanted);
    await this.setPower(wanted, wanted.power);
    return true;
  }

  async setPower(guest: GuestDefinition, power: Power): Promise<void> {
    const { guests, machines } = this.#deps;
    guest.power = power;
    guests.save();
    await (power === 'on' ? machines.switchOn(guest) : machines.switchOff(guest));
  }

  /** Another disk, and the guest off and on; nothing for the disk that it has. Throws `lab.rebuilt_since`. */
  async rebuild(guest: GuestDefinition, image: string, rebuild: number): Promise<void> {
    await this.#replaceDisk(guest, image, rebuild);
    await this.setPower(guest, 'on');
  }

  /** A disk with the content of a snapshot, and the guest off. Throws `lab.snapshot_unknown`, `lab.rebuilt_since`. */
  async restore(guest: GuestDefinition, snapshot: number, rebuild: number): Promise<void> {
    await this.#replaceDisk(guest, findSnapshot(guest, snapshot).image, rebuild);
  }

  async #replaceDisk(guest: GuestDefinition, image: string | null, rebuild: number): Promise<void> {
    if (rebuild < guest.rebuild)
      throw new CodedError('lab.rebuilt_since', `The guest "${guest.name}" was rebuilt since`);
    if (rebuild === guest.rebuild) return;
    Object.assign(guest, { image, rebuild });
    await this.setPower(guest, 'off');
  }

  /**
   * Notes the image that the guest starts from, null for its own disk, and switches it off and, in a rescue, on; nothing for a change that
   * it has. Throws `lab.rescued_since`.
   */
  async rescue(guest: GuestDefinition, image: string | null, change: number): Promise<void> {
    if (change < guest.rescue.change)
      throw new CodedError('lab.rescued_since', `The guest "${guest.name}" was rescued, or back, since`);
    if (change > guest.rescue.change) {
      guest.rescue = { change, image };
      await this.setPower(guest, 'off');
    }
    if (image !== null) await this.setPower(guest, 'on');
  }

  /** Notes the ISO in the CD drive; nothing for a change that it has. Throws `lab.drive_changed_since`. */
  changeIso(guest: GuestDefinition, iso: string | null, change: number): void {
    if (change < guest.drive.change)
      throw new CodedError('lab.drive_changed_since', `The CD drive of "${guest.name}" was changed since`);
    guest.drive = { change, iso };
    this.#deps.guests.save();
  }

  /** Keeps a copy of the disk under this number, once. */
  keepSnapshot(guest: GuestDefinition, snapshot: number): void {
    if (guest.snapshots.some((one) => one.snapshot === snapshot)) return;
    guest.snapshots.push({ snapshot, image: guest.image });
    this.#deps.guests.save();
  }

  /** Nothing happens when there is no such guest. */
  dropSnapshot(name: string, snapshot: number): void {
    const guest = this.#deps.guests.get(name);
    if (!guest) return;
    guest.snapshots = guest.snapshots.filter((one) => one.snapshot !== snapshot);
    this.#deps.guests.save();
  }

  /** Throws `lab.guest_runs` and `lab.disk_smaller`. */
  resize(guest: GuestDefinition, size: GuestSize): void {
    if (guest.power === 'on') throw new CodedError('lab.guest_runs', `The guest "${guest.name}" is on`);
    if (size.diskGb < (guest.size?.diskGb ?? 0))
      throw new CodedError('lab.disk_smaller', `The guest "${guest.name}" has a larger disk`);
    guest.size = size;
    this.#deps.guests.save();
  }

  async setFirewall(guest: GuestDefinition, plan: FirewallPlan | null): Promise<void> {
    const { names, guests, machines } = this.#deps;
    guest.firewall = plan === null ? null : defineFirewall(plan);
    guests.save();
    if (!machines.isOn(guest.name)) return;
    if (guest.firewall === null) await clearFirewall(names, filtered(guest));
    else await setFirewall(names, filtered(guest), guest.firewall);
  }

  async setGuard(guest: GuestDefinition, guard: GuardState): Promise<void> {
    const { names, guests, machines } = this.#deps;
    guest.guard = guard;
    guests.save();
    if (!machines.isOn(guest.name)) return;
    for (const port of portsOf(guest))
      await (guard === 'on' ? guardPort(names, port) : unguardPort(names, port.link));
  }

  async setSpeed(guest: GuestDefinition, mbit: number | null): Promise<void> {
    const { names, guests, machines } = this.#deps;
    guest.speedMbit = mbit;
    guests.save();
    if (guest.mac !== null && machines.isOn(guest.name)) await limitSpeed(names, guest);
  }

  /** Gives a guest with a public link other addresses. Throws `lab.address_taken`, `lab.body_invalid`. */
  async setAddresses(guest: GuestDefinition, given: NonNullable<GuestInput['addresses']>): Promise<void> {
    const { names, guests, machines } = this.#deps;
    const addresses = defineAddresses(given);
    if (guest.mac === null || addresses.length === 0)
      throw invalid('"addresses" are those of a public link, at least one');
    const others = guests.all().filter((other) => other !== guest);
    refuseTaken(others, { ...guest, addresses });
    const before = guest.addresses;
    guest.addresses = addresses;
    guests.save();
    if (machines.isOn(guest.name)) await changeAddresses(names, guest, before);
  }

  /** Nothing happens when there is no such guest. */
  async remove(name: string): Promise<void> {
    const { guests, machines } = this.#deps;
    const guest = guests.get(name);
    if (!guest) return;
    await machines.switchOff(guest);
    guests.remove(name);
  }
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

function findSnapshot(guest: GuestDefinition, snapshot: number): GuestDefinition['snapshots'][number] {
  const found = guest.snapshots.find((one) => one.snapshot === snapshot);
  if (found !== undefined) return found;
  throw new CodedError('lab.snapshot_unknown', `The guest "${guest.name}" has no snapshot ${snapshot}`);
}
