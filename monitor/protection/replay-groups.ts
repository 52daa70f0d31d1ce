/**
 * What other thresholds would have found of all addresses of a group: asked for by an operator, done in the background.
 *
 * One of a site waits or runs at once. Any number of processes may do the work: a claim with a term makes each address count
 * once, and a worker that dies is followed by another one, which goes on after the last stored address. A cancelled replay
 * keeps what it found so far.
 */
import { randomUUID } from 'node:crypto';
import { CodedError, describeError } from '#common/errors/index.ts';
import { createWorkLoop, type WorkLoop } from '#common/lifecycle/work-loop.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { lockSite } from '#monitor/sites/index.ts';
import { findServersOfAddress, listProtectedAddresses } from '#monitor/views/address-store.ts';
import { listReportedAddresses } from '#monitor/views/detector-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, readNowMs } from '#service-kit/postgres/index.ts';
import { findApplying, indexGroups, resolveAddress } from './compile-plan.ts';
import { clustersOf } from './explain-address.ts';
import type { ReplayClaim, ReplayedAddress } from './group-replay-store.ts';
import * as replays from './group-replay-store.ts';
import type { ProtectionDeps } from './index.ts';
import type { Finding } from './replay.ts';
import type { HostGroup, Settings } from './settings.ts';
import { findGroup, readSettings } from './store.ts';
import {
  flatChoices,
  parseChoices,
  type ThresholdChoices,
  type ThresholdTexts,
  valuesOf,
} from './thresholds.ts';
import { replayThresholds } from './what-if.ts';

/** A replay covers at most so many addresses: those that one sensor counts. */
export const replayAddressesMax = 4096;
const claimSeconds = 60;
const restSeconds = 5;
/** Tries of one address. */
const attemptsMax = 5;
const pollMs = 2000;

/** Returns its id. Blank texts stand for what the group has now. Throws `protection.invalid`; null: no such group. */
export async function startGroupReplay(
  { db }: Pick<ProtectionDeps, 'db'>,
  actor: Actor,
  siteId: number,
  groupId: number,
  texts: ThresholdTexts,
): Promise<string | null> {
  requireOperator(actor);
  const asked = parseChoices(texts);
  return inTransaction(db(), async (trx) => {
    // The lock keeps concurrent calls from starting two.
    if (!(await lockSite(trx, siteId))) return null;
    const group = await findGroup(trx, siteId, groupId);
    if (!group) return null;
    const open = await replays.findOpenReplay(trx, siteId);
    if (open)
      throw new CodedError(
        'protection.invalid',
        `A replay of the group "${open.groupName}" is under way. Wait until it has ended, or cancel it.`,
      );
    const id = randomUUID();
    await replays.insertReplay(
      trx,
      siteId,
      { id, groupId, groupName: group.name, asked },
      actor.name ?? actor.kind,
    );
    await record(trx, actor, {
      operation: 'what_if.start',
      subject: { kind: 'protection_group', id: groupId, name: group.name },
      after: { siteId, ...flatChoices(asked) },
    });
    return id;
  });
}

/** False: it has ended, or the site has no such replay. */
export async function cancelGroupReplay(
  { db }: Pick<ProtectionDeps, 'db'>,
  actor: Actor,
  siteId: number,
  id: string,
): Promise<boolean> {
  requireOperator(actor);
  return inTransaction(db(), async (trx) => {
    const cancelled = await replays.cancelReplay(trx, siteId, id, actor.name ?? actor.kind);
    if (!cancelled) return false;
    await record(trx, actor, {
      operation: 'what_if.cancel',
      subject: { kind: 'protection_group', id: cancelled.groupId, name: cancelled.groupName },
      after: { siteId, done: cancelled.done },
    });
    return true;
  });
}

/** The loop that does what was asked for. */
export function createReplayWorker(deps: ProtectionDeps): WorkLoop {
  return createWorkLoop({
    name: 'what-if of groups',
    clock: deps.clock,
    reporter: deps.reporter,
    pollMs,
    failure: 'replays of groups can not be done',
    async work(signal) {
      const claim = await replays.claimReplay(deps.db(), claimSeconds);
      if (!claim) return false;
      await work(deps, claim, signal);
      return true;
    },
  });
}

async function work(deps: ProtectionDeps, claim: ReplayClaim, signal: AbortSignal): Promise<void> {
  const { db, reporter } = deps;
  try {
    const settings = await readSettings(db(), claim.siteId);
    const group = settings.groups.find((one) => one.id === claim.groupId);
    if (!group) return await replays.finishReplay(db(), claim, 'The group was removed.');
    const clusterIds = await clustersOf(deps, claim.siteId);
    const list = claim.list ?? (await listAddresses(deps, settings, group, claim.siteId, clusterIds));
    if (!claim.list && !(await replays.setAddresses(db(), claim, list))) return;
    for (const address of list.slice(claim.done)) {
      // Another process goes on at once.
      if (signal.aborted) return await replays.releaseReplay(db(), claim, 0);
      const one = await replayAddress(deps, claim, settings, clusterIds, address);
      const isOurs = await inTransaction(db(), (trx) => replays.addReplayed(trx, claim, one, claimSeconds));
      if (!isOurs) return;
    }
    await replays.finishReplay(db(), claim, null);
  } catch (error) {
    const { attempts } = claim;
    reporter.warn('a replay of a group failed', {
      replay: claim.id,
      attempt: attempts,
      error: describeError(error),
    });
    if (attempts < attemptsMax) await replays.releaseReplay(db(), claim, restSeconds);
    else await replays.finishReplay(db(), claim, 'The stored minutes could not be read. Replay it again.');
  }
}

/** Addresses to which the group applies: those of servers, and others that sensors reported in the last day. */
async function listAddresses(
  { db, reader }: ProtectionDeps,
  settings: Settings,
  group: HostGroup,
  siteId: number,
  clusterIds: readonly number[],
): Promise<string[]> {
  const [targets, reported] = await Promise.all([
    listProtectedAddresses(db(), clusterIds, null),
    listReportedAddresses(reader(), siteId, group.prefixes),
  ]);
  const index = indexGroups(settings.groups);
  return [...new Set([...targets, ...reported])]
    .filter((address) => index.find(address)?.value.id === group.id)
    .sort()
    .slice(0, replayAddressesMax);
}

async function replayAddress(
  deps: ProtectionDeps,
  { siteId, groupId, asked }: ReplayClaim,
  settings: Settings,
  clusterIds: readonly number[],
  address: string,
): Promise<ReplayedAddress> {
  const servers = await findServersOfAddress(deps.db(), clusterIds, address);
  const thresholdsBy = (groups: readonly HostGroup[]) =>
    valuesOf(resolveAddress(settings, findApplying(indexGroups(groups), settings.servers, address, servers)));
  const other = settings.groups.map((one) =>
    one.id === groupId ? { ...one, thresholds: merged(one.thresholds, asked) } : one,
  );
  const [nowMs, present] = [await readNowMs(deps.db()), thresholdsBy(settings.groups)];
  const found = await replayThresholds(deps, siteId, address, thresholdsBy(other), present, nowMs);
  const { minutes, findings, compared } = found;
  const certain = findings.filter(({ isCertain }) => isCertain).length;
  const counts = { fired: findings.length, certain, present: found.present.length };
  const countOf = (outcome: string) => compared.filter((row) => row.outcome === outcome).length;
  const differences = { lost: countOf('lost'), added: countOf('new') };
  return { address, minutes, ...counts, ...differences, strongest: strongestOf(findings) };
}

function merged(own: ThresholdChoices, asked: ThresholdChoices): ThresholdChoices {
  return { inbound: { ...own.inbound, ...asked.inbound }, outbound: { ...own.outbound, ...asked.outbound } };
}

function strongestOf(findings: readonly Finding[]): ReplayedAddress['strongest'] {
  const [first] = findings.toSorted((a, b) => b.ratio - a.ratio);
  if (!first) return null;
  const { direction, metric, rate, ratio, fromMs } = first;
  return { direction, metric, rate, ratio, fromMs };
}
