/**
 * Changes by operators: rules, their modes, the limit of a site, and actions that are ended by hand. Each holds the lock of
 * the site, refuses a form that was filled in with an older version, and leaves an entry in the audit trail.
 */
import { CodedError } from '#common/errors/index.ts';
import { lockIncidents, setIncidentActions } from '#monitor/incidents/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { lockSite } from '#monitor/sites/index.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { formatSecret, mintSecret } from '#service-kit/webhooks/index.ts';
import * as actions from './actions-store.ts';
import type { HandOffDeps } from './index.ts';
import { listIncidentsOf, listTold } from './note-store.ts';
import {
  addressesMaxMost,
  isAllowed,
  parseRule,
  type Rule,
  type RuleInput,
  type RuleMode,
  type RuleSettings,
  rulesMax,
} from './rule.ts';
import * as store from './rules-store.ts';
import { listCommands } from './run-command.ts';

type Deps = Pick<HandOffDeps, 'db' | 'secrets' | 'webhooks' | 'commandsFolder' | 'bgp'>;

async function underLock<Result>(
  { db }: Deps,
  actor: Actor,
  siteId: number,
  change: (trx: Queryable, by: string) => Promise<Result>,
): Promise<Result> {
  requireOperator(actor);
  return inTransaction(db(), async (trx) => {
    if (!(await lockSite(trx, siteId))) throw new CodedError('hand_off.no_site', 'This site does not exist.');
    return change(trx, actor.name ?? actor.kind);
  });
}

/** Throws `hand_off.changed` when the form does not show what is set now. */
function requireRevision(stored: { revision: number; changedBy?: string }, revision: number): void {
  if (stored.revision === revision) return;
  throw new CodedError(
    'hand_off.changed',
    `${stored.changedBy ?? 'Another operator'} changed this after you opened the page. Nothing was saved. Compare with the current values, then save again.`,
  );
}

async function parse(deps: Deps, input: RuleInput): Promise<RuleSettings> {
  const commands = await listCommands(deps.commandsFolder);
  const peers = deps.bgp.peers.map(({ name }) => name);
  return parseRule(input, { webhooks: deps.webhooks, commands, peers });
}

/** As the audit trail has it. */
const auditable = ({
  name,
  kind,
  prefixes,
  direction,
  minPps,
  minBps,
  holdSeconds,
  target,
}: RuleSettings) => ({ ...{ name, kind, prefixes, direction, minPps, minBps, holdSeconds }, ...target });

/** Adds a rule, which is off. Returns its id, and the secret of a webhook, which is returned only here. */
export async function addRule(
  deps: Deps,
  actor: Actor,
  siteId: number,
  input: RuleInput,
): Promise<{ id: number; secret: string | null }> {
  requireOperator(actor);
  const rule = await parse(deps, input);
  const secret = rule.kind === 'webhook' ? mintSecret() : null;
  await deps.secrets.ready();
  const id = await underLock(deps, actor, siteId, async (trx, by) => {
    if ((await store.listRules(trx, siteId)).length >= rulesMax)
      throw new CodedError('hand_off.invalid', `A site has at most ${rulesMax} rules. Remove one first.`);
    const newId = await store.nextRuleId(trx);
    const sealedSecret = secret && (await deps.secrets.seal(trx, store.ruleSecret, newId, secret));
    await store.insertRule(trx, siteId, { ...rule, id: newId, sealedSecret }, by);
    const subject = { kind: 'hand_off_rule', id: newId, name: rule.name };
    await record(trx, actor, {
      operation: 'hand_off_rule.add',
      subject,
      after: { ...auditable(rule), siteId },
    });
    return newId;
  });
  return { id, secret: secret && formatSecret(secret) };
}

/**
 * Changes a rule; its kind stays. Actions that were made before go on as they were made, but those of addresses that are not
 * allowed any more end. False: the site has no such rule.
 */
export async function changeRule(
  deps: Deps,
  actor: Actor,
  siteId: number,
  id: number,
  input: RuleInput,
  revision: number,
): Promise<boolean> {
  requireOperator(actor);
  const rule = await parse(deps, input);
  return underLock(deps, actor, siteId, async (trx, by) => {
    const before = await store.findRule(trx, siteId, id);
    if (!before) return false;
    requireRevision(before, revision);
    if (before.kind !== rule.kind)
      throw new CodedError('hand_off.invalid', 'The kind of a rule can not be changed. Add another rule.');
    await store.updateRule(trx, id, rule, by);
    const open = await actions.listOpenAddresses(trx, id);
    const refused = open.filter((address) => !isAllowed(rule.prefixes, address));
    const ended =
      refused.length > 0 ? await actions.endActions(trx, { ruleId: id, addresses: refused }, null) : [];
    const changed = changedMembers(auditable(before), auditable(rule));
    await record(trx, actor, {
      operation: 'hand_off_rule.change',
      subject: { kind: 'hand_off_rule', id, name: rule.name },
      before: changed.before,
      after: { ...changed.after, siteId, ended },
    });
    return true;
  });
}

/** Switches a rule. Actions that it has made so end at once. False: the site has no such rule. */
export function switchRule(
  deps: Deps,
  actor: Actor,
  siteId: number,
  id: number,
  mode: RuleMode,
  revision: number,
): Promise<boolean> {
  return underLock(deps, actor, siteId, async (trx, by) => {
    const before = await store.findRule(trx, siteId, id);
    if (!before) return false;
    requireRevision(before, revision);
    if (before.mode === mode) return true;
    if (before.mode === 'off' && mode === 'on')
      throw new CodedError('hand_off.invalid', 'Switch the rule to dry run first.');
    await store.setMode(trx, id, mode, by);
    const ended = await actions.endActions(trx, { ruleId: id }, null);
    await record(trx, actor, {
      operation: 'hand_off_rule.switch',
      subject: { kind: 'hand_off_rule', id, name: before.name },
      before: { mode: before.mode },
      after: { mode, siteId, ended },
    });
    return true;
  });
}

/** Removes a rule. Its actions end at once. Returns what it was; null: the site has no such rule. */
export function removeRule(
  deps: Deps,
  actor: Actor,
  siteId: number,
  id: number,
  revision: number,
): Promise<Rule | null> {
  return underLock(deps, actor, siteId, async (trx, by) => {
    const before = await store.findRule(trx, siteId, id);
    if (!before) return null;
    requireRevision(before, revision);
    const ended = await actions.endActions(trx, { ruleId: id }, null);
    await store.removeRule(trx, id, by);
    await record(trx, actor, {
      operation: 'hand_off_rule.remove',
      subject: { kind: 'hand_off_rule', id, name: before.name },
      before: { ...auditable(before), mode: before.mode, siteId },
      after: { ended },
    });
    return before;
  });
}

/** Sets how many addresses of a site may have actions at once. Actions that go on stay. */
export async function setLimit(deps: Deps, actor: Actor, siteId: number, text: string, revision: number) {
  requireOperator(actor);
  const addressesMax = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0;
  if (addressesMax < 1 || addressesMax > addressesMaxMost) {
    const message = `Write a whole number from 1 to ${addressesMaxMost}.`;
    throw new CodedError('hand_off.invalid', message, { fields: { addresses_max: message } });
  }
  await underLock(deps, actor, siteId, async (trx, by) => {
    const before = await store.readLimit(trx, siteId);
    requireRevision(before, revision);
    await store.writeLimit(trx, siteId, addressesMax, by);
    await record(trx, actor, {
      operation: 'hand_off.set_limit',
      subject: { kind: 'site', id: siteId },
      before: { addressesMax: before.addressesMax },
      after: { addressesMax },
    });
  });
}

/** Ends an action now; its rule does not act on this incident again. False: it does not wait and is not active. */
export function endAction(deps: Deps, actor: Actor, siteId: number, id: number): Promise<boolean> {
  return underLock(deps, actor, siteId, async (trx, by) => {
    const [address] = await actions.endActions(trx, { id, siteId }, by);
    if (address === undefined) return false;
    const subject = { kind: 'hand_off_action', id, name: address };
    await record(trx, actor, { operation: 'hand_off.end_now', subject, after: { siteId, address } });
    return true;
  });
}

/** Starts an action that waits for an operator. False: it does not. */
export function approveAction(deps: Deps, actor: Actor, siteId: number, id: number): Promise<boolean> {
  return underLock(deps, actor, siteId, async (trx) => {
    const found = await actions.approve(trx, siteId, id);
    if (!found) return false;
    const subject = { kind: 'hand_off_action', id, name: found.address };
    await record(trx, actor, { operation: 'hand_off.approve', subject, after: { siteId, ...found } });
    return true;
  });
}

/** Lets a filter drop that only counts. False: it drops already, or it is no active filter. */
export function dropAction(deps: Deps, actor: Actor, siteId: number, id: number): Promise<boolean> {
  return underLock(deps, actor, siteId, async (trx, by) => {
    // Before the action's own row: transactions that change incidents lock in this order.
    await lockIncidents(trx, [siteId]);
    const found = await actions.startDropping(trx, siteId, id, by);
    if (!found) return false;
    await setIncidentActions(trx, await listTold(trx, await listIncidentsOf(trx, id)));
    const subject = { kind: 'hand_off_action', id, name: found.address };
    await record(trx, actor, { operation: 'hand_off.drop', subject, after: { siteId, ...found } });
    return true;
  });
}

/** Stops trying to end an action, because it was undone by hand. False: its end has not failed. */
export function giveUpAction(deps: Deps, actor: Actor, siteId: number, id: number): Promise<boolean> {
  return underLock(deps, actor, siteId, async (trx, by) => {
    const found = await actions.giveUp(trx, siteId, id, by);
    if (!found) return false;
    const subject = { kind: 'hand_off_action', id, name: found.address };
    await record(trx, actor, { operation: 'hand_off.give_up', subject, after: { siteId, ...found } });
    return true;
  });
}
