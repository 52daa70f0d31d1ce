/**
 * The plan of a sensor's port scans, made anew for every fetch: a stored plan never starts a scan.
 *
 * It is read with connections that only read (NET-5.3). Only a change is written: the ids of new targets, and the revision.
 */
import { createHash } from 'node:crypto';
import { type ScanPlan, scanTargetsMax } from '#contracts/sensor-api/port-scans.ts';
import { readConnectionRevision } from '#monitor/views/address-store.ts';
import {
  countScanCandidates,
  listScanCandidates,
  readScanHost,
} from '#monitor/views/scan-candidate-store.ts';
import { inTransaction, readNowMs } from '#service-kit/postgres/index.ts';
import {
  type Choice,
  type ChosenTarget,
  chooseTargets,
  type Exclusion,
  exclusions,
} from './choose-targets.ts';
import type { ScansDeps } from './index.ts';
import { nameTargets, notePlan, readPlanState, readSchedule, touchTargets } from './plan-store.ts';
import { listPlannedRequests, listWithdrawn } from './request-store.ts';
import { latestBoundary } from './schedule.ts';

/** Addresses of one node that are looked at; those beyond the plan's bound are counted. */
const candidatesMax = 2 * scanTargetsMax;
/** A fetch that changes nothing is noted this often. */
const notedAgainSeconds = 30;

/** What a sensor may scan, and what is excluded and why; null for an unknown sensor. */
export async function readChoice(
  deps: Pick<ScansDeps, 'reader' | 'documentationIsGlobal'>,
  sensorId: number,
): Promise<(Choice & { siteId: number }) | null> {
  const host = await readScanHost(deps.reader(), sensorId);
  if (!host) return null;
  const candidates = await listScanCandidates(deps.reader(), sensorId, candidatesMax);
  return { ...chooseTargets(host, candidates, deps.documentationIsGlobal), siteId: host.siteId };
}

/** Addresses of the node that are not scanned, by the reason; targets beyond the plan's bound are not among them. */
export async function countExcluded(
  deps: Pick<ScansDeps, 'reader' | 'documentationIsGlobal'>,
  sensorId: number,
): Promise<{ why: Exclusion; addresses: number }[]> {
  const { excluded = [] } = (await readChoice(deps, sensorId)) ?? {};
  const byReason = Map.groupBy(excluded, ({ why }) => why);
  return exclusions.flatMap((why) => {
    const addresses = byReason.get(why)?.length ?? 0;
    return addresses > 0 ? [{ why, addresses }] : [];
  });
}

export const toTargetId = (id: number) => `t${id}`;

/** The row's id in a target id of the wire; null when a plan of ours never said it. */
export function fromTargetId(text: string): number | null {
  const id = /^t([1-9]\d{0,15})$/.exec(text)?.[1];
  return id === undefined || !Number.isSafeInteger(Number(id)) ? null : Number(id);
}

export async function readPlan(deps: ScansDeps, sensor: { id: number; siteId: number }): Promise<ScanPlan> {
  const choice = await readChoice(deps, sensor.id);
  const chosen = (choice?.targets ?? []).slice(0, scanTargetsMax);
  const ids = await nameChosen(deps, sensor, chosen);
  const entries = await countEntries(deps, sensor.id, choice);
  const schedule = await readSchedule(deps.reader(), sensor.siteId);
  const boundary = latestBoundary(schedule, await readNowMs(deps.reader()));
  const content: Omit<ScanPlan, 'revision'> = {
    plan_version: 1,
    scan_policy: { version: 1, daily_full_scan_at: new Date(boundary).toISOString() },
    targets: chosen.map((target, place) => toWire(target, ids[place]!)),
    requests: await listRequests(deps, sensor.id, chosen, ids),
    withdrawn: await listWithdrawn(deps.reader(), sensor.id, scanTargetsMax),
  };
  return { ...content, revision: await readRevision(deps, sensor, { content, entries }, ids) };
}

/** What the plan would name without its bound. Addresses beyond those that were looked at count as left out. */
async function countEntries({ reader }: Pick<ScansDeps, 'reader'>, sensorId: number, choice: Choice | null) {
  if (!choice) return 0;
  const read = choice.targets.length + choice.excluded.length;
  if (read < candidatesMax) return choice.targets.length;
  const unread = (await countScanCandidates(reader(), sensorId)) - read;
  return unread > 0 ? Math.max(choice.targets.length, scanTargetsMax) + unread : choice.targets.length;
}

/** Requests for targets of this plan. An address that two interfaces of a server have is scanned through the first. */
async function listRequests(
  { reader }: ScansDeps,
  sensorId: number,
  chosen: readonly ChosenTarget[],
  ids: readonly number[],
): Promise<ScanPlan['requests']> {
  const keyOf = (of: { clusterId: number; serverId: number; address: string }) =>
    `${of.clusterId} ${of.serverId} ${of.address}`;
  const targets = new Map(
    chosen.map(({ candidate }, place) => [keyOf(candidate), toTargetId(ids[place]!)] as const).reverse(),
  );
  const revision = await readConnectionRevision(reader());
  if (revision === null) return [];
  const planned = await listPlannedRequests(reader(), sensorId, revision, scanTargetsMax);
  return planned.flatMap((request) => {
    const target = targets.get(keyOf(request));
    return target === undefined ? [] : [{ scan_request_id: request.id, target_id: target }];
  });
}

function toWire({ candidate, interface: name, sourceAddress }: ChosenTarget, id: number) {
  const { address, serverId, interfaceId, listedAtMs } = candidate;
  return {
    target_id: toTargetId(id),
    address,
    interface: name,
    source_address: sourceAddress,
    vm_id: serverId,
    nic_id: interfaceId,
    inventory_at: new Date(listedAtMs).toISOString(),
  };
}

/** The ids of targets, in their order; those that no plan has named yet get one. */
async function nameChosen(
  { db }: ScansDeps,
  sensor: { id: number; siteId: number },
  chosen: readonly ChosenTarget[],
): Promise<number[]> {
  const unnamed = chosen.map(({ candidate }) => candidate).filter(({ targetId }) => targetId === null);
  const made = unnamed.length > 0 ? (await nameTargets(db(), sensor, unnamed)).values() : null;
  return chosen.map(({ candidate }) => candidate.targetId ?? made!.next().value!);
}

async function readRevision(
  { db, reader }: ScansDeps,
  sensor: { id: number; siteId: number },
  { content, entries }: { content: object; entries: number },
  ids: readonly number[],
): Promise<number> {
  const fingerprint = createHash('sha256').update(JSON.stringify(content)).digest('base64url');
  const stored = await readPlanState(reader(), sensor.id);
  const isSame = stored?.fingerprint === fingerprint;
  if (isSame && stored.fetchedAgeSeconds < notedAgainSeconds) return stored.revision;
  return inTransaction(db(), async (trx) => {
    await touchTargets(trx, sensor.id, ids);
    return notePlan(trx, sensor, { fingerprint, addresses: entries });
  });
}
