/** A guest's firewall as a driver defines it: nothing of a body reaches nftables that was not understood here. */
import { formatPrefix, parsePrefix } from '#common/ip/index.ts';
import type { FirewallPlan, FirewallRule } from '../world/guest-firewall.ts';
import { invalid } from './check-body.ts';

const rulesMax = 200;

/** The firewall that `input` means; throws `lab.body_invalid`. */
export function defineFirewall(input: FirewallPlan): FirewallPlan {
  if (input.rules.length > rulesMax) throw invalid(`"rules" must hold at most ${rulesMax} rules`);
  const { inboundPolicy, outboundPolicy } = input;
  return { inboundPolicy, outboundPolicy, rules: input.rules.map(defineRule) };
}

function defineRule(rule: FirewallRule): FirewallRule {
  const { direction, action, protocol, ports } = rule;
  if (ports !== null && protocol !== 'tcp' && protocol !== 'udp')
    throw invalid('"ports" go with "tcp" and "udp" only');
  if (ports !== null && !isPorts(ports))
    throw invalid(`"ports" must be such as "443" or "8000-9000", not "${ports}"`);
  const peers = rule.peers.map((peer) => {
    const prefix = parsePrefix(peer);
    if (prefix === null) throw invalid(`"peers" must be addresses or blocks, not "${peer}"`);
    return formatPrefix(prefix);
  });
  return { direction, action, protocol, ports, peers };
}

function isPorts(text: string): boolean {
  const match = /^([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?$/.exec(text);
  const [from, to] = [Number(match?.[1]), Number(match?.[2] ?? match?.[1])];
  return match !== null && from <= to && to <= 65_535;
}
