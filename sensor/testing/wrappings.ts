/**
 * Every supported encapsulation of an IP packet: links, tags, labels, and tunnels. The names in a packet must be the
 * same in all of them.
 */
import { ascii, ethernet, ip, join, u16, u32, udp } from './frames.ts';

export interface Wrapping {
  name: string;
  linkType: number;
  /** The tunnel's name if bytes count outside; null when only the link differs. */
  tunnel: string | null;
  /** The frame, or null when it can not carry this version of IP. */
  wrap(packet: Uint8Array): Uint8Array | null;
}

const outer = { from: '198.51.100.1', to: '198.51.100.2' };
const outer6 = { from: '2001:db8:f::1', to: '2001:db8:f::2' };

function etherType(packet: Uint8Array): number {
  return packet[0]! >> 4 === 6 ? 0x86dd : 0x0800;
}

function pppProtocol(packet: Uint8Array): number {
  return packet[0]! >> 4 === 6 ? 0x57 : 0x21;
}

function link(name: string, linkType: number, wrap: Wrapping['wrap']): Wrapping {
  return { name, linkType, tunnel: null, wrap };
}

/** A tunnel over IPv4, as an Ethernet frame. */
function tunnel(name: string, kind: string, build: (packet: Uint8Array) => Uint8Array | null): Wrapping {
  return {
    name,
    linkType: 1,
    tunnel: kind,
    wrap: (packet) => {
      const built = build(packet);
      return built ? ethernet(built) : null;
    },
  };
}

function overUdp(port: number, payload: Uint8Array): Uint8Array {
  return udp({ ...outer, fromPort: 50_000, toPort: port }, payload);
}

function isVersion(packet: Uint8Array, version: number): boolean {
  return packet[0]! >> 4 === version;
}

const qinq = (packet: Uint8Array) =>
  join(new Uint8Array(12).fill(2), u16(0x88a8), u16(7), u16(0x8100), u16(9), u16(etherType(packet)), packet);
const snap = (packet: Uint8Array) => join([0xaa, 0xaa, 3, 0, 0, 0], u16(etherType(packet)), packet);

/** All encapsulations. */
export const wrappings: readonly Wrapping[] = [
  link('ethernet', 1, (packet) => ethernet(packet)),
  link('802.1Q', 1, (packet) => ethernet(packet, { tags: [100] })),
  link('802.1ad', 1, qinq),
  link('MPLS', 1, (packet) => ethernet(join(u32(0x00010040), u32(0x00011140), packet), { type: 0x8847 })),
  link('MPLS pseudowire', 1, (packet) =>
    ethernet(join(u32(0x00011140), u32(0), ethernet(packet)), { type: 0x8847 }),
  ),
  link('PPPoE', 1, (packet) =>
    ethernet(join([0x11, 0], u16(1), u16(packet.length + 2), u16(pppProtocol(packet)), packet), {
      type: 0x8864,
    }),
  ),
  link('LLC/SNAP', 1, (packet) =>
    packet.length < 1400 ? ethernet(snap(packet), { type: packet.length + 8 }) : null,
  ),
  link('raw IP', 101, (packet) => packet),
  link('Linux cooked v1', 113, (packet) => join(new Uint8Array(14), u16(etherType(packet)), packet)),
  link('Linux cooked v2', 276, (packet) => join(u16(etherType(packet)), new Uint8Array(18), packet)),
  link('loopback', 0, (packet) => join([isVersion(packet, 6) ? 10 : 2, 0, 0, 0], packet)),
  link('OpenBSD loopback', 108, (packet) => join([0, 0, 0, isVersion(packet, 6) ? 24 : 2], packet)),
  link('NFLOG', 239, (packet) => {
    const length = packet.length + 4;
    const attribute = join([length & 255, length >> 8, 9, 0], packet);
    return join([isVersion(packet, 6) ? 10 : 2, 0, 0, 0], [8, 0, 1, 0, 0, 0, 0, 0], attribute);
  }),
  link('NFLOG, big-endian', 239, (packet) => {
    const prefix = join(u16(9), u16(10), ascii('drop'), [0, 0, 0, 0]);
    return join([isVersion(packet, 6) ? 10 : 2, 0, 0, 0], prefix, u16(packet.length + 4), u16(9), packet);
  }),
  link('radiotap', 127, (packet) =>
    join([0, 0, 8, 0, 0, 0, 0, 0], [0x08, 0x01], new Uint8Array(22), snap(packet)),
  ),
  link('radiotap, filled up', 127, (packet) =>
    join([0, 0, 9, 0, 2, 0, 0, 0, 0x20], [0x88, 0x01], new Uint8Array(26), snap(packet)),
  ),
  link('PPP', 9, (packet) => join([0xff, 3], u16(pppProtocol(packet)), packet)),
  link('MPLS over PPP', 9, (packet) =>
    join([0xff, 3], u16(0x0281), u32(0x00010040), u32(0x00011140), packet),
  ),
  link('MPLS over PPP over Ethernet', 1, (packet) =>
    ethernet(join([0x11, 0], u16(1), u16(packet.length + 6), u16(0x0281), u32(0x00011140), packet), {
      type: 0x8864,
    }),
  ),
  link('bridged PPP', 9, (packet) => join([0xff, 3, 0x00, 0x31, 0x00, 1], ethernet(packet))),
  link('multilink PPP', 9, (packet) =>
    join([0xff, 3, 0x00, 0x3d, 0xc0, 0, 0, 1], u16(pppProtocol(packet)), packet),
  ),
  link('MPLS over Cisco HDLC', 104, (packet) => join([0x0f, 0], u16(0x8847), u32(0x00011140), packet)),
  link('Cisco HDLC', 104, (packet) => join([0x0f, 0], u16(etherType(packet)), packet)),
  tunnel('GRE', 'gre', (packet) =>
    ip(join(u16(0), u16(etherType(packet)), packet), { ...outer, protocol: 47 }),
  ),
  tunnel('GRE with key and sequence', 'gre', (packet) =>
    ip(join(u16(0x3000), u16(etherType(packet)), u32(7), u32(8), packet), { ...outer, protocol: 47 }),
  ),
  tunnel('GRE with Ethernet', 'gre', (packet) =>
    ip(join(u16(0), u16(0x6558), ethernet(packet, { tags: [5] })), { ...outer, protocol: 47 }),
  ),
  tunnel('IPIP', 'ipip', (packet) => (isVersion(packet, 4) ? ip(packet, { ...outer, protocol: 4 }) : null)),
  tunnel('6in4', '6in4', (packet) => (isVersion(packet, 6) ? ip(packet, { ...outer, protocol: 41 }) : null)),
  tunnel('4in6', '4in6', (packet) => (isVersion(packet, 4) ? ip(packet, { ...outer6, protocol: 4 }) : null)),
  tunnel('VXLAN', 'vxlan', (packet) =>
    overUdp(4789, join([8, 0, 0, 0, 0, 0, 1, 0], ethernet(packet, { tags: [3] }))),
  ),
  tunnel('Geneve with options', 'geneve', (packet) =>
    overUdp(6081, join([2, 0], u16(0x6558), [0, 0, 7, 0], new Uint8Array(8), ethernet(packet))),
  ),
  tunnel('GTP-U with extension', 'gtp', (packet) =>
    overUdp(2152, join([0x34, 0xff], u16(packet.length + 8), u32(9), [0, 0, 0, 0x85], [1, 0, 9, 0], packet)),
  ),
  tunnel('VXLAN in VXLAN', 'vxlan/vxlan', (packet) => {
    const first = overUdp(4789, join([8, 0, 0, 0, 0, 0, 1, 0], ethernet(packet)));
    return overUdp(4789, join([8, 0, 0, 0, 0, 0, 2, 0], ethernet(first)));
  }),
];
