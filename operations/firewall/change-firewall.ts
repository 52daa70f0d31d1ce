import { CodedError } from '#common/errors/index.ts';
import { type Actor, forbidden } from '#operations/accounts/index.ts';
import { lockLiving } from '#operations/servers/index.ts';
import { findOwnedServer } from '#operations/views/index.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import {
  checkRule,
  type Firewall,
  markOf,
  type Rule,
  rulesMax,
  type StoredRule,
  untouchedFirewall,
  type Verdict,
} from './firewall.ts';
import type { FirewallsDeps } from './index.ts';
import { driverOf, scopeOf } from './jobs.ts';
import * as store from './store.ts';

/** One change at a time, as the page has one button for each. */
export type FirewallChange =
  | { kind: 'switch'; isEnabled: boolean }
  | { kind: 'policies'; inbound: Verdict; outbound: Verdict }
  | { kind: 'add'; rule: Rule }
  /** `seen` is the mark of the rule as the editor was shown it (`markOf`). */
  | { kind: 'edit'; ruleId: number; seen: string; rule: Rule }
  | { kind: 'remove'; ruleId: number }
  | { kind: 'move'; ruleId: number; by: -1 | 1 };

/**
 * Changes a firewall and queues its application. Throws `firewall.not_found`, `firewall.changed` when it is not at
 * `version` any more, `firewall.invalid` (details.field), `firewall.unsupported` where the hypervisor filters nothing.
 * An edit is judged by its rule alone, also when others were changed: it throws `firewall.rule_changed` when the rule is not
 * as the editor saw it, `firewall.rule_removed` when it is gone.
 */
export async function changeFirewall(
  deps: FirewallsDeps,
  actor: Actor,
  serverId: number,
  version: number,
  change: FirewallChange,
): Promise<void> {
  const scope = scopeOf(actor, null);
  if ((await findOwnedServer(deps.db(), scope, serverId)) === null) throw notFound();
  requireWriter(actor);
  if (!((await driverOf(deps, serverId))?.filtersTraffic ?? false))
    throw new CodedError(
      'firewall.unsupported',
      'The hypervisor of this server filters no traffic. Use a firewall inside the server.',
    );
  await deps
    .db()
    .transaction()
    .execute(async (tx) => {
      const server = (await lockLiving(tx, scope, [serverId]))[0] ?? null;
      if (server === null) throw notFound();
      const present = (await store.findFirewall(tx, serverId)) ?? untouchedFirewall(serverId);
      if (present.version !== version && change.kind !== 'edit')
        throw new CodedError(
          'firewall.changed',
          'Another person has changed this firewall since you loaded it. Load it again, then repeat your change.',
        );
      const { firewall, rules } = applyChange(present, change);
      await store.putFirewall(tx, serverId, firewall, rules);
      await enqueueJob(tx, 'firewall.apply', { server_id: serverId });
      await record(tx, actor, {
        operation: `firewall.${change.kind}`,
        subject: { kind: 'server', id: serverId, name: server.name },
        tenantId: server.tenantId,
        ...changedMembers(filteringOf(present, present.rules), filteringOf(firewall, rules)),
      });
    });
  deps.wake();
}

/** What the audit trail says of a firewall: who opened which port is answered by the rules before and after. */
function filteringOf(firewall: Firewall, rules: readonly Rule[]) {
  const { isEnabled, inboundPolicy, outboundPolicy } = firewall;
  const told = rules.map(
    ({ direction, action, protocol, ports, peers }) =>
      `${direction} ${action} ${protocol} ${ports ?? 'all ports'} ${peers.join(' ') || 'any address'}`,
  );
  return { isEnabled, inboundPolicy, outboundPolicy, rules: told };
}

type NewRules = (Rule & { id?: number })[];

function applyChange(present: Firewall, change: FirewallChange): { firewall: Firewall; rules: NewRules } {
  const rules: NewRules = [...present.rules];
  switch (change.kind) {
    case 'switch':
      return { firewall: { ...present, isEnabled: change.isEnabled }, rules };
    case 'policies':
      return {
        firewall: { ...present, inboundPolicy: change.inbound, outboundPolicy: change.outbound },
        rules,
      };
    case 'add':
      return { firewall: present, rules: [...rules, newRule(present, change.rule)] };
    case 'edit': {
      const edited = editedRule(present.rules, change);
      return { firewall: present, rules: rules.map((rule) => (rule.id === edited.id ? edited : rule)) };
    }
    case 'remove':
      find(present.rules, change.ruleId);
      return { firewall: present, rules: present.rules.filter((rule) => rule.id !== change.ruleId) };
    case 'move': {
      const from = present.rules.indexOf(find(present.rules, change.ruleId));
      const to = Math.min(rules.length - 1, Math.max(0, from + change.by));
      rules.splice(to, 0, ...rules.splice(from, 1));
      return { firewall: present, rules };
    }
  }
}

function newRule(present: Firewall, wanted: Rule): Rule {
  if (present.rules.length >= rulesMax)
    throw new CodedError('firewall.invalid', `A firewall has at most ${rulesMax} rules.`, { field: 'rules' });
  return validRule(wanted);
}

function validRule(wanted: Rule): Rule {
  const rule = checkRule(wanted);
  if ('field' in rule) throw new CodedError('firewall.invalid', rule.message, { field: rule.field });
  return rule;
}

function editedRule(
  present: readonly StoredRule[],
  { ruleId, seen, rule }: Extract<FirewallChange, { kind: 'edit' }>,
): Rule & { id: number } {
  const before = present.find(({ id }) => id === ruleId);
  if (before === undefined)
    throw new CodedError('firewall.rule_removed', 'This rule was removed while you edited it.');
  if (markOf(before) !== seen)
    throw new CodedError('firewall.rule_changed', 'This rule was changed while you edited it.');
  return { ...validRule(rule), id: ruleId };
}

function find(rules: readonly StoredRule[], id: number): StoredRule {
  const found = rules.find((rule) => rule.id === id);
  if (found) return found;
  throw new CodedError('firewall.changed', 'This rule is not there any more.');
}

function requireWriter(actor: Actor): void {
  if (actor.kind === 'customer' && !actor.canWrite) throw forbidden('This key may only read.');
  if (actor.kind === 'staff' && actor.role !== 'operator') throw forbidden('Support staff may only read.');
}

function notFound(): CodedError {
  return new CodedError('firewall.not_found', 'There is no such server.');
}
