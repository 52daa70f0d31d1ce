/**
 * Firewalls of guests, enforced by the hypervisor with nftables: what it routes and what its bridge passes on both go
 * through one hook, so guests are protected from each other as from the internet.
 *
 * Connections are tracked: answers always pass. A whole firewall is replaced in one transaction, so no
 * packet ever meets half of one.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { CodedError } from '#common/errors/index.ts';
import type { FirewallProtocol } from '#contracts/ip-protocols.ts';
import type { WorldNames } from './name-world.ts';
import { runTool } from './run-tool.ts';

export interface FirewallRule {
  direction: 'inbound' | 'outbound';
  action: 'accept' | 'drop';
  protocol: FirewallProtocol;
  /** `443` or `8000-9000`; null: all. */
  ports: string | null;
  /** Remote prefixes: source or destination; empty: all addresses. */
  peers: string[];
}

export interface FirewallPlan {
  inboundPolicy: 'accept' | 'drop';
  outboundPolicy: 'accept' | 'drop';
  rules: FirewallRule[];
}

const table = 'inet firewall';
const baseRules = `table ${table} {
  map in4 {
    type ipv4_addr : verdict
  }
  map in6 {
    type ipv6_addr : verdict
  }
  map out4 {
    type ipv4_addr : verdict
  }
  map out6 {
    type ipv6_addr : verdict
  }
  chain forward {
    type filter hook forward priority -10
    policy accept
    iifname "pn*" accept
    ct state established,related accept
    ip saddr vmap @out4
    ip6 saddr vmap @out6
    ip daddr vmap @in4
    ip6 daddr vmap @in6
  }
}`;

/** Puts the firewall in the place of any other that the guest has; `former`: addresses that it had before. */
export async function setFirewall(
  names: WorldNames,
  guest: { name: string; addresses: readonly string[] },
  plan: FirewallPlan,
  former: readonly string[] = [],
): Promise<void> {
  await ensureTable(names);
  const script = [
    ...forget({ name: guest.name, addresses: [...new Set([...former, ...guest.addresses])] }),
    ...chainLines(chainOf(guest.name, 'in'), plan, 'inbound'),
    ...chainLines(chainOf(guest.name, 'out'), plan, 'outbound'),
    ...elements(guest, 'add'),
  ];
  await nft(names, script);
}

/** Takes the guest's firewall away; nothing happens when it has none. */
export async function clearFirewall(
  names: WorldNames,
  guest: { name: string; addresses: readonly string[] },
): Promise<void> {
  if (!(await hasTable(names))) return;
  const chains = (['in', 'out'] as const).map((way) => chainOf(guest.name, way));
  await nft(names, [...forget(guest), ...chains.map((chain) => `delete chain ${table} ${chain}`)]);
}

/** Lines that leave empty chains and no element, from any previous state. */
function forget(guest: { name: string; addresses: readonly string[] }): string[] {
  const chains = (['in', 'out'] as const).map((way) => chainOf(guest.name, way));
  return [
    ...chains.map((chain) => `add chain ${table} ${chain}`),
    // Deleting what may not be there is an error, so it is made first.
    ...elements(guest, 'add'),
    ...elements(guest, 'delete'),
    ...chains.map((chain) => `flush chain ${table} ${chain}`),
  ];
}

function elements(guest: { name: string; addresses: readonly string[] }, verb: 'add' | 'delete'): string[] {
  return guest.addresses.flatMap((address) =>
    (['in', 'out'] as const).map((way) => {
      const map = `${way}${address.includes(':') ? '6' : '4'}`;
      return `${verb} element ${table} ${map} { ${address} : jump ${chainOf(guest.name, way)} }`;
    }),
  );
}

function chainLines(chain: string, plan: FirewallPlan, direction: 'inbound' | 'outbound'): string[] {
  const policy = direction === 'inbound' ? plan.inboundPolicy : plan.outboundPolicy;
  const rules = plan.rules.filter((rule) => rule.direction === direction).flatMap(renderRule);
  // The remote host may be a guest with its own firewall: accepting here only ends this guest's part.
  const verdict = { accept: 'return', drop: 'drop' } as const;
  return [...rules, verdict[policy]].map((rule) => `add rule ${table} ${chain} ${rule}`);
}

function renderRule(rule: FirewallRule): string[] {
  const side = rule.direction === 'inbound' ? 'saddr' : 'daddr';
  const verdict = rule.action === 'accept' ? 'return' : 'drop';
  const what = renderProtocol(rule);
  if (rule.peers.length === 0) return [`${what} ${verdict}`.trim()];
  const families = { ip: rule.peers.filter(isIpv4), ip6: rule.peers.filter((peer) => !isIpv4(peer)) };
  return Object.entries(families).flatMap(([family, peers]) =>
    peers.length === 0 ? [] : [`${family} ${side} { ${peers.join(', ')} } ${what} ${verdict}`],
  );
}

function renderProtocol(rule: FirewallRule): string {
  switch (rule.protocol) {
    case 'any':
      return '';
    case 'icmp':
      return 'meta l4proto { icmp, ipv6-icmp }';
    default:
      return rule.ports === null ? `meta l4proto ${rule.protocol}` : `${rule.protocol} dport ${rule.ports}`;
  }
}

const isIpv4 = (peer: string) => !peer.includes(':');

function chainOf(guest: string, way: 'in' | 'out'): string {
  return `${way}-${createHash('sha256').update(guest).digest('hex').slice(0, 12)}`;
}

async function ensureTable(names: WorldNames): Promise<void> {
  if (await hasTable(names)) return;
  if (!existsSync('/proc/sys/net/bridge'))
    await runTool(['modprobe', 'br_netfilter']).catch(() => {
      const message = 'Bridges are not filtered on this machine: its kernel has no br_netfilter';
      throw new CodedError('lab.lab_failed', message);
    });
  await runTool([
    ...['ip', 'netns', 'exec', names.hypervisorNamespace, 'sh', '-e', '-c'],
    'for kind in iptables ip6tables; do echo 1 > /proc/sys/net/bridge/bridge-nf-call-$kind; done',
  ]);
  await nft(names, [baseRules]);
}

async function hasTable(names: WorldNames): Promise<boolean> {
  const output = await runTool([...inside(names), 'nft', 'list', 'tables']);
  return output.split('\n').includes(`table ${table}`);
}

async function nft(names: WorldNames, lines: readonly string[]): Promise<void> {
  await runTool([...inside(names), 'nft', '-f', '-'], `${lines.join('\n')}\n`);
}

const inside = (names: WorldNames) => ['ip', 'netns', 'exec', names.hypervisorNamespace];
