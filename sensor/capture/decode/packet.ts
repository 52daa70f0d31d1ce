/**
 * One decoded packet: plain numbers, written by the decoders and read by the counters.
 *
 * One object of this shape is reused for every frame, so decoding does not allocate. Addresses are four 32-bit words;
 * an IPv4 address is in the last one and the others are zero.
 */

/** Result for a frame; each frame has exactly one. */
export const Verdict = { dropped: 0, nonIp: 1, ip: 2 } as const;

export class Packet {
  bytes: Uint8Array = new Uint8Array(0);
  view: DataView = new DataView(new ArrayBuffer(0));
  /** Index after the last captured byte. */
  end = 0;
  /** Index after the last byte on the wire; at least `end`. */
  wireEnd = 0;
  /** Index after the last byte that link headers are read from; at most `end`. */
  linkEnd = 0;

  /** Position of the source MAC, or -1 when the link has none. */
  macAt = -1;
  /** Outermost VLAN, 0 for none. */
  vlan = 0;

  /** 4 or 6. */
  version = 0;
  source0 = 0;
  source1 = 0;
  source2 = 0;
  source3 = 0;
  target0 = 0;
  target1 = 0;
  target2 = 0;
  target3 = 0;
  /** Bytes to count: the IP total length. */
  ipLength = 0;
  /** IP protocol; for IPv6 the next header after the extension headers. */
  protocol = 0;
  /** Start of the transport header, and end of the captured part of the IP packet. */
  transportAt = 0;
  payloadEnd = 0;

  isFragment = false;
  fragmentOffset = 0;
  hasMoreFragments = false;
  fragmentId = 0;

  /** 0 when the protocol has no ports or they were not captured. */
  sourcePort = 0;
  targetPort = 0;
  /** TCP only; -1 when the header is truncated. */
  tcpFlags = -1;
  sequence = 0;
  /** Captured data of TCP or UDP; `dataAt` equals `dataEnd` when there is none. */
  dataAt = 0;
  dataEnd = 0;

  /** Sets the buffer; a view is made only for a new buffer. */
  attach(bytes: Uint8Array): void {
    if (this.bytes === bytes) return;
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}

/** IP protocol numbers used in the packet path. */
export const Protocol = {
  icmp: 1,
  igmp: 2,
  ipip: 4,
  tcp: 6,
  udp: 17,
  ipv6: 41,
  gre: 47,
  esp: 50,
  ah: 51,
  icmp6: 58,
  ospf: 89,
  sctp: 132,
} as const;
