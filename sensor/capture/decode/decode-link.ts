/**
 * Finds the IP packet in a frame of any supported link type.
 *
 * Every frame gets exactly one verdict: IP, valid but not IP (ARP, LLDP, spanning tree), or dropped because it is
 * truncated or malformed. Tags and labels are walked to any depth; each consumes bytes, so the end of the frame bounds
 * the walk. The link headers of an Ethernet frame must end within its first 1,024 bytes, because counting in the kernel
 * (`sensor/kernel`) reads them there: what has more is malformed, here and there.
 */
import { decodeIp, decodeIpv4, decodeIpv6 } from './decode-ip.ts';
import { type Packet, Verdict } from './packet.ts';

/** Link types as numbered in capture files. */
export const LinkType = {
  null: 0,
  ethernet: 1,
  ppp: 9,
  fddi: 10,
  raw12: 12,
  pppSerial: 50,
  pppoe: 51,
  raw: 101,
  hdlc: 104,
  wifi: 105,
  loop: 108,
  linuxCooked: 113,
  radiotap: 127,
  ipv4: 228,
  ipv6: 229,
  nflog: 239,
  linuxCooked2: 276,
} as const;

/** Bytes of an Ethernet frame that may be link headers; `LINK_BYTES_MAX` of the kernel's program. */
const linkBytesMax = 1024;

const supported = new Set<number>([...Object.values(LinkType), 14]);

/** True when frames of this link type can be decoded. */
export function isSupportedLinkType(linkType: number): boolean {
  return supported.has(linkType);
}

/** Decodes the frame from `at` to `packet.end`. */
export function decodeFrame(packet: Packet, linkType: number, at: number): number {
  packet.macAt = -1;
  packet.vlan = 0;
  packet.linkEnd = packet.end;
  if (linkType === LinkType.ethernet) {
    packet.linkEnd = Math.min(packet.end, at + linkBytesMax);
    return decodeEthernet(packet, at);
  }
  switch (linkType) {
    case LinkType.null:
    case LinkType.loop:
      return decodeLoopback(packet, at);
    case LinkType.ppp:
    case LinkType.pppSerial:
      return decodePpp(packet, at);
    case LinkType.pppoe:
      return at + 6 > packet.end ? Verdict.dropped : decodePppProtocol(packet, at + 6);
    case LinkType.hdlc:
      return decodeHdlc(packet, at);
    case LinkType.fddi:
      return at + 13 > packet.end ? Verdict.dropped : decodeLlc(packet, at + 13);
    case LinkType.raw12:
    case LinkType.raw:
    case 14:
      return decodeIp(packet, at);
    case LinkType.ipv4:
      return decodeIpv4(packet, at);
    case LinkType.ipv6:
      return decodeIpv6(packet, at);
    case LinkType.linuxCooked:
      return decodeCooked(packet, at, 16, 14);
    case LinkType.linuxCooked2:
      return decodeCooked(packet, at, 20, 0);
    case LinkType.nflog:
      return decodeNflog(packet, at);
    case LinkType.radiotap:
      return decodeRadiotap(packet, at);
    case LinkType.wifi:
      return decodeWifi(packet, at, packet.end);
    default:
      return Verdict.dropped;
  }
}

/** Ethernet II and 802.3. */
export function decodeEthernet(packet: Packet, at: number): number {
  if (at + 14 > packet.linkEnd) return Verdict.dropped;
  packet.macAt = at + 6;
  const type = packet.view.getUint16(at + 12);
  if (type === 0x0800) return decodeIpv4(packet, at + 14);
  if (type === 0x86dd) return decodeIpv6(packet, at + 14);
  return type < 1536 ? decodeLlc(packet, at + 14) : decodeEtherType(packet, type, at + 14);
}

/** Decodes the payload of an EtherType: tags, labels and encapsulated frames. */
export function decodeEtherType(packet: Packet, firstType: number, from: number): number {
  const { view, linkEnd: end } = packet;
  let type = firstType;
  let at = from;
  for (;;) {
    switch (type) {
      case 0x0800:
        return decodeIpv4(packet, at);
      case 0x86dd:
        return decodeIpv6(packet, at);
      case 0x8100:
      case 0x88a8:
      case 0x9100:
      case 0x9200:
        if (at + 4 > end) return Verdict.dropped;
        if (packet.vlan === 0) packet.vlan = view.getUint16(at) & 0xfff;
        type = view.getUint16(at + 2);
        at += 4;
        if (type < 1536) return decodeLlc(packet, at);
        break;
      case 0x8926: // VN-tag
        if (at + 6 > end) return Verdict.dropped;
        type = view.getUint16(at + 4);
        at += 6;
        break;
      case 0x893f: // E-tag (802.1BR)
        if (at + 8 > end) return Verdict.dropped;
        type = view.getUint16(at + 6);
        at += 8;
        break;
      case 0x8847:
      case 0x8848:
        return decodeMpls(packet, at);
      case 0x8864:
        return at + 6 > end ? Verdict.dropped : decodePppProtocol(packet, at + 6);
      case 0x88e7: // provider backbone bridging: a service tag, then a complete frame
      case 0x8903: {
        // FabricPath: a complete frame follows its 16 bytes
        const inner = type === 0x88e7 ? at + 4 : at + 2;
        if (inner + 14 > end) return Verdict.dropped;
        type = view.getUint16(inner + 12);
        at = inner + 14;
        if (type < 1536) return decodeLlc(packet, at);
        break;
      }
      default:
        return Verdict.nonIp;
    }
  }
}

function decodeLlc(packet: Packet, at: number): number {
  const { bytes, view, linkEnd: end } = packet;
  if (at + 3 > end) return Verdict.dropped;
  if (bytes[at] === 0x06 && bytes[at + 1] === 0x06) return decodeIp(packet, at + 3);
  const isSnap = bytes[at] === 0xaa && bytes[at + 1] === 0xaa && bytes[at + 2] === 0x03;
  if (!isSnap) return Verdict.nonIp;
  if (at + 8 > end) return Verdict.dropped;
  const organization = view.getUint16(at + 3) | bytes[at + 5]!;
  // 0 is Ethernet, 00-00-F8 the bridge tunnel encapsulation of 802.1H.
  if (organization !== 0 && organization !== 0xf8) return Verdict.nonIp;
  return decodeEtherType(packet, view.getUint16(at + 6), at + 8);
}

function decodeMpls(packet: Packet, from: number): number {
  const { bytes, linkEnd: end } = packet;
  let at = from;
  for (;;) {
    if (at + 4 > end) return Verdict.dropped;
    const isLast = (bytes[at + 2]! & 1) === 1;
    at += 4;
    if (!isLast) continue;
    if (at >= end) return Verdict.dropped;
    const nibble = bytes[at]! >> 4;
    if (nibble === 4) return decodeIpv4(packet, at);
    if (nibble === 6) return decodeIpv6(packet, at);
    // A pseudowire: an optional control word, then an Ethernet frame. No field confirms this; it is a guess.
    return nibble === 0 ? decodeEthernet(packet, at + 4) : Verdict.nonIp;
  }
}

function decodePpp(packet: Packet, at: number): number {
  const { bytes, end } = packet;
  if (at + 2 > end) return Verdict.dropped;
  // Cisco HDLC is recorded as PPP too; its unicast and multicast addresses are not PPP protocols.
  if ((bytes[at] === 0x0f || bytes[at] === 0x8f) && bytes[at + 1] === 0) return decodeHdlc(packet, at);
  const hasAddress = bytes[at] === 0xff && bytes[at + 1] === 0x03;
  return decodePppProtocol(packet, hasAddress ? at + 2 : at);
}

/** Cisco HDLC: address and control, then an EtherType. A PPP address means PPP. */
function decodeHdlc(packet: Packet, at: number): number {
  if (at + 4 > packet.end) return Verdict.dropped;
  if (packet.bytes[at] === 0xff && packet.bytes[at + 1] === 0x03) return decodePppProtocol(packet, at + 2);
  return decodeEtherType(packet, packet.view.getUint16(at + 2), at + 4);
}

/** A PPP protocol number (one byte when odd) and its payload. */
export function decodePppProtocol(packet: Packet, at: number): number {
  const { bytes, view, linkEnd: end } = packet;
  if (at >= end) return Verdict.dropped;
  const isCompressed = (bytes[at]! & 1) === 1;
  if (!isCompressed && at + 2 > end) return Verdict.dropped;
  const protocol = isCompressed ? bytes[at]! : view.getUint16(at);
  const next = isCompressed ? at + 1 : at + 2;
  switch (protocol) {
    case 0x21:
      return decodeIpv4(packet, next);
    case 0x57:
      return decodeIpv6(packet, next);
    case 0x0281: // MPLS, unicast and multicast (RFC 3032)
    case 0x0283:
      return decodeMpls(packet, next);
    case 0x31:
      return decodeBridgedPpp(packet, next);
    case 0x3d:
      return decodeMultilink(packet, next);
    default:
      return Verdict.nonIp;
  }
}

/** Bridging over PPP (RFC 3518): flags, the kind of LAN, its id if the flags say so, then a complete frame. */
function decodeBridgedPpp(packet: Packet, at: number): number {
  if (at + 2 > packet.linkEnd) return Verdict.dropped;
  const hasLanId = (packet.bytes[at]! & 0x40) !== 0;
  return packet.bytes[at + 1] === 1 ? decodeEthernet(packet, at + (hasLanId ? 6 : 2)) : Verdict.nonIp;
}

/**
 * Multilink PPP (RFC 1990) with long sequence numbers. Only an unfragmented packet is decoded; fragments count as not
 * IP.
 */
function decodeMultilink(packet: Packet, at: number): number {
  if (at + 4 > packet.linkEnd) return Verdict.dropped;
  const isWhole = packet.bytes[at]! >> 6 === 3;
  return isWhole ? decodePppProtocol(packet, at + 4) : Verdict.nonIp;
}

/** An address family in the byte order of the capturing machine. The numbers for IPv6 differ between systems. */
function decodeLoopback(packet: Packet, at: number): number {
  if (at + 4 > packet.end) return Verdict.dropped;
  const big = packet.view.getUint32(at);
  const family = big > 0xffff ? packet.view.getUint32(at, true) : big;
  if (family === 2) return decodeIpv4(packet, at + 4);
  if (family === 10 || family === 24 || family === 28 || family === 30) return decodeIpv6(packet, at + 4);
  return Verdict.nonIp;
}

function decodeCooked(packet: Packet, at: number, headerLength: number, typeAt: number): number {
  if (at + headerLength > packet.end) return Verdict.dropped;
  const type = packet.view.getUint16(at + typeAt);
  if (type === 0x0004) return decodeLlc(packet, at + headerLength);
  return type < 1536 ? Verdict.nonIp : decodeEtherType(packet, type, at + headerLength);
}

/** Attributes in the byte order of the capturing machine, each padded to four bytes. Attribute 9 is the packet. */
function decodeNflog(packet: Packet, from: number): number {
  const { bytes, view, end } = packet;
  if (from + 4 > end) return Verdict.dropped;
  const family = bytes[from]!;
  let at = from + 4;
  while (at + 4 <= end) {
    // No field states the byte order. Types are below 256, so the non-zero byte of a type shows it.
    const isLittle = (bytes[at + 3]! & 0x3f) === 0;
    const length = view.getUint16(at, isLittle);
    const type = view.getUint16(at + 2, isLittle) & 0x3fff;
    if (length < 4) return Verdict.dropped;
    if (type === 9) {
      if (family === 2) return decodeIpv4(packet, at + 4);
      if (family === 10) return decodeIpv6(packet, at + 4);
      return Verdict.nonIp;
    }
    at += (length + 3) & ~3;
  }
  return Verdict.dropped;
}

function decodeRadiotap(packet: Packet, at: number): number {
  const { view, bytes } = packet;
  if (at + 8 > packet.end) return Verdict.dropped;
  const headerLength = view.getUint16(at + 2, true);
  const present = view.getUint32(at + 4, true);
  if (headerLength < 8 || at + headerLength > packet.end) return Verdict.dropped;
  // The flags follow the present words and an optional eight-byte clock. 0x10: a checksum follows the frame. 0x20: the
  // header is padded to a multiple of four bytes.
  let field = at + 4;
  while (field + 4 < at + headerLength && (view.getUint32(field, true) & 0x80000000) !== 0) field += 4;
  field += 4;
  if ((present & 1) !== 0) field = at + ((field - at + 7) & ~7) + 8;
  const flags = (present & 2) !== 0 && field < at + headerLength ? bytes[field]! : 0;
  const end = (flags & 0x10) !== 0 ? packet.end - 4 : packet.end;
  return decodeWifi(packet, at + headerLength, end, (flags & 0x20) !== 0);
}

/** 802.11: data frames carry LLC unless they are encrypted. Management and control frames are not IP. */
function decodeWifi(packet: Packet, at: number, end: number, isPadded = false): number {
  const { bytes } = packet;
  if (at + 2 > end) return Verdict.dropped;
  const kind = (bytes[at]! >> 2) & 3;
  const subtype = bytes[at]! >> 4;
  const flags = bytes[at + 1]!;
  if (kind !== 2 || (subtype & 4) !== 0 || (flags & 0x40) !== 0) return Verdict.nonIp;
  let header = 24;
  if ((flags & 3) === 3) header += 6;
  if ((subtype & 8) !== 0) header += 2;
  if ((subtype & 8) !== 0 && (flags & 0x80) !== 0) header += 4;
  if (isPadded) header = (header + 3) & ~3;
  if (at + header > end) return Verdict.dropped;
  packet.macAt = at + 10;
  packet.end = packet.linkEnd = Math.min(packet.end, end);
  return decodeLlc(packet, at + header);
}
