/**
 * The guard of a guest's port: an interface sends from its own MAC and addresses only.
 *
 * Each port has an nftables table of its own, at the first hook that a frame meets: before the bridge can learn its
 * source MAC. Counters and the forged sources live as long as the table, so a reader must expect them to begin anew.
 */
import { type GuardReason, guardReasons } from '#contracts/guard-reasons.ts';
import { guardChains } from '#contracts/guard-rules.ts';
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

/** Rules for `nft -f`. */
export function guardRules({ link, ...nic }: GuardedPort): string {
  const drop = (reason: GuardReason, claim?: string) =>
    `${claim === undefined ? '' : `update @claimed-${claim} { ${claims[claim]!.field} } `}counter name "dropped-${reason}" drop`;
  const [port, ...others] = guardChains(nic, drop);
  const hook = [`type filter hook ingress device "${link}" priority -300`, 'policy drop'];
  const written = [{ name: 'from_guest', rules: [...hook, ...port!.rules] }, ...others].map(
    ({ name, rules }) => `  chain ${name} {\n    ${rules.join('\n    ')}\n  }`,
  );
  return `table netdev ${tablePrefix}${link} {
${guardReasons.map((reason) => `  counter dropped-${reason} {\n  }`).join('\n')}
${Object.entries(claims)
  .map(
    ([name, { type }]) =>
      `  set claimed-${name} {\n    type ${type}\n    size 16\n    flags dynamic,timeout\n    counter\n    timeout ${claimedSeconds}s\n  }`,
  )
  .join('\n')}
${written.join('\n')}
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
