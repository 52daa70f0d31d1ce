/**
 * Decodes packets inside packets, for names only: bytes count on the outermost header.
 *
 * A tunnel is recognized by its IP protocol (IP in IP, GRE) or by a well-known UDP port on either end (VXLAN, Geneve,
 * GTP-U, GRE in UDP, Teredo, AYIYA). Data that does not decode is not a tunnel.
 */
import { readUint16 } from '#common/bytes/index.ts';
import { decodeIp, decodeIpv4, decodeIpv6 } from './decode-ip.ts';
import { decodeEthernet, decodeEtherType, decodePppProtocol } from './decode-link.ts';
import { type Packet, Protocol, Verdict } from './packet.ts';

/** Ids of nested tunnel paths; 0 is the path outside of all tunnels. */
export class TunnelPaths {
  readonly #texts: string[] = [''];

  /** Id of `kind` inside `parent`. There are at most 255 ids; further paths get the same one. */
  id(parent: number, kind: string): number {
    const path = parent === 0 ? kind : `${this.#texts[parent]}/${kind}`;
    const known = this.#texts.indexOf(path);
    if (known >= 0) return known;
    if (this.#texts.length > 255) return 255;
    this.#texts.push(path);
    return this.#texts.length - 1;
  }

  /** Names of the tunnels, outermost first, joined by `/`; empty for no tunnel. */
  text(id: number): string {
    return this.#texts[id]!;
  }
}

/** False for most packets, at little cost: those that can not carry inner packets. */
export function mayCarryPackets(packet: Packet): boolean {
  const { protocol } = packet;
  if (protocol === Protocol.udp) return isTunnelPort(packet.targetPort) || isTunnelPort(packet.sourcePort);
  return protocol === Protocol.ipip || protocol === Protocol.ipv6 || protocol === Protocol.gre;
}

/** True for the ports of tunnels over UDP. */
export function isTunnelPort(port: number): boolean {
  switch (port) {
    case 2152:
    case 3544:
    case 4754:
    case 4789:
    case 5072:
    case 6081:
    case 8472:
      return true;
    default:
      return false;
  }
}

/** Decodes the content of `outer` into `inner`. Returns the tunnel's name, or null when there is no inner packet. */
export function openTunnel(outer: Packet, inner: Packet): string | null {
  inner.attach(outer.bytes);
  inner.macAt = -1;
  inner.vlan = 0;
  inner.end = inner.linkEnd = inner.wireEnd = outer.payloadEnd;
  const at = outer.transportAt;
  if (outer.isFragment && outer.fragmentOffset > 0) return null;
  if (outer.protocol === Protocol.ipip)
    return named(decodeIpv4(inner, at), outer.version === 4 ? 'ipip' : '4in6');
  if (outer.protocol === Protocol.ipv6)
    return named(decodeIpv6(inner, at), outer.version === 4 ? '6in4' : '6in6');
  if (outer.protocol === Protocol.gre) return named(decodeGre(inner, at), 'gre');
  if (outer.protocol !== Protocol.udp || outer.dataAt >= outer.dataEnd) return null;
  inner.end = inner.linkEnd = inner.wireEnd = outer.dataEnd;
  return openUdp(outer.targetPort, inner, outer.dataAt) ?? openUdp(outer.sourcePort, inner, outer.dataAt);
}

function named(verdict: number, name: string): string | null {
  return verdict === Verdict.ip ? name : null;
}

function openUdp(port: number, inner: Packet, at: number): string | null {
  switch (port) {
    case 4789:
    case 8472:
      return named(decodeVxlan(inner, at), 'vxlan');
    case 6081:
      return named(decodeGeneve(inner, at), 'geneve');
    case 2152:
      return named(decodeGtp(inner, at), 'gtp');
    case 4754:
      return named(decodeGre(inner, at), 'udp/gre');
    case 3544:
      return named(decodeTeredo(inner, at), 'teredo');
    case 5072:
      return named(decodeAyiya(inner, at), 'ayiya');
    default:
      return null;
  }
}

function decodeVxlan(inner: Packet, at: number): number {
  if (at + 8 > inner.end || (inner.bytes[at]! & 0x08) === 0) return Verdict.nonIp;
  return decodeEthernet(inner, at + 8);
}

function decodeGeneve(inner: Packet, at: number): number {
  if (at + 8 > inner.end || inner.bytes[at]! >> 6 !== 0) return Verdict.nonIp;
  const next = at + 8 + ((inner.bytes[at]! & 0x3f) << 2);
  const type = readUint16(inner.bytes, at + 2);
  return type === 0x6558 ? decodeEthernet(inner, next) : decodeEtherType(inner, type, next);
}

/** GTP version 1, user data only, after any extension headers. */
function decodeGtp(inner: Packet, at: number): number {
  const { bytes, end } = inner;
  if (at + 8 > end || bytes[at]! >> 5 !== 1 || bytes[at + 1] !== 0xff) return Verdict.nonIp;
  const flags = bytes[at]! & 7;
  let next = at + 8;
  if (flags !== 0) {
    next += 4;
    let extension = (flags & 4) !== 0 ? bytes[next - 1]! : 0;
    while (extension !== 0) {
      if (next + 4 > end || bytes[next] === 0) return Verdict.nonIp;
      next += bytes[next]! << 2;
      if (next > end) return Verdict.nonIp;
      extension = bytes[next - 1]!;
    }
  }
  return decodeIp(inner, next);
}

/** GRE with its optional fields; version 1 is used by PPTP. */
function decodeGre(inner: Packet, at: number): number {
  const { bytes, end } = inner;
  if (at + 4 > end) return Verdict.nonIp;
  const flags = readUint16(bytes, at);
  const type = readUint16(bytes, at + 2);
  const version = flags & 7;
  if (version > 1 || (flags & 0x4000) !== 0) return Verdict.nonIp;
  let next = at + 4;
  if ((flags & 0x8000) !== 0) next += 4;
  if ((flags & 0x2000) !== 0) next += 4;
  if ((flags & 0x1000) !== 0) next += 4;
  if (version === 1 && (flags & 0x0080) !== 0) next += 4;
  if (next >= end) return Verdict.nonIp;
  if (type === 0x880b) {
    const hasAddress = bytes[next] === 0xff && bytes[next + 1] === 0x03;
    return decodePppProtocol(inner, hasAddress ? next + 2 : next);
  }
  if (type === 0x6558) return decodeEthernet(inner, next);
  if (type === 0x22eb) return decodeErspanThree(inner, next);
  if (type === 0x88be) return decodeEthernet(inner, (flags & 0x1000) !== 0 ? next + 8 : next);
  return decodeEtherType(inner, type, next);
}

/** A header of twelve bytes, and eight more if its last bit is set. */
function decodeErspanThree(inner: Packet, at: number): number {
  if (at + 12 > inner.end) return Verdict.nonIp;
  return decodeEthernet(inner, (inner.bytes[at + 11]! & 1) === 1 ? at + 20 : at + 12);
}

/** An authentication header and an origin header may come first. */
function decodeTeredo(inner: Packet, from: number): number {
  const { bytes, end } = inner;
  let at = from;
  if (at + 4 <= end && readUint16(bytes, at) === 1) at += 13 + bytes[at + 2]! + bytes[at + 3]!;
  if (at + 8 <= end && readUint16(bytes, at) === 0) at += 8;
  return decodeIpv6(inner, at);
}

function decodeAyiya(inner: Packet, at: number): number {
  const { bytes, end } = inner;
  if (at + 8 > end || (bytes[at + 2]! & 15) !== 1) return Verdict.nonIp;
  const next = at + 8 + (1 << (bytes[at]! >> 4)) + ((bytes[at + 1]! >> 4) << 2);
  if (bytes[at + 3] === 41) return decodeIpv6(inner, next);
  return bytes[at + 3] === 4 ? decodeIpv4(inner, next) : Verdict.nonIp;
}
