/**
 * One decoded packet: plain numbers that the decoders fill in and the counters read.
 *
 * A single object of this shape is reused for every frame, so decoding allocates nothing. Addresses are four 32-bit
 * words; an IPv4 address lies in the last one and the others are zero.
 */

/** What became of a frame. Exactly one of them counts it. */
export const Verdict = { dropped: 0, nonIp: 1, ip: 2 } as const;

export class Packet {
  bytes: Uint8Array = new Uint8Array(0);
  view: DataView = new DataView(new ArrayBuffer(0));
  /** First byte after what was captured. */
  end = 0;
  /** First byte after what was on the wire; at or behind `end`. */
  wireEnd = 0;

  /** Where the source MAC lies, or -1 where the link has none. */
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
  /** The bytes that count: the IP total length. */
  ipLength = 0;
  /** IP protocol; for IPv6 the next header after the extension headers. */
  protocol = 0;
  /** Where the transport header starts, and the end of the IP packet as far as it was captured. */
  transportAt = 0;
  payloadEnd = 0;

  isFragment = false;
  fragmentOffset = 0;
  hasMoreFragments = false;
  fragmentId = 0;

  /** 0 where the protocol has no ports or they were not captured. */
  sourcePort = 0;
  targetPort = 0;
  /** TCP only; -1 when the header is cut. */
  tcpFlags = -1;
  sequence = 0;
  /** What TCP or UDP carry, as far as captured; `dataAt` equals `dataEnd` where there is nothing. */
  dataAt = 0;
  dataEnd = 0;

  /** Points at another buffer; a view is made only when the buffer is a new one. */
  attach(bytes: Uint8Array): void {
    if (this.bytes === bytes) return;
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}

/** IP protocol numbers that the packet path knows. */
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
