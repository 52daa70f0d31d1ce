/** A private network, its members, who may change it, and the rules for its fields and blocks of addresses. */

import { CodedError } from '#common/errors/index.ts';
import { formatAddress, formatPrefix, type Prefix, parsePrefix, prefixesOverlap } from '#common/ip/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Scope } from '#operations/views/scope.ts';

/** RFC 1918. */
const allowedRanges = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'] as const;
const prefixLengthMin = 16;
const prefixLengthMax = 29;

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

/** One answer for another's, a deleted and a nonexistent network. */
export function noSuchNetwork(): CodedError {
  return new CodedError('networks.not_found', 'There is no such network.');
}

/** The same for the server that a network operation names. */
export function noSuchServer(): CodedError {
  return new CodedError('networks.server_not_found', 'There is no such server.');
}

export function cidrNotAllowed(given: string): CodedError {
  return new CodedError(
    'networks.cidr_not_allowed',
    `${given} can't be a private network. Use a block of /${prefixLengthMin} to /${prefixLengthMax} within ${allowedRanges.join(', ')}, with no host bits set.`,
    { allowedRanges, prefixLengthMin, prefixLengthMax },
  );
}

export function cidrOverlap(given: string): CodedError {
  return new CodedError(
    'networks.cidr_overlap',
    `${given} shares addresses with another network of this account. Choose another block, or name none to be given a free one.`,
  );
}

/** `limit` names what ran out. */
export function limitExceeded(limit: string, max: number, used: number, message: string): CodedError {
  return new CodedError('networks.limit', message, { limit, max, used });
}

/** A field of the request that can't be so. */
export function invalidField(path: string, code: string, message: string, allowed?: unknown[]): CodedError {
  return new CodedError('networks.invalid', 'Some fields are not as they must be; see `fields`.', {
    fields: [{ path, code, message, ...(allowed ? { allowed } : {}) }],
  });
}

/** What the actor reaches: a customer their own tenants, staff and the program everything, a project nothing. */
export function scopeOf(actor: Actor, tenantId: number | null): Scope {
  const whole: Scope =
    actor.kind === 'customer'
      ? actor.tenantIds
      : actor.kind === 'staff' || actor.kind === 'system'
        ? 'all'
        : [];
  if (tenantId === null) return whole;
  return whole === 'all' || whole.includes(tenantId) ? [tenantId] : [];
}

// Rules for a network's name, description and labels. The API and the portal apply the same rules.

const plainTextPattern = new RegExp(schemas.plainTextPattern);
const namePattern = new RegExp(schemas.namePattern);

/** Throws `networks.invalid`. */
export function validateNetworkFields(fields: {
  name?: string | undefined;
  description?: string | null | undefined;
  labels?: Readonly<Record<string, string | null>> | undefined;
}): void {
  const { name, description, labels } = fields;
  if (name !== undefined && (name.length < 1 || [...name].length > 64 || !namePattern.test(name))) {
    const message = 'must be 1 to 64 characters without spaces around them and without control characters';
    throw invalidField('name', 'pattern', message);
  }
  if ([...(description ?? '')].length > 255)
    throw invalidField('description', 'maxLength', 'must be at most 255 characters');
  const unseen = 'must not contain control characters or characters that turn the direction of writing';
  if (!plainTextPattern.test(description ?? '')) throw invalidField('description', 'pattern', unseen);
  for (const [key, value] of Object.entries(labels ?? {}))
    if (!plainTextPattern.test(value ?? '')) throw invalidField(`labels.${key}`, 'pattern', unseen);
}
