/**
 * The guard of a guest's port: an interface sends from its own MAC and addresses only.
 *
 * Each port has an nftables table of its own, at the first hook that a frame meets: before the bridge can learn its
 * source MAC. Counters and the forged sources live as long as the table, so a reader must expect them to begin anew.
 */
import { linkLocalOf, parseAddress } from '#common/ip/index.ts';
import { type GuardReason, guardReasons } from '#contracts/guard-reasons.ts';
import type { WorldNames } from './name-world.ts';
import { runTool } from './run-tool.ts';

/** What a port's interface may send. */
export interface GuardedPort {
  /** The port: the interface's link in the hypervisor. */
  link: string;
  mac: string;
  addresses: readonly string[];
}

/** What the guard of one port dropped since it stands. */
export interface GuardReading {
  dropped: Partial<Record<GuardReason, number>>;
  /** Sources that forged packets named, each within the last hour; at most 16 of a kind. */
  claimed: { reason: GuardReason; source: string; packets: number; secondsAgo: number }[];
}

const claimedSeconds = 3600;

/** Sets of forged sources by name; each remembers the last 16 that do not fall silent. */
const claims: Readonly<Record<string, { reason: GuardReason; type: string; field: string }>> = {
  mac: { reason: 'mac', type: 'ether_addr', field: 'ether saddr' },
  address4: { reason: 'address', type: 'ipv4_addr', field: 'ip saddr' },
  address6: { reason: 'address', type: 'ipv6_addr', field: 'ip6 saddr' },
  arp: { reason: 'arp', type: 'ipv4_addr', field: 'arp saddr ip' },
};

/** Begins the name of a port's table; the rest is its link. */
const tablePrefix = 'guard-';

/** Guards the port from the next packet on. The link must be there, and may be up only afterwards. */
export async function guardPort(names: WorldNames, port: GuardedPort): Promise<void> {
  await nft(names, [...forget(port.link), guardRules(port)]);
}

/** Takes the guard away; nothing happens when there is none. */
export async function unguardPort(names: WorldNames, link: string): Promise<void> {
  await nft(names, forget(link));
}

/** Deleting what may not be there is an error, so it is made first. */
function forget(link: string): string[] {
  return [`add table netdev ${tablePrefix}${link}`, `delete table netdev ${tablePrefix}${link}`];
}

/**
 * Rules for `nft -f`. Each chain accepts what it knows and drops the rest. A rule on a header that is not there does not
 * match, so no rule that drops may be the only one between a cut packet and `accept`.
 */
export function guardRules({ link, mac, addresses }: GuardedPort): string {
  const own4 = addresses.filter((address) => !address.includes(':'));
  const own6 = [linkLocalOf(mac), ...addresses.filter((address) => address.includes(':'))];
  const drop = (reason: GuardReason, claim?: string) =>
    `${claim === undefined ? '' : `update @claimed-${claim} { ${claims[claim]!.field} }\n    `}counter name "dropped-${reason}" drop`;
  // A value at an offset has no type, so addresses and MACs are numbers there.
  const numbers6 = own6
    .map((address) => `0x${Buffer.from(parseAddress(address)!).toString('hex')}`)
    .join(', ');
  const macNumber = `0x${mac.replaceAll(':', '')}`;
  const own = (list: readonly string[]) => `{ ${list.join(', ')} }`;
  const ofIpv4 = (rule: string) => (own4.length > 0 ? `\n    ${rule}` : '');
  return `table netdev ${tablePrefix}${link} {
${guardReasons.map((reason) => `  counter dropped-${reason} {\n  }`).join('\n')}
${Object.entries(claims)
  .map(
    ([name, { type }]) =>
      `  set claimed-${name} {\n    type ${type}\n    size 16\n    flags dynamic,timeout\n    counter\n    timeout ${claimedSeconds}s\n  }`,
  )
  .join('\n')}
  chain from_guest {
    type filter hook ingress device "${link}" priority -300
    policy drop
    ether saddr != ${mac} goto foreign_mac
    ether type vmap { arp : goto any_arp, ip : goto any_ipv4, ip6 : goto any_ipv6, 8021q : goto tagged, 8021ad : goto tagged }
    ${drop('ethertype')}
  }
  chain foreign_mac {
    ${drop('mac', 'mac')}
  }
  chain tagged {
    ${drop('vlan')}
  }
  chain any_arp {
    arp htype != 1 ${drop('arp')}
    arp ptype != ip ${drop('arp')}
    arp hlen != 6 ${drop('arp')}
    arp plen != 4 ${drop('arp')}
    arp operation != { request, reply } ${drop('arp')}
    arp saddr ether != ${mac} ${drop('arp')}${ofIpv4(`arp saddr ip ${own(own4)} accept`)}${ofIpv4(
      `arp operation request arp saddr ip 0.0.0.0 arp daddr ip ${own(own4)} accept`,
    )}
    ${drop('arp', 'arp')}
  }
  chain any_ipv4 {${ofIpv4(`ip saddr ${own(own4)} goto own_ipv4`)}
    ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67 accept
    ip saddr 0.0.0.0 ip daddr 224.0.0.0/4 meta l4proto igmp accept
    ${drop('address', 'address4')}
  }
  chain own_ipv4 {
    udp dport 68 ${drop('dhcp')}
    udp sport 67 ${drop('dhcp')}
    icmp type router-advertisement ${drop('router')}
    meta l4proto 0-255 accept
    ${drop('header')}
  }
  chain any_ipv6 {
    ip6 saddr ${own(own6)} goto own_ipv6
    ip6 saddr :: icmpv6 type { mld-listener-report, mld-listener-done, mld2-listener-report } accept
    ip6 saddr :: ip6 nexthdr icmpv6 icmpv6 type { nd-neighbor-solicit, nd-router-solicit } goto discovery
    ${drop('address', 'address6')}
  }
  chain own_ipv6 {
    icmpv6 type { nd-router-advert, nd-redirect, 138 } ${drop('router')}
    ip6 nexthdr icmpv6 icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } goto discovery
    icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } ${drop('header')}
    # A header chain must end in its first fragment, and a receiver takes it from there.
    frag nexthdr { 0, 43, 44, 51, 60, 135, 139, 140 } ${drop('header')}
    udp dport 546 ${drop('dhcp')}
    udp sport 547 ${drop('dhcp')}
    meta l4proto 0-255 accept
    ${drop('header')}
  }
  chain discovery {
    # One option at most, so that none behind the first can name another MAC.
    ip6 length > 32 ${drop('header')}
    icmpv6 type nd-router-solicit ip6 length > 8 @th,64,8 1 @th,80,48 != ${macNumber} ${drop('neighbor')}
    icmpv6 type nd-router-solicit accept
    ip6 length > 24 @th,192,8 { 1, 2 } @th,208,48 != ${macNumber} ${drop('neighbor')}
    icmpv6 type nd-neighbor-advert @th,64,128 { ${numbers6} } accept
    ip6 saddr :: icmpv6 type nd-neighbor-solicit @th,64,128 { ${numbers6} } accept
    ip6 saddr != :: icmpv6 type nd-neighbor-solicit @th,64,128 != 0 accept
    ${drop('neighbor')}
  }
}`;
}

interface ListedElement {
  elem: { val: string; expires: number; counter: { packets: number } };
}
interface Listed {
  counter?: { table: string; name: string; packets: number };
  set?: { table: string; name: string; elem?: ListedElement[] };
}

/** What every guarded port dropped, by its link. */
export async function readGuards(names: WorldNames): Promise<Map<string, GuardReading>> {
  const [counters, sets] = await Promise.all(
    ['counters', 'sets'].map(async (kind) => {
      const output = await runTool([...inside(names), 'nft', '-j', 'list', kind, 'netdev']);
      return (JSON.parse(output) as { nftables: Listed[] }).nftables;
    }),
  );
  const readings = new Map<string, GuardReading>();
  const readingOf = (table: string): GuardReading | null => {
    if (!table.startsWith(tablePrefix)) return null;
    const link = table.slice(tablePrefix.length);
    const reading = readings.get(link) ?? { dropped: {}, claimed: [] };
    readings.set(link, reading);
    return reading;
  };
  for (const { counter } of counters!) {
    const reading = counter === undefined ? null : readingOf(counter.table);
    const reason = guardReasons.find((one) => `dropped-${one}` === counter?.name);
    if (reading !== null && reason !== undefined) reading.dropped[reason] = counter!.packets;
  }
  for (const { set } of sets!) {
    const claim = claims[set?.name.replace('claimed-', '') ?? ''];
    const reading = set === undefined ? null : readingOf(set.table);
    if (reading === null || claim === undefined) continue;
    for (const { elem } of set?.elem ?? [])
      reading.claimed.push({
        reason: claim.reason,
        source: elem.val,
        packets: elem.counter.packets,
        secondsAgo: claimedSeconds - elem.expires,
      });
  }
  return readings;
}

async function nft(names: WorldNames, lines: readonly string[]): Promise<void> {
  await runTool([...inside(names), 'nft', '-f', '-'], `${lines.join('\n')}\n`);
}

const inside = (names: WorldNames) => ['ip', 'netns', 'exec', names.hypervisorNamespace];
