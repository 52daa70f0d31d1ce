/** A server's firewall: types, and the rules by which what a person typed is understood. */
import { createHash } from 'node:crypto';
import { formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { oneLine } from '#common/text/index.ts';
import type { FirewallProtocol } from '#contracts/ip-protocols.ts';

export type Direction = 'inbound' | 'outbound';
export type Verdict = 'accept' | 'drop';

export interface Rule {
  direction: Direction;
  action: Verdict;
  protocol: FirewallProtocol;
  /** `443` or `8000-9000`; null: all. */
  ports: string | null;
  /** Remote prefixes: source or destination; empty: all addresses. */
  peers: string[];
  description: string;
}

export interface StoredRule extends Rule {
  id: number;
  position: number;
}

export interface Firewall {
  serverId: number;
  isEnabled: boolean;
  inboundPolicy: Verdict;
  outboundPolicy: Verdict;
  /** 0 for a server whose firewall was never touched. */
  version: number;
  status: 'applied' | 'pending' | 'failed';
  appliedAt: Date | null;
  rules: StoredRule[];
}

export const rulesMax = 50;
export const peersMax = 20;
const descriptionMax = 80;

/** The default firewall of a server: all traffic passes. */
export function untouchedFirewall(serverId: number): Firewall {
  return {
    serverId,
    isEnabled: false,
    inboundPolicy: 'accept',
    outboundPolicy: 'accept',
    version: 0,
    status: 'applied',
    appliedAt: null,
    rules: [],
  };
}

/** A digest of the filtering rules without their descriptions. Callers compare it to detect a change. */
export function fingerprintOf(firewall: Firewall): string {
  const filtering = [
    firewall.isEnabled,
    firewall.inboundPolicy,
    firewall.outboundPolicy,
    firewall.rules.map((rule) => [rule.direction, rule.action, rule.protocol, rule.ports, rule.peers]),
  ];
  return `sha256:${createHash('sha256').update(JSON.stringify(filtering)).digest('hex')}`;
}

/** A digest of everything that can be edited of a rule: who edits it says by this what they saw. */
export function markOf(rule: Rule): string {
  const { direction, action, protocol, ports, peers, description } = rule;
  const told = JSON.stringify([direction, action, protocol, ports, peers, description]);
  return createHash('sha256').update(told).digest('base64url').slice(0, 22);
}

/** The rule in canonical spelling, or what is wrong with it by field. */
export function checkRule(rule: Rule): Rule | { field: keyof Rule; message: string } {
  const ports = checkPorts(rule);
  if (typeof ports === 'object' && ports !== null) return ports;
  if (rule.peers.length > peersMax)
    return { field: 'peers', message: `Name at most ${peersMax} addresses or blocks.` };
  const peers: string[] = [];
  for (const text of rule.peers) {
    const prefix = parsePrefix(text.trim());
    if (prefix === null)
      return {
        field: 'peers',
        message: `${text} is no address and no block such as 198.51.100.0/24 with no host bits set.`,
      };
    peers.push(formatPrefix(prefix));
  }
  const description = oneLine(rule.description);
  if (description.length > descriptionMax)
    return { field: 'description', message: `Use at most ${descriptionMax} characters.` };
  const all = ['0.0.0.0/0', '::/0'].every((prefix) => peers.includes(prefix));
  return { ...rule, ports, peers: all ? [] : [...new Set(peers)], description };
}

function checkPorts(rule: Rule): string | null | { field: 'ports'; message: string } {
  const text = rule.ports?.trim() ?? '';
  if (text === '') return null;
  if (rule.protocol !== 'tcp' && rule.protocol !== 'udp')
    return { field: 'ports', message: 'Only TCP and UDP have ports; leave them empty.' };
  const match = /^([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?$/.exec(text);
  const [from, to] = [Number(match?.[1]), Number(match?.[2] ?? match?.[1])];
  if (match !== null && from <= to && to <= 65_535) return from === to ? String(from) : `${from}-${to}`;
  return { field: 'ports', message: 'Write a port such as 443, or a range such as 8000-9000.' };
}
