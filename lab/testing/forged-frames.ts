/**
 * Frames that a guest must not send, by what is forged in them, and those of a guest's ordinary life. Tests know each again by a trailer
 * that no receiver reads.
 */
import { readFileSync } from 'node:fs';
import { formatAddress, linkLocalOf, parseAddress } from '#common/ip/index.ts';
import type { GuardReason } from '#contracts/guard-reasons.ts';
import { ascii, ip, join, tcp, u16, udp } from '#sensor/testing/frames.ts';

export interface Interface {
  mac: string;
  ipv4: string;
  ipv6: string;
}

export interface TestFrame {
  kind: string;
  /** Why the guard drops it; null for one of ordinary life. */
  reason: GuardReason | null;
  bytes: Uint8Array;
}

const macBytes = (mac: string) => mac.split(':').map((pair) => Number.parseInt(pair, 16));
const bytesOf = (address: string) => parseAddress(address)!;
const everyone = 'ff:ff:ff:ff:ff:ff';
const type = { ipv4: 0x0800, arp: 0x0806, ipv6: 0x86dd, vlan: 0x8100, provider: 0x88a8 };
const icmpv6 = 58;

/** All frames of `own`, which sends, with `other`, whom it forges. */
export function testFrames(own: Interface, other: Interface): TestFrame[] {
  const build = createBuilder(own);
  return [
    ...forgedSources(build, own, other),
    ...forgedClaims(build, own, other),
    ...ordinary(build, own, other),
  ];
}

/** The frames with trailers of this needle, which has at least 16 random characters. */
export function markFrames(frames: readonly TestFrame[], needle: string): TestFrame[] {
  return frames.map((frame, i) => ({ ...frame, bytes: join(frame.bytes, ascii(`${needle}#${i};`)) }));
}

/** Those of the marked frames that a capture file holds, in their order. */
export function markedIn(file: string, frames: readonly TestFrame[], needle: string): TestFrame[] {
  const text = readFileSync(file, 'latin1');
  const seen = new Set(
    [...text.matchAll(new RegExp(`${needle}#(\\d+);`, 'g'))].map((match) => Number(match[1])),
  );
  return frames.filter((_, i) => seen.has(i));
}

type Builder = ReturnType<typeof createBuilder>;

function createBuilder(own: Interface) {
  return (
    kind: string,
    reason: GuardReason | null,
    ethertype: number | readonly number[],
    payload: Uint8Array,
    ends: { source?: string; target?: string } = {},
  ): TestFrame => ({
    kind,
    reason,
    bytes: join(
      macBytes(ends.target ?? '02:00:00:00:00:fe'),
      macBytes(ends.source ?? own.mac),
      typeof ethertype === 'number' ? u16(ethertype) : ethertype,
      payload,
    ),
  });
}

const datagram = (from: string, to: string, fromPort = 40_000, toPort = 9) =>
  udp({ from, fromPort, to, toPort }, ascii('payload'));

function arp(
  operation: number,
  sender: { mac: string; ip: string },
  target: { mac: string; ip: string },
  head = [0, 1, 8, 0, 6, 4],
) {
  return join(
    head,
    u16(operation),
    macBytes(sender.mac),
    bytesOf(sender.ip),
    macBytes(target.mac),
    bytesOf(target.ip),
  );
}

/** An ICMPv6 message behind extension headers, each of 8 bytes and given by its number. */
function message(from: string, to: string, body: Uint8Array, extensions: readonly number[] = []): Uint8Array {
  const chain = [...extensions, icmpv6];
  const headers = extensions.map((_, i) => [chain[i + 1]!, 0, 1, 4, 0, 0, 0, 0]);
  return ip(join(headers.flat(), body), { from, to, protocol: chain[0]! });
}

const hopByHop = 0;
const destination = 60;
const fragmentHeader = 44;

/** A fragment of an IPv6 packet; `offset` in bytes. */
function fragment6(
  from: string,
  to: string,
  next: number,
  part: Uint8Array,
  { offset = 0, more = false } = {},
): Uint8Array {
  const header = [next, 0, ...u16(offset | (more ? 1 : 0)), 0, 0, 0, 77];
  return ip(join(header, part), { from, to, protocol: fragmentHeader });
}

/** Neighbor discovery: type, the rest of its first eight bytes, then what follows. */
const discovery = (kind: number, flags: readonly number[], ...parts: (Uint8Array | readonly number[])[]) =>
  join([kind, 0, 0, 0], flags, ...parts);
const none = [0, 0, 0, 0];
const isSolicitedOverride = [0x60, 0, 0, 0];
const macOption = (kind: 1 | 2, mac: string) => [kind, 1, ...macBytes(mac)];
const nonce = [14, 1, 1, 2, 3, 4, 5, 6];
const solicitation = (target: string, ...options: (readonly number[])[]) =>
  discovery(135, none, bytesOf(target), options.flat());
const advertisement = (target: string, ...options: (readonly number[])[]) =>
  discovery(136, isSolicitedOverride, bytesOf(target), options.flat());
const routerAdvertisement = discovery(134, [64, 0, 7, 8], none, none, macOption(1, '52:54:00:00:00:99'));
const solicitedNode = (address: string) =>
  formatAddress(
    Uint8Array.from([...bytesOf('ff02::1:ff00:0').subarray(0, 13), ...bytesOf(address).subarray(13)]),
  );
const allNodes = 'ff02::1';
const allRouters = 'ff02::2';

/** Whose frame it is: MACs, source addresses, tags and protocols. */
function forgedSources(build: Builder, own: Interface, other: Interface): TestFrame[] {
  const otherLocal = linkLocalOf(other.mac);
  const [to4, to6] = ['198.51.100.1', '2001:db8:51::1'];
  const tag = (id: number, inner: number) => [...u16(type.vlan), ...u16(id), ...u16(inner)];
  const own4 = datagram(own.ipv4, to4);
  const own6 = datagram(own.ipv6, to6);
  const address4 = (kind: string, packet: Uint8Array) => build(kind, 'address', type.ipv4, packet);
  const address6 = (kind: string, packet: Uint8Array) => build(kind, 'address', type.ipv6, packet);
  return [
    build('IPv4 from another server’s MAC', 'mac', type.ipv4, own4, { source: other.mac }),
    build('IPv6 from another server’s MAC', 'mac', type.ipv6, own6, { source: other.mac }),
    build('another server’s MAC and IPv4', 'mac', type.ipv4, datagram(other.ipv4, to4), {
      source: other.mac,
    }),
    build('another server’s MAC and IPv6', 'mac', type.ipv6, datagram(other.ipv6, to6), {
      source: other.mac,
    }),
    build('a MAC that no one has', 'mac', type.ipv4, own4, { source: '52:54:00:00:00:99' }),
    build('the gateway’s MAC', 'mac', type.ipv4, own4, { source: '52:54:00:5e:01:01' }),
    build(
      'ARP from another server’s MAC',
      'mac',
      type.arp,
      arp(2, { mac: other.mac, ip: other.ipv4 }, { mac: everyone, ip: other.ipv4 }),
      { source: other.mac },
    ),
    build('LLDP from another server’s MAC', 'mac', 0x88cc, ascii('lldp'), {
      source: other.mac,
      target: '01:80:c2:00:00:0e',
    }),
    address4('UDP from another server’s IPv4', datagram(other.ipv4, to4)),
    address6('UDP from another server’s IPv6', datagram(other.ipv6, to6)),
    address4(
      'TCP from another server’s IPv4',
      tcp({ from: other.ipv4, fromPort: 40_000, to: to4, toPort: 80 }, 2, 1),
    ),
    address6(
      'TCP from another server’s IPv6',
      tcp({ from: other.ipv6, fromPort: 40_000, to: to6, toPort: 80 }, 2, 1),
    ),
    address4(
      'ICMP from another server’s IPv4',
      ip(new Uint8Array([8, 0, 0, 0, 0, 1, 0, 1]), { from: other.ipv4, to: to4, protocol: 1 }),
    ),
    address6(
      'ICMPv6 from another server’s IPv6',
      message(other.ipv6, to6, new Uint8Array([128, 0, 0, 0, 0, 1, 0, 1])),
    ),
    address4('the gateway’s IPv4', datagram('203.0.113.1', to4)),
    address6('the gateway’s IPv6', datagram('2001:db8:113::1', to6)),
    address4('a private IPv4', datagram('10.0.0.1', to4)),
    address6('a unique local IPv6', datagram('fd00::1', to6)),
    address4('an IPv4 of the network that no one has', datagram('203.0.113.240', to4)),
    address6('a privacy address of the prefix', datagram('2001:db8:113:0:a1b2:c3d4:e5f6:789', to6)),
    address4('loopback', datagram('127.0.0.1', to4)),
    address6('loopback of IPv6', datagram('::1', to6)),
    address4('IPv4 multicast as the source', datagram('224.0.0.5', to4)),
    address6('IPv6 multicast as the source', datagram('ff02::5', to6)),
    address4('no IPv4 and no DHCP', datagram('0.0.0.0', to4)),
    address4('a DHCP client’s ports without broadcast', datagram('0.0.0.0', to4, 68, 67)),
    address4(
      'IGMP from no address to a server',
      ip(new Uint8Array(8), { from: '0.0.0.0', to: to4, protocol: 2 }),
    ),
    address6('no IPv6 and no discovery', datagram('::', to6)),
    address6('another server’s link-local address', datagram(otherLocal, allNodes)),
    address6('a router’s link-local address', datagram('fe80::1', allNodes)),
    address4(
      'a first fragment from another’s IPv4',
      ip(new Uint8Array(16), { from: other.ipv4, to: to4, protocol: 17, id: 7, more: true }),
    ),
    address4(
      'a last fragment from another’s IPv4',
      ip(new Uint8Array(16), { from: other.ipv4, to: to4, protocol: 17, id: 7, offset: 16 }),
    ),
    address6(
      'a first fragment from another’s IPv6',
      fragment6(other.ipv6, to6, 17, new Uint8Array(16), { more: true }),
    ),
    address6(
      'a last fragment from another’s IPv6',
      fragment6(other.ipv6, to6, 17, new Uint8Array(16), { offset: 16 }),
    ),
    address6(
      'another’s IPv6 behind hop-by-hop options',
      message(other.ipv6, to6, new Uint8Array([128, 0, 0, 0, 0, 1, 0, 1]), [hopByHop]),
    ),
    build('an IPv4 packet in a VLAN', 'vlan', tag(100, type.ipv4), own4),
    build('an IPv6 packet in a VLAN', 'vlan', tag(100, type.ipv6), own6),
    build('a priority tag', 'vlan', tag(0, type.ipv4), own4),
    build('another’s IPv4 in a VLAN', 'vlan', tag(100, type.ipv4), datagram(other.ipv4, to4)),
    build('two tags', 'vlan', [...tag(1, type.vlan), ...u16(100), ...u16(type.ipv4)], own4),
    build('a provider’s tag', 'vlan', [...u16(type.provider), ...u16(100), ...u16(type.ipv4)], own4),
    build('a spanning tree’s root', 'ethertype', 38, join([0x42, 0x42, 3], new Uint8Array(35)), {
      target: '01:80:c2:00:00:00',
    }),
    build('LLDP', 'ethertype', 0x88cc, ascii('lldp'), { target: '01:80:c2:00:00:0e' }),
    build('PPPoE', 'ethertype', 0x8863, new Uint8Array(8)),
    build('MPLS', 'ethertype', 0x8847, own4),
    build(
      'RARP',
      'ethertype',
      0x8035,
      arp(3, { mac: own.mac, ip: '0.0.0.0' }, { mac: own.mac, ip: '0.0.0.0' }),
    ),
    build('EtherType of experiments', 'ethertype', 0x88b5, ascii('experiment')),
    build('IPv4 in 802.3 with SNAP', 'ethertype', 38, join([0xaa, 0xaa, 3, 0, 0, 0, 8, 0], own4)),
    build(
      'discovery from another’s link-local address',
      'address',
      type.ipv6,
      message(otherLocal, allNodes, advertisement(other.ipv6, macOption(2, own.mac))),
    ),
    build(
      'a router’s advertisement from its address',
      'address',
      type.ipv6,
      message('fe80::1', allNodes, routerAdvertisement),
    ),
    build(
      'an IPv6 header with a length beyond the frame',
      'header',
      type.ipv6,
      withLength(datagram(own.ipv6, to6)),
    ),
  ];
}

/** The packet with a length that its frame can not hold. */
function withLength(packet: Uint8Array): Uint8Array {
  const copy = packet.slice();
  copy[copy[0]! >> 4 === 6 ? 4 : 2] = 0x7f;
  return copy;
}

/** What it says of addresses: ARP, neighbor discovery, router advertisements, DHCP. */
function forgedClaims(build: Builder, own: Interface, other: Interface): TestFrame[] {
  const local = linkLocalOf(own.mac);
  const broadcast = { mac: everyone, ip: other.ipv4 };
  const forArp = (kind: string, body: Uint8Array) => build(kind, 'arp', type.arp, body, { target: everyone });
  const neighbor = (kind: string, body: Uint8Array, from = local) =>
    build(kind, 'neighbor', type.ipv6, message(from, allNodes, body));
  const packet6 = (kind: string, reason: GuardReason, packet: Uint8Array) =>
    build(kind, reason, type.ipv6, packet);
  const mine = { mac: own.mac, ip: own.ipv4 };
  const first = routerAdvertisement.subarray(0, 8);
  return [
    forArp(
      'an ARP reply for another server',
      arp(2, { mac: own.mac, ip: other.ipv4 }, { mac: everyone, ip: other.ipv4 }),
    ),
    forArp(
      'a gratuitous ARP request for another server',
      arp(1, { mac: own.mac, ip: other.ipv4 }, broadcast),
    ),
    forArp('an ARP reply for the gateway', arp(2, { mac: own.mac, ip: '203.0.113.1' }, broadcast)),
    forArp('an ARP reply that names another MAC', arp(2, { mac: other.mac, ip: own.ipv4 }, broadcast)),
    forArp('an ARP probe of another’s address', arp(1, { mac: own.mac, ip: '0.0.0.0' }, broadcast)),
    forArp('an ARP reply from no address', arp(2, { mac: own.mac, ip: '0.0.0.0' }, mine)),
    forArp('an ARP operation of RARP', arp(4, mine, mine)),
    forArp('ARP of another hardware', arp(1, mine, broadcast, [0, 6, 8, 0, 6, 4])),
    forArp('ARP of another protocol', arp(1, mine, broadcast, [0, 1, 0x86, 0xdd, 6, 4])),
    forArp('ARP with other lengths of MACs', arp(1, mine, broadcast, [0, 1, 8, 0, 7, 4])),
    forArp('ARP with other lengths of addresses', arp(1, mine, broadcast, [0, 1, 8, 0, 6, 5])),
    neighbor('an advertisement of another’s address', advertisement(other.ipv6, macOption(2, own.mac))),
    neighbor('an advertisement of another’s address without a MAC', advertisement(other.ipv6)),
    neighbor(
      'an advertisement of the router’s address',
      advertisement('fe80::1', macOption(2, own.mac)),
      own.ipv6,
    ),
    neighbor('an advertisement that names another MAC', advertisement(own.ipv6, macOption(2, other.mac))),
    neighbor(
      'a solicitation that names another MAC',
      solicitation(other.ipv6, macOption(1, other.mac)),
      own.ipv6,
    ),
    neighbor('a duplicate check of another’s address', solicitation(other.ipv6), '::'),
    neighbor('a router solicitation that names another MAC', discovery(133, none, macOption(1, other.mac))),
    packet6(
      'an advertisement with a second option',
      'header',
      message(local, allNodes, advertisement(own.ipv6, nonce, macOption(2, other.mac))),
    ),
    packet6(
      'an advertisement behind destination options',
      'header',
      message(local, allNodes, advertisement(other.ipv6, macOption(2, own.mac)), [destination]),
    ),
    packet6(
      'a solicitation in a fragment',
      'header',
      fragment6(local, allNodes, icmpv6, solicitation(other.ipv6), { more: true }),
    ),
    packet6('a router advertisement', 'router', message(local, allNodes, routerAdvertisement)),
    packet6(
      'a router advertisement behind hop-by-hop options',
      'router',
      message(local, allNodes, routerAdvertisement, [hopByHop]),
    ),
    packet6(
      'a router advertisement behind three headers',
      'router',
      message(local, allNodes, routerAdvertisement, [hopByHop, destination, destination]),
    ),
    packet6(
      'a router advertisement from a global address',
      'router',
      message(own.ipv6, allNodes, routerAdvertisement),
    ),
    packet6(
      'a router advertisement in a fragment',
      'router',
      fragment6(local, allNodes, icmpv6, routerAdvertisement, { more: true }),
    ),
    packet6(
      'a router advertisement behind a header and in a fragment',
      'router',
      fragment6(local, allNodes, destination, join([icmpv6, 0, 1, 4, 0, 0, 0, 0], first), { more: true }),
    ),
    packet6(
      'a first fragment that ends before the message',
      'header',
      fragment6(local, allNodes, destination, new Uint8Array([icmpv6, 1, 1, 4, 0, 0, 0, 0]), { more: true }),
    ),
    packet6(
      'a first fragment that ends before the message, with another behind it',
      'header',
      join(
        fragment6(local, allNodes, destination, new Uint8Array([icmpv6, 0, 1, 4, 0, 0, 0, 0]), {
          more: true,
        }),
        [128, 0, 0, 0, 0, 1, 0, 1],
      ),
    ),
    packet6(
      'a later fragment whose header says options',
      'header',
      fragment6(local, allNodes, destination, new Uint8Array(16), { offset: 8 }),
    ),
    packet6(
      'a redirect',
      'router',
      message(local, allNodes, discovery(137, none, bytesOf(other.ipv6), bytesOf(own.ipv6))),
    ),
    packet6(
      'a renumbering of routers',
      'router',
      message(own.ipv6, 'ff05::2', discovery(138, none, none, none)),
    ),
    build(
      'an IPv4 router advertisement',
      'router',
      type.ipv4,
      ip(new Uint8Array([9, 0, 0, 0, 1, 2, 0, 60, ...bytesOf(own.ipv4), 0, 0, 0, 0]), {
        from: own.ipv4,
        to: '224.0.0.1',
        protocol: 1,
      }),
    ),
    build('a DHCP offer', 'dhcp', type.ipv4, datagram(own.ipv4, '255.255.255.255', 67, 68)),
    build('a DHCP offer from another port', 'dhcp', type.ipv4, datagram(own.ipv4, other.ipv4, 1067, 68)),
    build('a DHCP relay’s answer', 'dhcp', type.ipv4, datagram(own.ipv4, other.ipv4, 67, 67)),
    build(
      'a DHCP offer from no address',
      'address',
      type.ipv4,
      datagram('0.0.0.0', '255.255.255.255', 67, 68),
    ),
    packet6('a DHCPv6 reply', 'dhcp', datagram(local, allNodes, 547, 546)),
    packet6('a DHCPv6 reply from another port', 'dhcp', datagram(own.ipv6, allNodes, 1547, 546)),
    packet6('a DHCPv6 relay’s answer', 'dhcp', datagram(own.ipv6, other.ipv6, 547, 547)),
    build(
      'an IPv4 header with a length beyond the frame',
      'header',
      type.ipv4,
      withLength(datagram(own.ipv4, '198.51.100.1')),
    ),
    build(
      'discovery of ARP in the wrong EtherType',
      'ethertype',
      0x0807,
      arp(2, { mac: own.mac, ip: other.ipv4 }, broadcast),
    ),
  ];
}

/** What each guest sends. */
function ordinary(build: Builder, own: Interface, other: Interface): TestFrame[] {
  const local = linkLocalOf(own.mac);
  const mine = { mac: own.mac, ip: own.ipv4 };
  const send = (kind: string, ethertype: number, packet: Uint8Array) => build(kind, null, ethertype, packet);
  const send6 = (kind: string, packet: Uint8Array) => send(kind, type.ipv6, packet);
  const send4 = (kind: string, packet: Uint8Array) => send(kind, type.ipv4, packet);
  const report = discovery(143, none, [4, 0, 0, 0], bytesOf(allRouters));
  return [
    send4('UDP', datagram(own.ipv4, other.ipv4)),
    send6('UDP over IPv6', datagram(own.ipv6, other.ipv6)),
    send4('TCP', tcp({ from: own.ipv4, fromPort: 40_000, to: other.ipv4, toPort: 80 }, 2, 1)),
    send4(
      'a first fragment',
      ip(new Uint8Array(16), { from: own.ipv4, to: other.ipv4, protocol: 17, id: 9, more: true }),
    ),
    send4(
      'a last fragment',
      ip(new Uint8Array(16), { from: own.ipv4, to: other.ipv4, protocol: 17, id: 9, offset: 16 }),
    ),
    send6(
      'a first fragment of IPv6',
      fragment6(own.ipv6, other.ipv6, 17, new Uint8Array(16), { more: true }),
    ),
    send6('a last fragment of IPv6', fragment6(own.ipv6, other.ipv6, 17, new Uint8Array(16), { offset: 16 })),
    send6(
      'ping behind destination options',
      message(own.ipv6, other.ipv6, new Uint8Array([128, 0, 0, 0, 0, 1, 0, 1]), [destination]),
    ),
    send4('ESP', ip(new Uint8Array(16), { from: own.ipv4, to: other.ipv4, protocol: 50 })),
    send4('keepalived’s VRRP', ip(new Uint8Array(20), { from: own.ipv4, to: '224.0.0.18', protocol: 112 })),
    send('an ARP request', type.arp, arp(1, mine, { mac: '00:00:00:00:00:00', ip: other.ipv4 })),
    send('an ARP reply', type.arp, arp(2, mine, { mac: other.mac, ip: other.ipv4 })),
    send('keepalived’s gratuitous ARP request', type.arp, arp(1, mine, { mac: everyone, ip: own.ipv4 })),
    send('keepalived’s gratuitous ARP reply', type.arp, arp(2, mine, { mac: everyone, ip: own.ipv4 })),
    send(
      'an ARP probe of its own address',
      type.arp,
      arp(1, { mac: own.mac, ip: '0.0.0.0' }, { mac: '00:00:00:00:00:00', ip: own.ipv4 }),
    ),
    send4('a DHCP discovery', datagram('0.0.0.0', '255.255.255.255', 68, 67)),
    send4('a DHCP renewal', datagram(own.ipv4, '203.0.113.1', 68, 67)),
    send6('a DHCPv6 solicitation', datagram(local, 'ff02::1:2', 546, 547)),
    send4('an IGMP report', ip(new Uint8Array(8), { from: own.ipv4, to: '224.0.0.22', protocol: 2 })),
    send4(
      'an IGMP report before DHCP',
      ip(new Uint8Array(8), { from: '0.0.0.0', to: '224.0.0.22', protocol: 2 }),
    ),
    send6('a multicast report before an address', message('::', 'ff02::16', report, [hopByHop])),
    send6('a multicast report', message(local, 'ff02::16', report, [hopByHop])),
    send6('a router solicitation before an address', message('::', allRouters, discovery(133, none))),
    send6('a router solicitation', message(local, allRouters, discovery(133, none, macOption(1, own.mac)))),
    send6(
      'a duplicate check of its link-local address',
      message('::', solicitedNode(local), solicitation(local, nonce)),
    ),
    send6('a duplicate check of its address', message('::', solicitedNode(own.ipv6), solicitation(own.ipv6))),
    send6(
      'a solicitation',
      message(own.ipv6, 'ff02::1:ff00:12', solicitation(other.ipv6, macOption(1, own.mac))),
    ),
    send6(
      'a solicitation from its link-local address',
      message(local, 'ff02::1:ff00:12', solicitation(other.ipv6, macOption(1, own.mac))),
    ),
    send6('an advertisement', message(own.ipv6, other.ipv6, advertisement(own.ipv6, macOption(2, own.mac)))),
    send6('an advertisement without a MAC', message(own.ipv6, other.ipv6, advertisement(own.ipv6))),
    send6(
      'keepalived’s unsolicited advertisement',
      message(own.ipv6, allNodes, advertisement(own.ipv6, macOption(2, own.mac))),
    ),
    send6(
      'an advertisement of its link-local address',
      message(local, allNodes, advertisement(local, macOption(2, own.mac))),
    ),
  ];
}
