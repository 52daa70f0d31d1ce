/**
 * The fast path for the commonest packets: TCP segments and datagrams of known flows, over Ethernet with at most one
 * tag, that can neither name the flow nor change its kind.
 *
 * `count` does what decoding, look-up, `noteState` and counting do, in one function without a `Packet`. All other
 * packets, and every unusual one, are left unchanged for the slow path.
 */

import { Protocol } from '../decode/packet.ts';
import { isTunnelPort } from '../decode/tunnels.ts';
import { Mode } from '../names/stream-units.ts';
import { Field, Flag } from './flow-record.ts';
import type { FlowTable } from './flow-table.ts';
import type { TouchedFlows } from './touched-flows.ts';

const dnsPort = 53;
const tcpHeaderBytes = 20;
const udpHeaderBytes = 8;

export class KnownPackets {
  /** Flows that are counted here, for a tap; null without one. */
  touched: TouchedFlows | null = null;
  readonly #flows: FlowTable;
  readonly #keepsOwners: boolean;
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));

  constructor(flows: FlowTable, keepsOwners: boolean) {
    this.#flows = flows;
    this.#keepsOwners = keepsOwners;
  }

  /**
   * Counts the Ethernet frame from `at` to `end` as `packets` packets. Returns its IP length, or 0 when the slow path
   * must count it. `vlanTci` is the tag that the kernel removed, -1 for none.
   *
   * It is one function: most packets take this way alone, and calls that V8 does not inline would cost each of them.
   */
  count(
    bytes: Uint8Array,
    at: number,
    end: number,
    vlanTci: number,
    packets: number,
    now: number,
    offsetMs: number,
  ): number {
    // Twenty bytes after the shortest headers cover all reads below, except for longer headers.
    if (at + 14 + 20 + udpHeaderBytes > end) return 0;
    if (this.#bytes !== bytes) this.#attach(bytes);
    const view = this.#view;
    let type = view.getUint16(at + 12);
    let ip = at + 14;
    let vlan = 0;
    if (type === 0x8100) {
      vlan = view.getUint16(ip) & 0xfff;
      type = view.getUint16(ip + 2);
      ip += 4;
    }
    const flows = this.#flows;
    let length: number;
    let protocol: number;
    let transport: number;
    let base: number;
    if (type === 0x0800) {
      transport = ip + 20;
      // Without options, not a fragment, and with the length set by the sender.
      if (transport + udpHeaderBytes > end || bytes[ip] !== 0x45) return 0;
      if ((view.getUint16(ip + 6) & 0x3fff) !== 0) return 0;
      length = view.getUint16(ip + 2);
      protocol = bytes[ip + 9]!;
      if (protocol !== Protocol.tcp && protocol !== Protocol.udp) return 0;
      base = flows.find4(view.getInt32(ip + 12), view.getInt32(ip + 16), view.getInt32(transport), protocol);
    } else if (type === 0x86dd) {
      transport = ip + 40;
      if (transport + udpHeaderBytes > end || bytes[ip]! >> 4 !== 6) return 0;
      length = 40 + view.getUint16(ip + 4);
      protocol = bytes[ip + 6]!;
      if (protocol !== Protocol.tcp && protocol !== Protocol.udp) return 0;
      base = flows.find6(view, ip + 8, view.getInt32(transport), protocol);
    } else return 0;
    if (base < 0) return 0;
    const payloadEnd = ip + length < end ? ip + length : end;
    const { words, side } = flows;
    const before = words[base + Field.flags]!;
    let flags = (before | ((Flag.sent | Flag.said) << side)) & ~Flag.exchange;
    let isSending: boolean;
    if (protocol === Protocol.tcp) {
      if (transport + tcpHeaderBytes > payloadEnd) return 0;
      const bits = bytes[transport + 13]!;
      // An opening or an end changes the flow's kind; a segment without ACK is unusual.
      if ((bits & 0x17) !== 0x10) return 0;
      const headerBytes = (bytes[transport + 12]! >> 4) << 2;
      isSending = headerBytes >= tcpHeaderBytes && transport + headerBytes < payloadEnd;
      // Data of a side whose names are not known yet must be inspected.
      if (isSending && (words[base + Field.stream + side * 3 + 1]! & 0xff) !== Mode.done) return 0;
      if ((flags & (Flag.sent * 3)) === Flag.sent * 3) flags = (flags | Flag.answered) & ~Flag.unanswered;
      if (isSending) flags = (flags | Flag.confirmed | (Flag.data << side)) & ~Flag.unanswered;
      else {
        if (((flags & Flag.clientIsHigher) !== 0) === (side === 1)) flags |= Flag.confirmed;
        isSending =
          (flags & (Flag.answered | Flag.reset)) === Flag.answered &&
          ((flags & (Flag.data * 3)) !== 0 || (flags & Flag.handshakeSeen) === 0);
      }
    } else {
      // The first answer may end an exchange, and data on these ports is inspected.
      if ((before & (Flag.sent << side)) === 0 || transport + udpHeaderBytes > payloadEnd) return 0;
      const ports = words[base + Field.ports]!;
      if (isInspected(ports >>> 16) || isInspected(ports & 0xffff)) return 0;
      const datagram = view.getUint16(transport + 4);
      const dataEnd =
        datagram >= udpHeaderBytes && transport + datagram < payloadEnd ? transport + datagram : payloadEnd;
      isSending = dataEnd > transport + udpHeaderBytes;
    }
    if (this.#keepsOwners) {
      if (vlanTci >= 0 && (vlanTci & 0xfff) !== 0) vlan = vlanTci & 0xfff;
      const mac = base + Field.mac + side * 2;
      // A different MAC than the last one, or the first.
      if (words[mac] !== (view.getUint16(at + 6) | (vlan << 16)) || words[mac + 1] !== view.getInt32(at + 8))
        return 0;
    }
    if ((before & Flag.touched) === 0 && this.touched !== null) {
      this.touched.note(base);
      flags |= Flag.touched;
    }
    if (flags !== before) words[base + Field.flags] = flags;
    flows.sums[((base + Field.bytes) >> 1) + side]! += length;
    words[base + Field.packets + side]! += packets;
    words[base + Field.lastSeen] = now;
    if (isSending) words[base + Field.lastSent + side] = offsetMs;
    return length;
  }

  #attach(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}

/** True for ports of DNS and of tunnels. */
function isInspected(port: number): boolean {
  return port === dnsPort || isTunnelPort(port);
}
