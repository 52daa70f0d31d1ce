/** A guest as a driver defines it: parsing of untrusted bodies, with sentences that say what to mend. */
import { canonicalAddress } from '#common/ip/index.ts';
import type { FirewallPlan } from '../world/guest-firewall.ts';
import { findLanNetwork, lanNetworks } from '../world/networks.ts';
import type { PrivateNic } from '../world/private-networks.ts';
import { invalid, unicastMac } from './check-body.ts';
import { defineFirewall } from './define-firewall.ts';
import type { GuardState, GuestAddress, GuestDefinition, GuestSize, Power } from './guest.ts';
import { defineNic } from './private-nics.ts';

/** What a caller may say of a guest; what is left out is taken from the network. */
export interface GuestInput {
  name: string;
  mac?: string | null;
  addresses?: readonly { address: string; prefixLength?: number; gateway?: string }[];
  nics?: readonly PrivateNic[];
  guard?: GuardState;
  speedMbit?: number | null;
  image?: string | null;
  /** A snapshot of another guest in place of an image. */
  source?: { guest: string; snapshot: number };
  rebuild?: number;
  size?: GuestSize | null;
  rescue?: GuestDefinition['rescue'];
  drive?: GuestDefinition['drive'];
  snapshots?: GuestDefinition['snapshots'];
  firewall?: FirewallPlan | null;
  power?: Power;
}

const addressesMax = 16;
const namePattern = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

/** The definition that `input` means; throws `lab.body_invalid`. */
export function defineGuest(input: GuestInput): GuestDefinition {
  if (!namePattern.test(input.name)) {
    throw invalid(
      `"name" must be 1 to 32 of a-z, 0-9 and -, neither first nor last a -, not "${input.name}"`,
    );
  }
  const nics = (input.nics ?? []).map(defineNic);
  if (new Set(nics.map((nic) => nic.network)).size < nics.length)
    throw invalid('"private_interfaces" names one network twice');
  const given = input.addresses ?? [];
  const mac = input.mac ?? null;
  if ((mac === null) !== (given.length === 0))
    throw invalid('"mac" and "addresses" belong together: give both or neither');
  const addresses = defineAddresses(given);
  return {
    name: input.name,
    mac: mac === null ? null : unicastMac(mac),
    addresses,
    nics,
    guard: input.guard ?? 'on',
    speedMbit: input.speedMbit ?? null,
    image: input.image ?? null,
    rebuild: input.rebuild ?? 0,
    size: input.size ?? null,
    rescue: input.rescue ?? { change: 0, image: null },
    drive: input.drive ?? { change: 0, iso: null },
    snapshots: input.snapshots ?? [],
    firewall: input.firewall ? defineFirewall(input.firewall) : null,
    power: input.power ?? 'on',
  };
}

function defineAddress(input: NonNullable<GuestInput['addresses']>[number]): GuestAddress {
  const address = canonicalAddress(input.address);
  const network = address ? findLanNetwork(address) : null;
  if (!address || !network) {
    const prefixes = lanNetworks.map((candidate) => candidate.prefix).join(' or ');
    throw invalid(`"${input.address}" must be an address in ${prefixes}`);
  }
  const prefixLength = network.parsed.length;
  const { gateway } = network;
  if (address === gateway) throw invalid(`${address} is the gateway`);
  if ((input.prefixLength ?? prefixLength) !== prefixLength || (input.gateway ?? gateway) !== gateway) {
    throw invalid(`${address} has prefix length ${prefixLength} and gateway ${gateway}`);
  }
  return { address, prefixLength, gateway };
}

/** The addresses that a caller means; throws `lab.body_invalid`. */
export function defineAddresses(given: NonNullable<GuestInput['addresses']>): GuestAddress[] {
  if (given.length > addressesMax) throw invalid(`"addresses" must hold 1 to ${addressesMax} addresses`);
  const addresses = given.map(defineAddress);
  if (new Set(addresses.map((entry) => entry.address)).size < addresses.length)
    throw invalid('"addresses" names one address twice');
  return addresses;
}

/** True when both are the same guest apart from its power and its private NICs, which come and go. */
export function isSameGuest(a: GuestDefinition, b: GuestDefinition): boolean {
  const list = (guest: GuestDefinition) =>
    guest.addresses
      .map((entry) => entry.address)
      .toSorted()
      .join();
  return a.name === b.name && a.mac === b.mac && list(a) === list(b);
}
