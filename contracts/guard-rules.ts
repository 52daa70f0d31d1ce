/**
 * What the network interface of a server may send, as chains of nftables for the families `netdev` and `bridge`: the lab's guard, and on libvirt
 * what its filters don't see.
 */
import { linkLocalOf, parseAddress } from '#common/ip/index.ts';
import type { GuardReason } from './guard-reasons.ts';

/**
 * Rules by chain; a frame begins at `port`. Each chain accepts what it knows and drops the rest by `drop`. A rule on a header that is not there
 * does not match, so no rule that drops may be the only one between a cut packet and `accept`. Names of chains begin with `prefix`.
 */
export function guardChains(
  { mac, addresses }: { mac: string; addresses: readonly string[] },
  drop: (reason: GuardReason, claim?: 'mac' | 'address4' | 'address6' | 'arp') => string,
  prefix = '',
) {
  const own4 = addresses.filter((address) => !address.includes(':'));
  const own6 = [linkLocalOf(mac), ...addresses.filter((address) => address.includes(':'))];
  // A value at an offset has no type, so addresses and MACs are numbers there.
  const numbers6 = own6
    .map((address) => `0x${Buffer.from(parseAddress(address)!).toString('hex')}`)
    .join(', ');
  const macNumber = `0x${mac.replaceAll(':', '')}`;
  const own = (list: readonly string[]) => `{ ${list.join(', ')} }`;
  const ofIpv4 = (...rules: string[]) => (own4.length > 0 ? rules : []);
  const to = (chain: string) => `goto ${prefix}${chain}`;
  const chains = {
    port: [
      `ether saddr != ${mac} ${to('foreign_mac')}`,
      `ether type vmap { arp : ${to('any_arp')}, ip : ${to('any_ipv4')}, ip6 : ${to('any_ipv6')}, 8021q : ${to('tagged')}, 8021ad : ${to('tagged')} }`,
      drop('ethertype'),
    ],
    foreign_mac: [drop('mac', 'mac')],
    tagged: [drop('vlan')],
    any_arp: [
      `arp htype != 1 ${drop('arp')}`,
      `arp ptype != ip ${drop('arp')}`,
      `arp hlen != 6 ${drop('arp')}`,
      `arp plen != 4 ${drop('arp')}`,
      `arp operation != { request, reply } ${drop('arp')}`,
      `arp saddr ether != ${mac} ${drop('arp')}`,
      ...ofIpv4(
        `arp saddr ip ${own(own4)} accept`,
        `arp operation request arp saddr ip 0.0.0.0 arp daddr ip ${own(own4)} accept`,
      ),
      drop('arp', 'arp'),
    ],
    any_ipv4: [
      ...ofIpv4(`ip saddr ${own(own4)} ${to('own_ipv4')}`),
      'ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67 accept',
      'ip saddr 0.0.0.0 ip daddr 224.0.0.0/4 meta l4proto igmp accept',
      drop('address', 'address4'),
    ],
    own_ipv4: [
      `udp dport 68 ${drop('dhcp')}`,
      `udp sport 67 ${drop('dhcp')}`,
      `icmp type router-advertisement ${drop('router')}`,
      'meta l4proto 0-255 accept',
      drop('header'),
    ],
    any_ipv6: [
      `ip6 saddr ${own(own6)} ${to('own_ipv6')}`,
      'ip6 saddr :: icmpv6 type { mld-listener-report, mld-listener-done, mld2-listener-report } accept',
      `ip6 saddr :: ip6 nexthdr icmpv6 icmpv6 type { nd-neighbor-solicit, nd-router-solicit } ${to('discovery')}`,
      drop('address', 'address6'),
    ],
    own_ipv6: [
      `icmpv6 type { nd-router-advert, nd-redirect, 138 } ${drop('router')}`,
      `ip6 nexthdr icmpv6 icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } ${to('discovery')}`,
      `icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } ${drop('header')}`,
      // A header chain must end in its first fragment, and a receiver takes it from there.
      `frag nexthdr { 0, 43, 44, 51, 60, 135, 139, 140 } ${drop('header')}`,
      `udp dport 546 ${drop('dhcp')}`,
      `udp sport 547 ${drop('dhcp')}`,
      'meta l4proto 0-255 accept',
      drop('header'),
    ],
    discovery: [
      // One option at most, so that none behind the first can name another MAC.
      `ip6 length > 32 ${drop('header')}`,
      `icmpv6 type nd-router-solicit ip6 length > 8 @th,64,8 1 @th,80,48 != ${macNumber} ${drop('neighbor')}`,
      'icmpv6 type nd-router-solicit accept',
      `ip6 length > 24 @th,192,8 { 1, 2 } @th,208,48 != ${macNumber} ${drop('neighbor')}`,
      `icmpv6 type nd-neighbor-advert @th,64,128 { ${numbers6} } accept`,
      `ip6 saddr :: icmpv6 type nd-neighbor-solicit @th,64,128 { ${numbers6} } accept`,
      'ip6 saddr != :: icmpv6 type nd-neighbor-solicit @th,64,128 != 0 accept',
      drop('neighbor'),
    ],
  };
  return Object.entries(chains).map(([name, rules]) => ({ name: `${prefix}${name}`, rules }));
}
