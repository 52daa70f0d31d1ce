/**
 * Changes of thresholds, groups and additional prefixes. Every change holds the lock of the site, refuses a form that was
 * filled in with an older version, and leaves an entry in the audit trail with what was and what is.
 */
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { additionalCidrsMax } from '#contracts/sensor-api/detection.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { lockSite } from '#monitor/sites/index.ts';
import { type AuditEntry, changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { parsePrefixes, requireAddress } from './prefixes.ts';
import {
  groupNameMax,
  groupPrefixesMax,
  groupsMax,
  type HostGroup,
  type Revised,
  type ServerKey,
  type SiteSettings,
  serversMax,
} from './settings.ts';
import * as store from './store.ts';
import { flatChoices, isEmpty, parseChoices, type ThresholdTexts } from './thresholds.ts';

export interface GroupInput {
  name: string;
  prefixes: readonly string[];
  thresholds: ThresholdTexts;
}

const nothing: Revised = { revision: 0, changedAtMs: null, changedBy: null };

/** Runs a change of one site under its lock. */
async function underLock<Result>(
  db: Queryable,
  actor: Actor,
  siteId: number,
  change: (trx: Queryable, by: string) => Promise<Result>,
): Promise<Result> {
  requireOperator(actor);
  return inTransaction(db, async (trx) => {
    if (!(await lockSite(trx, siteId)))
      throw new CodedError('protection.no_site', 'This site does not exist.');
    return change(trx, actor.name ?? actor.kind);
  });
}

/** Throws `protection.changed` when the form does not show what is set now. */
function requireRevision(stored: Revised, revision: number): void {
  if (stored.revision === revision) return;
  const who = stored.changedBy === null ? 'They were removed' : `${stored.changedBy} changed them`;
  throw new CodedError(
    'protection.changed',
    `${who} after you opened the page. Nothing was saved. Compare with the current values, then save again.`,
  );
}

/** Writes no entry for a change that changes nothing. */
async function recordChange(
  trx: Queryable,
  actor: Actor,
  entry: Pick<AuditEntry, 'operation' | 'subject'>,
  siteId: number,
  before: object,
  after: object,
): Promise<void> {
  const changed = changedMembers(before, after);
  if (Object.keys({ ...changed.before, ...changed.after }).length === 0) return;
  await record(trx, actor, { ...entry, before: changed.before, after: { ...changed.after, siteId } });
}

/** Replaces the thresholds of a site. */
export async function setSiteThresholds(
  db: Queryable,
  actor: Actor,
  siteId: number,
  texts: ThresholdTexts,
  revision: number,
): Promise<void> {
  requireOperator(actor);
  const thresholds = parseChoices(texts);
  await changeSite(db, actor, siteId, revision, 'protection.set_thresholds', { thresholds });
}

/** Replaces the prefixes that are protected beside the targets. They are not the site's local prefixes (NET-2.2.8). */
export async function setAdditionalCidrs(
  db: Queryable,
  actor: Actor,
  siteId: number,
  texts: readonly string[],
  revision: number,
): Promise<void> {
  requireOperator(actor);
  const additionalCidrs = parsePrefixes(texts, {
    field: 'additional_cidrs',
    atLeast: 0,
    atMost: additionalCidrsMax,
    what: 'The list of additional prefixes',
  });
  await changeSite(db, actor, siteId, revision, 'protection.set_additional_cidrs', { additionalCidrs });
}

function changeSite(
  db: Queryable,
  actor: Actor,
  siteId: number,
  revision: number,
  operation: string,
  change: Partial<Pick<SiteSettings, 'thresholds' | 'additionalCidrs'>>,
): Promise<void> {
  return underLock(db, actor, siteId, async (trx, by) => {
    const before = await store.readSiteSettings(trx, siteId);
    requireRevision(before, revision);
    const after = { ...before, ...change };
    await store.writeSite(trx, siteId, after, by);
    const flat = ({ thresholds, additionalCidrs }: SiteSettings) => ({
      ...flatChoices(thresholds),
      additionalCidrs,
    });
    const entry = { operation, subject: { kind: 'site', id: siteId } };
    await recordChange(trx, actor, entry, siteId, flat(before), flat(after));
  });
}

const flatGroup = ({ name, prefixes, thresholds }: Pick<HostGroup, 'name' | 'prefixes' | 'thresholds'>) => ({
  name,
  prefixes,
  ...flatChoices(thresholds),
});

/** Adds a group (`id` null) or replaces one. Returns its id; null: the site has no such group. */
export async function saveGroup(
  db: Queryable,
  actor: Actor,
  siteId: number,
  id: number | null,
  input: GroupInput,
  revision: number,
): Promise<number | null> {
  requireOperator(actor);
  const group = parseGroup(input);
  return underLock(db, actor, siteId, async (trx, by) => {
    const before = id === null ? null : await store.findGroup(trx, siteId, id);
    if (id !== null && !before) return null;
    requireRevision(before ?? nothing, revision);
    const others = (await store.listGroups(trx, siteId)).filter((other) => other.id !== id);
    requireRoom(others.length, groupsMax, 'groups');
    requireDistinct(others, group.prefixes);
    const savedId = before ? before.id : await store.insertGroup(trx, siteId, group, by);
    if (before) await store.updateGroup(trx, before.id, group, by);
    const subject = { kind: 'protection_group', id: savedId, name: group.name };
    const operation = before ? 'protection_group.change' : 'protection_group.add';
    const was = before ? flatGroup(before) : {};
    await recordChange(trx, actor, { operation, subject }, siteId, was, flatGroup(group));
    return savedId;
  });
}

function parseGroup(input: GroupInput) {
  const name = oneLine(input.name);
  if (name === '' || name.length > groupNameMax) {
    const message = `A group's name has 1 to ${groupNameMax} characters.`;
    throw new CodedError('protection.invalid', message, { fields: { name: message } });
  }
  const prefixes = parsePrefixes(input.prefixes, {
    field: 'prefixes',
    atLeast: 1,
    atMost: groupPrefixesMax,
    what: 'A group',
  });
  return { name, prefixes, thresholds: parseChoices(input.thresholds) };
}

/** Groups may overlap, because the longest prefix counts; the same prefix twice has no order. */
function requireDistinct(others: readonly HostGroup[], prefixes: readonly string[]): void {
  for (const other of others) {
    const same = prefixes.find((prefix) => other.prefixes.includes(prefix));
    if (same === undefined) continue;
    const message = `${same} is already in the group "${other.name}". Use a longer or a shorter prefix, or remove it there.`;
    throw new CodedError('protection.invalid', message, { fields: { prefixes: message } });
  }
}

function requireRoom(count: number, most: number, what: string): void {
  if (count < most) return;
  throw new CodedError('protection.invalid', `A site has at most ${most} ${what}. Remove one first.`);
}

/** Returns false when the site has no such group. */
export function removeGroup(db: Queryable, actor: Actor, siteId: number, id: number, revision: number) {
  return underLock(db, actor, siteId, async (trx) => {
    const before = await store.findGroup(trx, siteId, id);
    if (!before) return false;
    requireRevision(before, revision);
    await store.deleteGroup(trx, id);
    const subject = { kind: 'protection_group', id, name: before.name };
    await record(trx, actor, {
      operation: 'protection_group.remove',
      subject,
      before: { ...flatGroup(before), siteId },
    });
    return true;
  });
}

/** Replaces the thresholds of a server or of one address. Thresholds that are all left to the level above end the entry. */
export async function setServerThresholds(
  db: Queryable,
  actor: Actor,
  siteId: number,
  typedKey: ServerKey,
  texts: ThresholdTexts,
  revision: number,
): Promise<void> {
  requireOperator(actor);
  const thresholds = parseChoices(texts);
  const key = 'address' in typedKey ? { address: requireAddress(typedKey.address) } : typedKey;
  await underLock(db, actor, siteId, async (trx, by) => {
    const before = await store.findServer(trx, siteId, key);
    requireRevision(before ?? nothing, revision);
    if (before && isEmpty(thresholds)) await store.deleteServer(trx, before.id);
    else if (before) await store.updateServer(trx, before.id, thresholds, by);
    else if (!isEmpty(thresholds)) {
      requireRoom((await store.listServers(trx, siteId)).length, serversMax, 'servers with own thresholds');
      await store.insertServer(trx, siteId, key, thresholds, by);
    }
    const subject =
      'address' in key
        ? { kind: 'address', id: key.address }
        : { kind: 'server', id: `${key.clusterId}/${key.serverId}` };
    const was = before ? flatChoices(before.thresholds) : {};
    const entry = { operation: 'protection.set_thresholds', subject };
    await recordChange(trx, actor, entry, siteId, was, flatChoices(thresholds));
  });
}
