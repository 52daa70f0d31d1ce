import type { schemas } from '#contracts/customer-api/index.ts';
import type { EffectiveFirewall, Firewalls } from '#operations/firewall/index.ts';
import type { Handler } from '../call.ts';
import { idOf } from '../request-parts.ts';
import { notFound } from '../select-tenant.ts';

/** All addresses, as prefixes. */
const allAddresses = ['0.0.0.0/0', '::/0'];

/** Firewall information (API-4.9). */
export function firewallHandlers(firewalls: Firewalls): { readServerFirewall: Handler } {
  return {
    async readServerFirewall(call, request) {
      const firewall = await firewalls.readFirewall(call.actor, call.tenant.id, idOf(request));
      if (firewall === null) throw notFound();
      return showFirewall(firewall);
    },
  };
}

function showFirewall(firewall: EffectiveFirewall): schemas.ServerFirewall {
  return {
    server_id: firewall.serverId,
    enabled: firewall.isEnabled,
    policies: { inbound: firewall.inboundPolicy, outbound: firewall.outboundPolicy },
    status: firewall.status,
    applied_at: firewall.appliedAt?.toISOString() ?? null,
    version: firewall.version,
    fingerprint: firewall.fingerprint,
    groups: [],
    rules: firewall.rules.map((rule) => {
      const peers = rule.peers.length > 0 ? rule.peers : allAddresses;
      return {
        id: rule.id,
        position: rule.position,
        direction: rule.direction,
        action: rule.action,
        protocol: rule.protocol,
        ports: rule.ports,
        sources: rule.direction === 'inbound' ? peers : [],
        destinations: rule.direction === 'outbound' ? peers : [],
        description: rule.description,
        group_id: null,
        editable: true,
      };
    }),
    implicit_rules: firewall.implicitRules.map((rule) => ({ ...rule })),
  };
}
