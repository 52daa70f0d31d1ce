/** A guest as a driver defines it: parsing of untrusted bodies, with sentences that say what to mend. */
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import { findLanNetwork, lanNetworks, macs } from '../world/networks.ts';

export type Power = 'on' | 'off';

export interface GuestAddress {
  /** Canonical text. */
  address: string;
  prefixLength: number;
  gateway: string;
}

export interface GuestDefinition {
  name: string;
  /** Six lower-case hex pairs. */
  mac: string;
  addresses: GuestAddress[];
  power: Power;
}

/** What a caller may say of a guest; what is left out is taken from the network. */
export interface GuestInput {
  name: string;
  mac: string;
  addresses: readonly { address: string; prefixLength?: number; gateway?: string }[];
  power?: Power;
}

const addressesMax = 8;
const namePattern = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;
const macPattern = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** The definition that `input` means; throws `lab.body_invalid`. */
export function defineGuest(input: GuestInput): GuestDefinition {
  if (!namePattern.test(input.name)) {
    throw invalid(
      `"name" must be 1 to 32 of a-z, 0-9 and -, neither first nor last a -, not "${input.name}"`,
    );
  }
  if (!macPattern.test(input.mac) || Number.parseInt(input.mac.slice(0, 2), 16) & 1) {
    throw invalid(`"mac" must be six lower-case hex pairs of a unicast address, not "${input.mac}"`);
  }
  if (Object.values<string>(macs).includes(input.mac))
    throw invalid(`${input.mac} belongs to the world itself`);
  if (input.addresses.length < 1 || input.addresses.length > addressesMax) {
    throw invalid(`"addresses" must hold 1 to ${addressesMax} addresses`);
  }
  const addresses = input.addresses.map(defineAddress);
  if (new Set(addresses.map((entry) => entry.address)).size < addresses.length) {
    throw invalid('"addresses" names one address twice');
  }
  return { name: input.name, mac: input.mac, addresses, power: input.power ?? 'on' };
}

function defineAddress(input: GuestInput['addresses'][number]): GuestAddress {
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

/** True when both are the same guest apart from its power. */
export function isSameGuest(a: GuestDefinition, b: GuestDefinition): boolean {
  const list = (guest: GuestDefinition) =>
    guest.addresses
      .map((entry) => entry.address)
      .toSorted()
      .join();
  return a.name === b.name && a.mac === b.mac && list(a) === list(b);
}

/** `lab.body_invalid` with what to mend. */
export function invalid(message: string): CodedError {
  return new CodedError('lab.body_invalid', message);
}
