/** Addresses as people type and paste them into a search. */
import { type AddressBytes, formatAddress, parseAddress, parsePrefix } from './index.ts';

/** An address, also with brackets, a port, a zone or a full prefix length, as copied from logs; a mapped one is IPv4. */
export function readAddress(text: string): AddressBytes | null {
  const bare = text
    .replace(/^\[([^\]]+)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .replace(/%[\w.-]+$/, '')
    .replace(/\/(32|128)$/, '');
  const bytes = parseAddress(bare);
  if (bytes?.length !== 16) return bytes;
  const isMapped =
    bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  return isMapped ? bytes.subarray(12) : bytes;
}

/** First and last address of a prefix (`192.0.2.0/24`) or of the beginning of an address (`192.0.`, `2001:db8:`), or null. */
export function readAddressRange(text: string): { first: string; last: string } | null {
  const prefix = text.includes('/') ? parsePrefix(text) : (partialIpv4(text) ?? partialIpv6(text));
  if (!prefix) return null;
  const last = Uint8Array.from(prefix.bytes);
  for (let bit = prefix.length; bit < last.length * 8; bit += 1) last[bit >> 3]! |= 128 >> (bit & 7);
  return { first: formatAddress(prefix.bytes), last: formatAddress(last) };
}

/** `192`, `192.0` and `192.0.2.` match all addresses that begin so; a single digit is more likely a number. */
function partialIpv4(text: string) {
  if (!/^\d{1,3}(\.\d{1,3}){0,2}\.$|^\d{1,3}(\.\d{1,3}){1,2}$|^\d{2,3}$/.test(text)) return null;
  const parts = text.split('.').filter((part) => part !== '');
  return parsePrefix(`${[...parts, '0', '0', '0'].slice(0, 4).join('.')}/${parts.length * 8}`);
}

function partialIpv6(text: string) {
  if (!/^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){0,6}:{0,2}$/i.test(text) || !text.includes(':')) return null;
  const parts = text.split(':').filter((part) => part !== '');
  return parsePrefix(`${parts.join(':')}${parts.length < 8 ? '::' : ''}/${parts.length * 16}`);
}
