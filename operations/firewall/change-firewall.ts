import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireWriter } from '#operations/accounts/index.ts';
import { lockLiving } from '#operations/servers/index.ts';
import { findOwnedServer } from '#operations/views/server-store.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
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

/** One change at a time, as the page has one button for each; a program also writes the whole. */
export type FirewallChange =
  /** A rule that is there already keeps its id. */
  | { kind: 'replace'; isEnabled: boolean; inbound: Verdict; outbound: Verdict; rules: readonly Rule[] }
  | { kind: 'switch'; isEnabled: boolean }
  | { kind: 'policies'; inbound: Verdict; outbound: Verdict }
  /** At the end, or at this position. */
  | { kind: 'add'; rule: Rule; position?: number | undefined }
  /** `seen` is the mark of the rule as the editor was shown it (`markOf`); null: as it is by now. */
  | { kind: 'edit'; ruleId: number; seen: string | null; rule: Rule }
  | { kind: 'remove'; ruleId: number }
  | { kind: 'move'; ruleId: number; by: -1 | 1 };

export interface FirewallChangeOptions {
  /** The workspace of the server; absent: any that the actor reaches. */
  tenantId?: number;
  /** Called with the firewall as it is, once the server's row is locked; what it throws refuses the change. */
  precondition?: (tx: Queryable, firewall: Firewall) => Promise<void>;
  /** Called with the changed firewall in the transaction that changes it. */
  onChanged?: (tx: Queryable, firewall: Firewall) => Promise<void>;
}

/**
 * Changes a firewall and queues its application; what changes nothing is no new version, unless the last one failed. Throws
 * `firewall.not_found`, `firewall.changed` when it is not at `version` any more (null: any), `firewall.invalid` (details.field
 * of details.rule), `firewall.unsupported` where the hypervisor filters nothing. An edit is judged by its rule alone, also when
 * others were changed: it throws `firewall.rule_changed` when the rule is not as the editor saw it, `firewall.rule_removed` when
 * it is gone.
 */
export async function changeFirewall(
  deps: FirewallsDeps,
  actor: Actor,
  serverId: number,
  version: number | null,
  change: FirewallChange,
  { tenantId, precondition, onChanged }: FirewallChangeOptions = {},
): Promise<Firewall> {
  const scope = scopeOf(actor, tenantId ?? null);
  if ((await findOwnedServer(deps.db(), scope, serverId)) === null) throw notFound();
  requireWriter(actor);
  if (!(await driverOf(deps, serverId))?.capabilities.includes('firewall'))
    throw new CodedError(
      'firewall.unsupported',
      'The hypervisor of this server filters no traffic. Use a firewall inside the server.',
    );
  const after = await inTransaction(deps.db(), async (tx) => {
    const server = (await lockLiving(tx, scope, [serverId]))[0] ?? null;
    if (server === null) throw notFound();
    const present = (await store.findFirewall(tx, serverId)) ?? untouchedFirewall(serverId);
    await precondition?.(tx, present);
    if (version !== null && present.version !== version && change.kind !== 'edit')
      throw new CodedError(
        'firewall.changed',
        'Another person has changed this firewall since you loaded it. Load it again, then repeat your change.',
      );
    const { firewall, rules } = applyChange(present, change);
    if (present.status !== 'failed' && isSame({ ...firewall, rules }, present)) return present;
    await store.putFirewall(tx, serverId, firewall, rules);
    await enqueueJob(tx, 'firewall.apply', { server_id: serverId });
    await record(tx, actor, {
      operation: `firewall.${change.kind}`,
      subject: { kind: 'server', id: serverId, name: server.name },
      tenantId: server.tenantId,
      ...changedMembers(filteringOf(present, present.rules), filteringOf(firewall, rules)),
    });
    const changed = (await store.findFirewall(tx, serverId))!;
    await onChanged?.(tx, changed);
    return changed;
  });
  deps.wake();
  return after;
}

/** Whether both say the same in all that can be changed. */
function isSame(one: Omit<Firewall, 'rules'> & { rules: NewRules }, other: Firewall): boolean {
  const told = ({ isEnabled, inboundPolicy, outboundPolicy, rules }: typeof one) =>
    JSON.stringify([isEnabled, inboundPolicy, outboundPolicy, rules.map((rule) => [rule.id, markOf(rule)])]);
  return told(one) === told(other);
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
    case 'replace': {
      const { isEnabled, inbound: inboundPolicy, outbound: outboundPolicy } = change;
      const firewall = { ...present, isEnabled, inboundPolicy, outboundPolicy };
      return { firewall, rules: withKeptIds(present.rules, change.rules) };
    }
    case 'switch':
      return { firewall: { ...present, isEnabled: change.isEnabled }, rules };
    case 'policies':
      return {
        firewall: { ...present, inboundPolicy: change.inbound, outboundPolicy: change.outbound },
        rules,
      };
    case 'add':
      rules.splice((change.position ?? rules.length + 1) - 1, 0, newRule(present, change.rule));
      return { firewall: present, rules };
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

/** The wanted rules in their order; each that is there already, in the same words, has the id of that one. */
function withKeptIds(present: readonly StoredRule[], wanted: readonly Rule[]): NewRules {
  if (wanted.length > rulesMax) throw tooManyRules();
  const left = [...present];
  return wanted.map((one, index) => {
    const rule = validRule(one, index);
    const same = left.findIndex((kept) => markOf(kept) === markOf(rule));
    return same < 0 ? rule : { ...rule, id: left.splice(same, 1)[0]!.id };
  });
}

function newRule(present: Firewall, wanted: Rule): Rule {
  if (present.rules.length >= rulesMax) throw tooManyRules();
  return validRule(wanted);
}

const tooManyRules = () =>
  new CodedError('firewall.invalid', `A firewall has at most ${rulesMax} rules.`, { field: 'rules' });

/** `index`: of one of several rules. */
function validRule(wanted: Rule, index?: number): Rule {
  const rule = checkRule(wanted);
  if ('field' in rule)
    throw new CodedError('firewall.invalid', rule.message, { field: rule.field, rule: wanted, index });
  return rule;
}

function editedRule(
  present: readonly StoredRule[],
  { ruleId, seen, rule }: Extract<FirewallChange, { kind: 'edit' }>,
): Rule & { id: number } {
  const before = present.find(({ id }) => id === ruleId);
  if (before === undefined)
    throw new CodedError('firewall.rule_removed', 'This rule was removed while you edited it.');
  if (seen !== null && markOf(before) !== seen)
    throw new CodedError('firewall.rule_changed', 'This rule was changed while you edited it.');
  return { ...validRule(rule), id: ruleId };
}

function find(rules: readonly StoredRule[], id: number): StoredRule {
  const found = rules.find((rule) => rule.id === id);
  if (found) return found;
  throw new CodedError('firewall.rule_removed', 'This rule is not there any more.');
}

function notFound(): CodedError {
  return new CodedError('firewall.not_found', 'There is no such server.');
}
