import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { formatAddress, parseAddress } from '#common/ip/index.ts';

/** From where a request came, for the audit trail and the log. */
export interface RequestOrigin {
  /** The client's address; behind a trusted proxy the one that the proxy names. */
  readonly address: string;
  readonly requestId: string;
}

/** The origin of this request; guards put it on the actor that they make. */
export function originOf(request: Pick<FastifyRequest, 'ip' | 'id'>): RequestOrigin {
  return { address: request.ip, requestId: request.id };
}

/** The throttling bucket of a source address: the address itself for IPv4, its /64 for IPv6. */
export function sourceBucket(address: string): string {
  const plain = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
  const bytes = parseAddress(plain);
  if (!bytes) return plain;
  if (bytes.length === 4) return formatAddress(bytes);
  const prefix = new Uint8Array(16);
  prefix.set(bytes.subarray(0, 8));
  return `${formatAddress(prefix)}/64`;
}

/** Whether an address is of this machine itself. */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address);
}

const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** `req_` and a ULID: 26 characters that sort by time. */
export function newRequestId(nowMs: number = Date.now()): string {
  let time = '';
  for (let rest = nowMs, i = 0; i < 10; i += 1) {
    time = crockford[rest % 32]! + time;
    rest = Math.floor(rest / 32);
  }
  let random = '';
  for (const byte of randomBytes(16)) random += crockford[byte & 31];
  return `req_${time}${random}`;
}
