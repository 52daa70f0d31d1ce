/** The guests' NICs on private networks, defined and plugged in. Calls must come one after another. */
import { CodedError } from '#common/errors/index.ts';
import type { WorldNames } from '../world/name-world.ts';
import {
  ensureSegment,
  isPlugged,
  type PrivateNic,
  plugNic,
  removeSegment,
  unplugNic,
} from '../world/private-networks.ts';
import type { DefinedGuests } from './defined-guests.ts';
import type { GuestDefinition } from './guest.ts';
import type { GuestPower } from './guest-power.ts';
import { defineNic, isSameNic, refuseTakenNic } from './private-nics.ts';

export interface GuestNetworksDeps {
  names: WorldNames;
  guests: DefinedGuests;
  machines: Pick<GuestPower, 'isOn'>;
}

export class GuestNetworks {
  readonly #deps: GuestNetworksDeps;

  constructor(deps: GuestNetworksDeps) {
    this.#deps = deps;
  }

  /** Gives the guest this NIC in place of any other it has on that network. */
  async attach(guest: GuestDefinition, wanted: PrivateNic): Promise<void> {
    const { guests, machines } = this.#deps;
    const nic = defineNic(wanted);
    const present = guest.nics.find((one) => one.network === nic.network);
    if (present && isSameNic(present, nic)) return;
    refuseTakenNic(guests.all(), guest.name, nic);
    guest.nics = [...guest.nics.filter((one) => one !== present), nic];
    guests.save();
    if (machines.isOn(guest.name)) await this.#plug(guest, nic);
  }

  /** Takes the guest's NIC on that network away, if it has this MAC. */
  async detach(guest: GuestDefinition, network: number, mac?: string): Promise<void> {
    const nic = guest.nics.find((one) => one.network === network && (mac ?? one.mac) === one.mac);
    if (!nic) return;
    await unplugNic(this.#deps.names, guest.name, network);
    guest.nics = guest.nics.filter((one) => one !== nic);
    this.#deps.guests.save();
  }

  /** Makes the network's segment hold exactly these NICs. */
  async sync(network: number, members: readonly { guest: string; nic: PrivateNic }[]): Promise<void> {
    const { names, guests, machines } = this.#deps;
    const wanted = members.map((member) => ({
      guest: guests.find(member.guest),
      nic: defineNic(member.nic),
    }));
    for (const guest of guests.all())
      if (!wanted.some((member) => member.guest === guest)) await this.detach(guest, network);
    await ensureSegment(names, network);
    for (const { guest, nic } of wanted) {
      await this.attach(guest, nic);
      // A sync restores a link that was removed outside the lab.
      if (machines.isOn(guest.name) && !(await isPlugged(names, guest.name, network)))
        await this.#plug(guest, nic);
    }
  }

  /** Removes the segment; throws `lab.network_in_use` while a guest has a NIC on it. */
  async remove(network: number): Promise<void> {
    const { names, guests } = this.#deps;
    const member = guests.all().find((guest) => guest.nics.some((nic) => nic.network === network));
    if (member) throw new CodedError('lab.network_in_use', `"${member.name}" is on network ${network}`);
    await removeSegment(names, network);
  }

  #plug(guest: GuestDefinition, nic: PrivateNic): Promise<void> {
    const { names } = this.#deps;
    const namespace = names.guestNamespacePrefix + guest.name;
    return plugNic(names, { ...guest, namespace }, nic);
  }
}
