import { formatAddress, parseAddress } from '#common/ip/index.ts';

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
