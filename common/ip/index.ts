/**
 * IP addresses and prefixes as text and bytes: strict parsing, canonical text (RFC 5952), and what is globally routable.
 *
 * Parsing is strict: no leading zeros, no zone ids, no shorthand IPv4. An IPv4-mapped IPv6 address stays IPv6.
 */

/** 4 or 16 bytes. */
export type AddressBytes = Uint8Array;

export interface Prefix {
  bytes: AddressBytes;
  length: number;
}

/** Bytes of an address in text form, or null when it is not one. */
export function parseAddress(text: string): AddressBytes | null {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

/** Canonical text of 4 or 16 bytes. */
export function formatAddress(bytes: AddressBytes): string {
  return bytes.length === 4 ? bytes.join('.') : formatIpv6(bytes);
}

/** The canonical spelling, or null when the text is not an address. */
export function canonicalAddress(text: string): string | null {
  // IPv4 has one spelling that is taken, so what parses is canonical.
  if (!text.includes(':')) return readIpv4(text) < 0 ? null : text;
  const bytes = parseAddress(text);
  return bytes ? formatAddress(bytes) : null;
}

/** The link-local IPv6 address that an interface makes of its MAC (RFC 4291, appendix A), in canonical text. */
export function linkLocalOf(mac: string): string {
  const [first, ...rest] = mac.split(':').map((pair) => Number.parseInt(pair, 16)) as [number, ...number[]];
  const id = [first ^ 2, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)];
  return formatAddress(Uint8Array.from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, ...id]));
}

/** Parses `address/length`, or a bare address as a whole-length prefix. Host bits must be zero. Null when malformed. */
export function parsePrefix(text: string): Prefix | null {
  const slash = text.indexOf('/');
  const bytes = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (!bytes) return null;
  const bits = bytes.length * 8;
  const lengthText = slash < 0 ? String(bits) : text.slice(slash + 1);
  if (!/^(0|[1-9]\d{0,2})$/.test(lengthText)) return null;
  const length = Number(lengthText);
  if (length > bits) return null;
  for (let bit = length; bit < bits; bit += 1) {
    if ((bytes[bit >> 3]! >> (7 - (bit & 7))) & 1) return null;
  }
  return { bytes, length };
}

/** Canonical text of a prefix. */
export function formatPrefix(prefix: Prefix): string {
  return `${formatAddress(prefix.bytes)}/${prefix.length}`;
}

/** True when `address` lies in `prefix`; families never mix. */
export function prefixContains(prefix: Prefix, address: AddressBytes): boolean {
  if (prefix.bytes.length !== address.length) return false;
  const whole = prefix.length >> 3;
  for (let i = 0; i < whole; i += 1) if (prefix.bytes[i] !== address[i]) return false;
  const rest = prefix.length & 7;
  return rest === 0 || ((prefix.bytes[whole]! ^ address[whole]!) & (0xff << (8 - rest)) & 0xff) === 0;
}

/** True when the two prefixes share an address. */
export function prefixesOverlap(a: Prefix, b: Prefix): boolean {
  return a.length <= b.length ? prefixContains(a, b.bytes) : prefixContains(b, a.bytes);
}

/** Special-purpose blocks that are not globally reachable (IANA IPv4 and IPv6 registries), and multicast. */
const nonGlobal = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
].map((text) => parsePrefix(text)!);
const documentation = ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24', '2001:db8::/32', '3fff::/20'].map(
  (text) => parsePrefix(text)!,
);
/** Inside 192.0.0.0/24 these are reachable after all. */
const globalExceptions = ['192.0.0.9/32', '192.0.0.10/32'].map((text) => parsePrefix(text)!);
const globalIpv6 = parsePrefix('2000::/3')!;
/** Inside 2000::/3 these are not reachable; exceptions of 2001::/23 follow. */
const nonGlobalIpv6 = ['2001::/23', '2002::/16'].map((text) => parsePrefix(text)!);
const globalExceptionsIpv6 = [
  '2001:1::1/128',
  '2001:1::2/128',
  '2001:1::3/128',
  '2001:3::/32',
  '2001:4:112::/48',
  '2001:20::/28',
  '2001:30::/28',
].map((text) => parsePrefix(text)!);

/**
 * True for globally routable unicast (NET-2.3). Documentation ranges count only where a lab or demo world says so.
 */
export function isGlobalUnicast(address: AddressBytes, documentationIsGlobal = false): boolean {
  const inside = (prefixes: readonly Prefix[]) => prefixes.some((prefix) => prefixContains(prefix, address));
  if (inside(documentation)) return documentationIsGlobal;
  if (address.length === 4) return inside(globalExceptions) || !inside(nonGlobal);
  if (!prefixContains(globalIpv6, address)) return false;
  return inside(globalExceptionsIpv6) || !inside(nonGlobalIpv6);
}

/** Blocks whose addresses mean something inside one network only; what is neither here nor multicast is one address. */
const local = [...nonGlobal, ...['::/8', 'fc00::/6', 'ff00::/8'].map((text) => parsePrefix(text)!)];

/**
 * True when the address names one interface wherever it is seen. Private, shared (CGNAT), link-local and unique local
 * addresses and the like may be used on many networks at once; documentation ranges stand for public ones.
 */
export function isGloballyUnique(address: AddressBytes): boolean {
  return !local.some((prefix) => prefixContains(prefix, address));
}

/** The 32 bits of an IPv4 address, or -1 when the text is none. Makes no object: every row of telemetry passes here. */
export function readIpv4(text: string): number {
  const { length } = text;
  if (length < 7 || length > 15) return -1;
  let address = 0;
  let part = -1;
  let parts = 1;
  for (let i = 0; i < length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 46) {
      if (part < 0) return -1;
      address = address * 256 + part;
      part = -1;
      parts += 1;
    } else {
      // A digit after a zero is a leading zero.
      if (code < 48 || code > 57 || part === 0) return -1;
      part = (part < 0 ? 0 : part * 10) + code - 48;
      if (part > 255) return -1;
    }
  }
  return parts === 4 && part >= 0 ? address * 256 + part : -1;
}

function parseIpv4(text: string): AddressBytes | null {
  const address = readIpv4(text);
  if (address < 0) return null;
  return Uint8Array.of(address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255);
}

function parseIpv6(text: string): AddressBytes | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const head = parseGroups(halves[0]!, halves.length === 1);
  const tail = halves.length === 2 ? parseGroups(halves[1]!, true) : [];
  if (!head || !tail) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  const groups = [...head, ...new Array<number>(missing).fill(0), ...tail];
  const bytes = new Uint8Array(16);
  for (const [i, group] of groups.entries()) {
    bytes[i * 2] = group >> 8;
    bytes[i * 2 + 1] = group & 0xff;
  }
  return bytes;
}

/** Groups of one side of `::`; the last may be dotted IPv4 where `mayEndIpv4`. */
function parseGroups(text: string, mayEndIpv4: boolean): number[] | null {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    if (part.includes('.')) {
      const quad = i === parts.length - 1 && mayEndIpv4 ? parseIpv4(part) : null;
      if (!quad) return null;
      groups.push((quad[0]! << 8) | quad[1]!, (quad[2]! << 8) | quad[3]!);
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(part)) return null;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}

function formatIpv6(bytes: AddressBytes): string {
  const groups: number[] = [];
  for (let i = 0; i < 16; i += 2) groups.push((bytes[i]! << 8) | bytes[i + 1]!);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return `::ffff:${bytes.slice(12).join('.')}`;
  let best = { start: -1, length: 1 };
  for (let start = 0; start < 8; start += 1) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length += 1;
    if (length > best.length) best = { start, length };
  }
  const hex = (part: number[]) => part.map((group) => group.toString(16)).join(':');
  if (best.start < 0) return hex(groups);
  return `${hex(groups.slice(0, best.start))}::${hex(groups.slice(best.start + best.length))}`;
}
