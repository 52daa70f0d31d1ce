/** A private network, its members, and the portal's rules for blocks of addresses. */
import { formatAddress, formatPrefix, type Prefix, parsePrefix, prefixesOverlap } from '#common/ip/index.ts';

export type {
  Attachment,
  AttachmentState,
  Network,
  NetworkMember,
  SyncState,
} from '#operations/views/index.ts';

/** RFC 1918. */
export const allowedRanges = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'] as const;
export const prefixLengthMin = 16;
export const prefixLengthMax = 29;

const ranges = allowedRanges.map((text) => parsePrefix(text)!);
/** Default blocks for networks created without one: the next free /24 from this address upwards. */
const firstBlock = 0x0a0a_0000;
const lastBlock = 0x0aff_ff00;
const blockAddresses = 256;

/** The block in canonical spelling, or null for one that the policy does not allow. */
export function allowedCidr(text: string): string | null {
  const prefix = parsePrefix(text);
  if (prefix === null || prefix.bytes.length !== 4) return null;
  if (prefix.length < prefixLengthMin || prefix.length > prefixLengthMax) return null;
  const isPrivate = ranges.some((range) => range.length <= prefix.length && prefixesOverlap(range, prefix));
  return isPrivate ? formatPrefix(prefix) : null;
}

/** The lowest /24 of 10.10.0.0 and up that shares no address with the taken ones; null when there is none. */
export function nextFreeCidr(taken: readonly string[]): string | null {
  const prefixes = taken.map((text) => parsePrefix(text)!);
  for (let block = firstBlock; block <= lastBlock; block += blockAddresses) {
    const candidate: Prefix = { bytes: bytesOf(block), length: 24 };
    if (!prefixes.some((prefix) => prefixesOverlap(prefix, candidate))) return formatPrefix(candidate);
  }
  return null;
}

/** The addresses that servers may have: all but the network's own, the first (kept for a gateway) and the broadcast. */
function memberAddresses(cidr: string): { first: number; last: number } {
  const prefix = parsePrefix(cidr)!;
  const base = numberOf(prefix.bytes);
  return { first: base + 2, last: base + 2 ** (32 - prefix.length) - 2 };
}

/** How many servers fit into the block. */
export function memberCapacity(cidr: string): number {
  const { first, last } = memberAddresses(cidr);
  return last - first + 1;
}

/** The lowest address of the block that no member has, or null when it is full. */
export function lowestFreeAddress(cidr: string, taken: readonly string[]): string | null {
  const { first, last } = memberAddresses(cidr);
  const busy = new Set(taken);
  for (let candidate = first; candidate <= last; candidate += 1) {
    const text = formatAddress(bytesOf(candidate));
    if (!busy.has(text)) return text;
  }
  return null;
}

/** The address in canonical spelling when a member of the block may have it, else null. */
export function memberAddress(cidr: string, text: string): string | null {
  const given = parsePrefix(text);
  if (given === null || given.bytes.length !== 4 || given.length !== 32) return null;
  const { first, last } = memberAddresses(cidr);
  const value = numberOf(given.bytes);
  return value >= first && value <= last ? formatAddress(given.bytes) : null;
}

/** A locally administered unicast MAC made from the attachment's id; servers' public network interfaces begin with 52:54. */
export function attachmentMac(attachmentId: number): string {
  const hex = attachmentId.toString(16).padStart(8, '0').slice(-8);
  return `52:56:${hex.match(/../g)!.join(':')}`;
}

function numberOf(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}

function bytesOf(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255);
}
