/**
 * Decodes IPv4 and IPv6 headers, extension headers, fragments, and the ports of TCP, UDP and SCTP.
 *
 * A packet with a truncated or contradictory header is dropped. Two lengths come from the wire length instead of the
 * header, because segmentation offload leaves them zero: the IPv4 total length and, before TCP or UDP, the IPv6 payload
 * length.
 */
import { type Packet, Protocol, Verdict } from './packet.ts';

const hopByHop = 0;
const routing = 43;
const fragment = 44;
const authentication = 51;
const destinationOptions = 60;
const extensionHeadersMax = 16;

/** Decodes the IP packet at `at`; its first four bits are the version. */
export function decodeIp(packet: Packet, at: number): number {
  if (at >= packet.end) return Verdict.dropped;
  const version = packet.bytes[at]! >> 4;
  if (version === 4) return decodeIpv4(packet, at);
  return version === 6 ? decodeIpv6(packet, at) : Verdict.dropped;
}

/** Decodes an IPv4 packet. */
export function decodeIpv4(packet: Packet, at: number): number {
  if (at + 20 > packet.end) return Verdict.dropped;
  const { bytes, view } = packet;
  const first = bytes[at]!;
  const headerLength = (first & 15) << 2;
  if (first >> 4 !== 4 || headerLength < 20) return Verdict.dropped;
  let total = view.getUint16(at + 2);
  // A sender that leaves the length to offload is trusted for the other fixed header fields only.
  if (total === 0) total = packet.wireEnd - at;
  else if (total < headerLength || at + headerLength > packet.end) return Verdict.dropped;
  // The first three words of an address are used by IPv6 only.
  if (packet.version !== 4) {
    packet.version = 4;
    packet.source0 = packet.source1 = packet.source2 = 0;
    packet.target0 = packet.target1 = packet.target2 = 0;
  }
  packet.ipLength = total;
  packet.source3 = view.getInt32(at + 12);
  packet.target3 = view.getInt32(at + 16);
  packet.protocol = bytes[at + 9]!;
  const fragmentBits = view.getUint16(at + 6);
  packet.hasMoreFragments = (fragmentBits & 0x2000) !== 0;
  packet.fragmentOffset = (fragmentBits & 0x1fff) << 3;
  packet.isFragment = (fragmentBits & 0x3fff) !== 0;
  packet.fragmentId = view.getUint16(at + 4);
  packet.payloadEnd = Math.min(packet.end, at + total);
  packet.transportAt = Math.min(at + headerLength, packet.payloadEnd);
  decodeTransport(packet);
  return Verdict.ip;
}

/**
 * Decodes an IPv6 packet and walks its extension headers. A truncated extension header ends the walk; the packet still
 * counts.
 */
export function decodeIpv6(packet: Packet, at: number): number {
  if (at + 40 > packet.end) return Verdict.dropped;
  const { bytes, view } = packet;
  if (bytes[at]! >> 4 !== 6) return Verdict.dropped;
  const next = bytes[at + 6]!;
  let total = 40 + view.getUint16(at + 4);
  if (total === 40) total = lengthWithoutPayloadLength(packet, at, next);
  packet.version = 6;
  packet.ipLength = total;
  packet.source0 = view.getInt32(at + 8);
  packet.source1 = view.getInt32(at + 12);
  packet.source2 = view.getInt32(at + 16);
  packet.source3 = view.getInt32(at + 20);
  packet.target0 = view.getInt32(at + 24);
  packet.target1 = view.getInt32(at + 28);
  packet.target2 = view.getInt32(at + 32);
  packet.target3 = view.getInt32(at + 36);
  packet.isFragment = packet.hasMoreFragments = false;
  packet.fragmentOffset = 0;
  packet.payloadEnd = Math.min(packet.end, at + total);
  packet.protocol = next;
  packet.transportAt = at + 40;
  if (next === Protocol.tcp || next === Protocol.udp) decodeTransport(packet);
  else walkExtensionHeaders(packet);
  return Verdict.ip;
}

/** Offload leaves the payload length zero before TCP and UDP. A jumbogram has its length in a hop-by-hop option. */
function lengthWithoutPayloadLength(packet: Packet, at: number, next: number): number {
  const onWire = packet.wireEnd - at;
  if ((next === Protocol.tcp && onWire >= 60) || (next === Protocol.udp && onWire >= 48)) return onWire;
  if (next === hopByHop && at + 48 <= packet.end && packet.view.getUint16(at + 42) === 0xc204) {
    return Math.max(40, 40 + packet.view.getUint32(at + 44));
  }
  return 40;
}

function walkExtensionHeaders(packet: Packet): void {
  const { bytes, view, payloadEnd } = packet;
  let at = packet.transportAt;
  let protocol = packet.protocol;
  for (let count = 0; count < extensionHeadersMax && at + 8 <= payloadEnd; count += 1) {
    if (protocol === hopByHop || protocol === routing || protocol === destinationOptions) {
      protocol = bytes[at]!;
      at += (bytes[at + 1]! + 1) << 3;
    } else if (protocol === authentication) {
      protocol = bytes[at]!;
      at += (bytes[at + 1]! + 2) << 2;
    } else if (protocol === fragment) {
      const fragmentBits = view.getUint16(at + 2);
      packet.fragmentOffset = fragmentBits & 0xfff8;
      packet.hasMoreFragments = (fragmentBits & 1) !== 0;
      // An atomic fragment (RFC 6946) is a complete packet.
      packet.isFragment = (fragmentBits & 0xfff9) !== 0;
      packet.fragmentId = view.getInt32(at + 4);
      protocol = bytes[at]!;
      at += 8;
      if (packet.fragmentOffset > 0) break;
    } else break;
  }
  packet.protocol = protocol;
  packet.transportAt = Math.min(at, payloadEnd);
  decodeTransport(packet);
}

/** Reads ports, TCP flags and the position of the data. Fragments after the first have none of them. */
export function decodeTransport(packet: Packet): void {
  const { bytes, view, protocol, payloadEnd } = packet;
  const at = packet.transportAt;
  packet.sourcePort = packet.targetPort = 0;
  packet.tcpFlags = -1;
  packet.dataAt = packet.dataEnd = payloadEnd;
  if (packet.fragmentOffset > 0) return;
  if (protocol === Protocol.tcp) {
    if (at + 4 > payloadEnd) return;
    packet.sourcePort = view.getUint16(at);
    packet.targetPort = view.getUint16(at + 2);
    if (at + 14 > payloadEnd) return;
    packet.tcpFlags = bytes[at + 13]!;
    packet.sequence = view.getInt32(at + 4);
    const headerLength = (bytes[at + 12]! >> 4) << 2;
    if (headerLength >= 20 && at + headerLength < payloadEnd) packet.dataAt = at + headerLength;
  } else if (protocol === Protocol.udp) {
    if (at + 4 > payloadEnd) return;
    packet.sourcePort = view.getUint16(at);
    packet.targetPort = view.getUint16(at + 2);
    if (at + 8 > payloadEnd) return;
    packet.dataAt = at + 8;
    // Zero means a jumbogram or offload. Any other length may end the data before the IP packet ends.
    const length = view.getUint16(at + 4);
    if (length >= 8 && at + length < payloadEnd) packet.dataEnd = at + length;
  } else if (protocol === Protocol.sctp && at + 4 <= payloadEnd) {
    packet.sourcePort = view.getUint16(at);
    packet.targetPort = view.getUint16(at + 2);
  }
}
