/** Guests' NICs on private networks: parsing of untrusted bodies, and which NICs a world may have at once. */
import { CodedError } from '#common/errors/index.ts';
import { parsePrefix } from '#common/ip/index.ts';
import { networkIdMax, type PrivateNic } from '../world/private-networks.ts';
import { invalid, unicastMac } from './check-body.ts';
import type { GuestDefinition } from './guest.ts';

/** The NIC that `input` means; throws `lab.body_invalid`. */
export function defineNic(input: PrivateNic): PrivateNic {
  if (!Number.isInteger(input.network) || input.network < 1 || input.network > networkIdMax)
    throw invalid(`"network" must be a whole number from 1 to ${networkIdMax}, not ${input.network}`);
  const address = parsePrefix(input.address);
  if (address?.bytes.length !== 4 || address.length !== 32)
    throw invalid(`"address" must be an IPv4 address, not "${input.address}"`);
  if (!Number.isInteger(input.prefixLength) || input.prefixLength < 8 || input.prefixLength > 30)
    throw invalid(`"prefix_length" must be from 8 to 30, not ${input.prefixLength}`);
  const { network, prefixLength } = input;
  return { network, mac: unicastMac(input.mac), address: address.bytes.join('.'), prefixLength };
}

export function isSameNic(a: PrivateNic, b: PrivateNic): boolean {
  return a.mac === b.mac && a.address === b.address && a.prefixLength === b.prefixLength;
}

/** Throws `lab.mac_taken` or `lab.address_taken` when another guest's NIC, or NIC on another network, has them. */
export function refuseTakenNic(guests: Iterable<GuestDefinition>, guest: string, wanted: PrivateNic): void {
  for (const other of guests) {
    if (other.mac === wanted.mac)
      throw new CodedError('lab.mac_taken', `${wanted.mac} belongs to the guest "${other.name}"`);
    for (const nic of other.nics) {
      const isReplaced = other.name === guest && nic.network === wanted.network;
      if (isReplaced) continue;
      if (nic.mac === wanted.mac)
        throw new CodedError('lab.mac_taken', `${wanted.mac} belongs to the guest "${other.name}"`);
      if (nic.network === wanted.network && nic.address === wanted.address)
        throw new CodedError('lab.address_taken', `${nic.address} belongs to the guest "${other.name}"`);
    }
  }
}
