/** A packet of a capture file for people: ends, protocol, flags. It believes no length that the packet says. */
import { readUint16 } from '#common/bytes/index.ts';
import { formatAddress } from '#common/ip/index.ts';
import { transportName } from '#contracts/ip-protocols.ts';
import type { EvidencePacket } from '#contracts/sensor-api/evidence.ts';

export interface DescribedPacket {
  /** Unix time. */
  atMs: number;
  /** Within the millisecond. */
  microseconds: number;
  /** With the port, where there is one; null where the frame has no IP packet. */
  source: string | null;
  destination: string | null;
  /** Such as `tcp`; `not IP` where the frame has no IP packet. */
  protocol: string;
  /** What the header says beside that, such as TCP's flags. */
  info: string;
  wireLength: number;
}

const link = { ethernet: 1, raw: [12, 14, 101, 228, 229], cooked: 113, cooked2: 276 };
const etherTypes = { ipv4: 0x0800, ipv6: 0x86dd, tags: [0x8100, 0x88a8, 0x9100] };
const protocols = { icmp: 1, tcp: 6, udp: 17, icmp6: 58, sctp: 132 };
const extensions = [0, 43, 60, 135];
const fragmentHeader = 44;
const flagNames = ['FIN', 'SYN', 'RST', 'PSH', 'ACK', 'URG', 'ECE', 'CWR'];

export function describePacket(linkType: number, packet: EvidencePacket): DescribedPacket {
  const { seconds, nanoseconds, wireLength, bytes } = packet;
  const when = {
    atMs: seconds * 1000 + Math.floor(nanoseconds / 1e6),
    microseconds: Math.floor(nanoseconds / 1000) % 1000,
  };
  const { at, vlans } = findIp(linkType, bytes);
  const tags = vlans.map((vlan) => `VLAN ${vlan}`);
  const ip = at === null ? null : readIp(bytes, at);
  if (!ip)
    return {
      ...when,
      source: null,
      destination: null,
      protocol: 'not IP',
      info: tags.join(', '),
      wireLength,
    };
  const { source, destination, protocol, fragment } = ip;
  const transport = fragment.isLater ? noTransport : readTransport(bytes, ip);
  return {
    ...when,
    source: endText(source, transport.sourcePort),
    destination: endText(destination, transport.destinationPort),
    protocol: transportName(protocol),
    info: [...tags, fragment.text, transport.info].filter((text) => text !== '').join(', '),
    wireLength,
  };
}

/** Where the IP packet begins; null: the frame has none. */
function findIp(linkType: number, bytes: Uint8Array): { at: number | null; vlans: number[] } {
  const none = { at: null, vlans: [] };
  if (link.raw.includes(linkType)) return { at: 0, vlans: [] };
  const first = { [link.ethernet]: 12, [link.cooked]: 14, [link.cooked2]: 0 }[linkType];
  if (first === undefined) return none;
  const afterType = linkType === link.cooked2 ? 20 : 2;
  let at = first;
  const vlans: number[] = [];
  while (at + afterType <= bytes.length) {
    const type = readUint16(bytes, at);
    if (type === etherTypes.ipv4 || type === etherTypes.ipv6) return { at: at + afterType, vlans };
    if (!etherTypes.tags.includes(type) || at + 4 > bytes.length) return none;
    vlans.push(readUint16(bytes, at + 2) & 0xfff);
    at += 4;
  }
  return none;
}

interface Ip {
  source: Uint8Array;
  destination: Uint8Array;
  protocol: number;
  transportAt: number;
  fragment: { isLater: boolean; text: string };
}

function readIp(bytes: Uint8Array, at: number): Ip | null {
  const version = (bytes[at] ?? 0) >> 4;
  if (version === 4 && at + 20 <= bytes.length) {
    const offset = (readUint16(bytes, at + 6) & 0x1fff) * 8;
    return {
      source: bytes.subarray(at + 12, at + 16),
      destination: bytes.subarray(at + 16, at + 20),
      protocol: bytes[at + 9]!,
      transportAt: at + (bytes[at]! & 15) * 4,
      fragment: fragmentOf(offset, (bytes[at + 6]! & 0x20) !== 0),
    };
  }
  return version === 6 && at + 40 <= bytes.length ? readIpv6(bytes, at) : null;
}

function readIpv6(bytes: Uint8Array, at: number): Ip {
  let protocol = bytes[at + 6]!;
  let transportAt = at + 40;
  let fragment = fragmentOf(0, false);
  while (transportAt + 8 <= bytes.length && (extensions.includes(protocol) || protocol === fragmentHeader)) {
    const isFragment = protocol === fragmentHeader;
    if (isFragment) {
      const word = readUint16(bytes, transportAt + 2);
      fragment = fragmentOf(word & 0xfff8, (word & 1) !== 0);
    }
    protocol = bytes[transportAt]!;
    transportAt += isFragment ? 8 : (bytes[transportAt + 1]! + 1) * 8;
    if (fragment.isLater) break;
  }
  return {
    source: bytes.subarray(at + 8, at + 24),
    destination: bytes.subarray(at + 24, at + 40),
    ...{ protocol, transportAt, fragment },
  };
}

function fragmentOf(offset: number, hasMore: boolean): Ip['fragment'] {
  if (offset > 0) return { isLater: true, text: `fragment from byte ${offset}` };
  return { isLater: false, text: hasMore ? 'first fragment' : '' };
}

interface Transport {
  sourcePort: number | null;
  destinationPort: number | null;
  info: string;
}

const noTransport: Transport = { sourcePort: null, destinationPort: null, info: '' };

function readTransport(bytes: Uint8Array, { protocol, transportAt: at }: Ip): Transport {
  if (at + 4 > bytes.length) return noTransport;
  if (protocol === protocols.icmp || protocol === protocols.icmp6)
    return { ...noTransport, info: `type ${bytes[at]}, code ${bytes[at + 1]}` };
  if (protocol !== protocols.tcp && protocol !== protocols.udp && protocol !== protocols.sctp)
    return noTransport;
  const ports = { sourcePort: readUint16(bytes, at), destinationPort: readUint16(bytes, at + 2) };
  if (protocol !== protocols.tcp || at + 14 > bytes.length) return { ...ports, info: '' };
  const flags = bytes[at + 13]!;
  const info = flagNames.filter((_, bit) => (flags & (1 << bit)) !== 0).join(' ') || 'no flags';
  return { ...ports, info };
}

function endText(address: Uint8Array, port: number | null): string {
  const text = formatAddress(address);
  if (port === null) return text;
  return text.includes(':') ? `[${text}]:${port}` : `${text}:${port}`;
}
