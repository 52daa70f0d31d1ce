import type { FastifyReply, FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type {
  EffectiveFirewall,
  FirewallChange,
  Firewalls,
  Rule,
  StoredRule,
} from '#operations/firewall/index.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { preconditionOn } from '../conditional.ts';
import { idempotent } from '../idempotent.ts';
import { bodyReader, idOf, readSelection } from '../request-parts.ts';
import { invalidFields } from '../validate-input.ts';
import { callerSignal, readWait, waitWhileAllowed } from './prefer-wait.ts';

const readReplace = bodyReader(schemas.ReplaceFirewallRequest);
const readAdd = bodyReader(schemas.AddFirewallRuleRequest);
const readReplaceRule = bodyReader(schemas.ReplaceFirewallRuleRequest);
/** All addresses, as prefixes. */
const allAddresses = ['0.0.0.0/0', '::/0'];

/** The firewall at the public network interface of a server (API-4.9). */
export function firewallHandlers(deps: Features) {
  const { firewalls } = deps;
  const find = async (call: Call, request: FastifyRequest) => {
    const firewall = await firewalls.readFirewall(call.actor, call.tenant.id, idOf(request));
    if (firewall === null) throw notFound();
    return firewall;
  };
  /** The rule of the path; a firewall of another's server has none. */
  const findRule = async (call: Call, request: FastifyRequest) => {
    const ruleId = idOf(request, 'rule_id');
    const rule = (await find(call, request)).rules.find(({ id }) => id === ruleId);
    if (rule === undefined) throw notFound();
    return rule;
  };
  const change = (
    call: Call,
    request: FastifyRequest,
    wanted: FirewallChange,
    onChanged?: NonNullable<Parameters<Firewalls['changeFirewall']>[4]>['onChanged'],
  ) =>
    firewalls.changeFirewall(call.actor, idOf(request), null, wanted, {
      tenantId: call.tenant.id,
      precondition: preconditionOn(request, schemas.ServerFirewall, showFiltering),
      ...(onChanged && { onChanged }),
    });

  return {
    readServerFirewall: async (call, request) => showFirewall(await find(call, request)),

    async replaceServerFirewall(call, request, reply) {
      await find(call, request);
      const { enabled, policies, rules } = readReplace(call, request);
      const read = rules.map((rule, index) => readRule(rule, `rules.${index}.`));
      await change(call, request, { kind: 'replace', isEnabled: enabled, ...policies, rules: read });
      const firewall = await settled(deps, call, request, reply, () => find(call, request));
      reply.code(firewall.status === 'pending' ? 202 : 200);
      return showFirewall(firewall);
    },

    async addFirewallRule(call, request, reply) {
      await find(call, request);
      const body = readAdd(call, request);
      const { position, ...given } = body;
      const wanted = { kind: 'add', rule: readRule(given, ''), position } as const;
      const added = (rules: readonly StoredRule[]) =>
        rules[Math.min(position ?? rules.length, rules.length) - 1]!;
      const rule = await idempotent(deps.idempotency, {
        ...{ call, request, reply, body },
        async run(claim) {
          const { rules } = await change(call, request, wanted, async (tx, changed) =>
            claim?.bind(tx, { kind: 'firewall_rule', id: added(changed.rules).id }),
          );
          return added(rules);
        },
        async replay({ id }) {
          const kept = (await find(call, request)).rules.find((one) => one.id === id);
          if (kept === undefined) throw notFound();
          return kept;
        },
      });
      reply.code(201);
      return showRule(rule);
    },

    async replaceFirewallRule(call, request) {
      const { id: ruleId } = await findRule(call, request);
      const body = readReplaceRule(call, request);
      const rule = readRule(body, '');
      const { rules } = await change(call, request, { kind: 'edit', ruleId, seen: null, rule });
      return showRule(rules.find(({ id }) => id === ruleId)!);
    },

    async removeFirewallRule(call, request, reply) {
      const { id: ruleId } = await findRule(call, request);
      readSelection(call, request);
      await change(call, request, { kind: 'remove', ruleId });
      return reply.code(204).send();
    },
  } satisfies Handlers;
}

/** The firewall once the hypervisor has it or never got it, or when the caller does not want to wait any longer. */
async function settled(
  deps: Features,
  call: Call,
  request: FastifyRequest,
  reply: FastifyReply,
  look: () => Promise<EffectiveFirewall>,
): Promise<EffectiveFirewall> {
  const seconds = readWait(request, reply) ?? 0;
  if (seconds === 0) return look();
  const topic = `server:${idOf(request)}`;
  return waitWhileAllowed(deps.notifications, call, {
    wait: { topic, timeoutMs: seconds * 1_000, signal: callerSignal(reply) },
    look,
    isEnough: ({ status }) => status !== 'pending',
  });
}

/** `at`: where the rule stands in the body. */
function readRule(given: schemas.RuleInSet, at: string): Rule {
  const { direction, action, protocol, ports = null, description = '' } = given;
  const [own, other] =
    direction === 'inbound' ? (['sources', 'destinations'] as const) : (['destinations', 'sources'] as const);
  if ((given[other] ?? []).length > 0)
    throw invalidFields([
      { path: `${at}${other}`, code: 'unknown_field', message: `An ${direction} rule has ${own}.` },
    ]);
  return { direction, action, protocol, ports, peers: given[own] ?? [], description };
}

type Filtering = Pick<EffectiveFirewall, 'isEnabled' | 'inboundPolicy' | 'outboundPolicy' | 'rules'>;

/** What callers can change. */
function showFiltering(firewall: Filtering): Pick<schemas.ServerFirewall, 'enabled' | 'policies' | 'rules'> {
  return {
    enabled: firewall.isEnabled,
    policies: { inbound: firewall.inboundPolicy, outbound: firewall.outboundPolicy },
    rules: firewall.rules.map(showRule),
  };
}

function showRule(rule: StoredRule): schemas.FirewallRule {
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
}

function showFirewall(firewall: EffectiveFirewall): schemas.ServerFirewall {
  return {
    server_id: firewall.serverId,
    ...showFiltering(firewall),
    status: firewall.status,
    applied_at: firewall.appliedAt?.toISOString() ?? null,
    version: firewall.version,
    fingerprint: firewall.fingerprint,
    groups: [],
    implicit_rules: firewall.implicitRules.map((rule) => ({ ...rule })),
  };
}
