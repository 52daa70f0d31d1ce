/**
 * Snapshots of servers: taken and restored by an action of the server, deleted at once.
 *
 * A snapshot is its customer's from the moment its copy is complete until it is deleted or its server is destroyed. A copy that
 * failed or was deleted stays as a row until nothing of it is left at the node, where the disk of the server may need it.
 */
import { CodedError, describeError } from '#common/errors/index.ts';
import { type Actor, reachesTenant, requireWriter } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName, isPermanentRefusal, type SnapshotProgress } from '#operations/hypervisors/index.ts';
import { noteServerChange } from '#operations/server-changes/index.ts';
import type { ServerAction } from '#operations/views/server-store.ts';
import { findSnapshot, listSnapshots, type Snapshot } from '#operations/views/snapshot-store.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Job } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { findUnfinishedAction, isActionOlder, noteProgress } from './action-store.ts';
import { change, requireCredit, requirePower, type ServerOf } from './change-machine.ts';
import { beingCopied, busy, type ChangeHooks } from './change-server.ts';
import { chargeEnding, chargeSnapshots } from './charge-snapshots.ts';
import type { ServersDeps } from './index.ts';
import {
  actionIdOf,
  askAgain,
  bootPollMs,
  cleanUpSnapshots,
  endAction,
  hypervisorOf,
  serverIdOf,
} from './job-kit.ts';
import { begin, carryOut, conclude, markRebooting, noteDisk, payloadOf } from './run-machine.ts';
import { isCurrent } from './run-power.ts';
import * as store from './snapshot-store.ts';
import { lockServer } from './store.ts';
import { invalidServer, validateServerFields } from './validate-server-fields.ts';

/** What callers of servers do with snapshots; `scope` is what the actor reaches within the tenant. */
export function snapshotCalls(
  deps: ServersDeps,
  scope: (actor: Actor, tenantId: number | null) => ServerOf['scope'],
) {
  return {
    /** Of a server, or of all that the actor reaches in the tenant, oldest first. */
    listSnapshots: (actor: Actor, tenantId: number | null, serverId: number | null) =>
      listSnapshots(deps.db(), scope(actor, tenantId), { serverId }),
    findSnapshot: (actor: Actor, tenantId: number | null, id: number) =>
      findSnapshot(deps.db(), scope(actor, tenantId), id),
    /** The cap of one server. */
    snapshotsMax: deps.snapshotsMax,
    /** Price of 10^9 bytes for a month. */
    snapshotGbQuanta: deps.snapshotGbQuanta,
    /** Quanta that a tenant's snapshots will still cost until the month ends. */
    remainingSnapshotCostOfMonth: async (actor: Actor, tenantId: number) =>
      reachesTenant(actor, tenantId)
        ? store.sumRemainingMonth(deps.db(), tenantId, deps.snapshotGbQuanta)
        : 0,
    chargeSnapshots: () => chargeSnapshots(deps.db(), deps.snapshotGbQuanta),
    /** Throws what `changePower` throws, `servers.unsupported`, `servers.invalid`, `servers.snapshot_limit` and `orders.not_eligible`. */
    createSnapshot: (
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      name: string | undefined,
      hooks?: SnapshotHooks,
    ) => createSnapshot(deps, { actor, scope: scope(actor, tenantId), serverId }, name, hooks),
    /** Throws what `changePower` throws, `servers.unsupported` and `servers.snapshot_not_found`. */
    restoreSnapshot: (actor: Actor, tenantId: number | null, id: number, hooks?: ChangeHooks) =>
      restoreSnapshot(deps, { actor, scope: scope(actor, tenantId) }, id, hooks),
    /** Throws `servers.snapshot_not_found`, `servers.busy`. */
    deleteSnapshot: (actor: Actor, tenantId: number | null, id: number) =>
      deleteSnapshot(deps, { actor, scope: scope(actor, tenantId) }, id),
  };
}

/** What the actions ask for. */
export interface SnapshotRequest {
  snapshotId: number;
  /** Of a restore: what the disk was made from. */
  imageId?: number;
}

interface SnapshotHooks extends Pick<ChangeHooks, 'isDryRun' | 'precondition'> {
  /** Called in the transaction that makes the snapshot. */
  onSnapshot?: (tx: Queryable, snapshotId: number) => Promise<void>;
}

/** A large disk on a slow pool. */
export const copySecondsMax = 6 * 3_600;

/** Throws `servers.invalid`, `servers.snapshot_limit`, `servers.unsupported`, `orders.not_eligible`, and what `changePower` throws. */
async function createSnapshot(
  deps: ServersDeps,
  of: ServerOf,
  name: string | undefined,
  hooks: SnapshotHooks = {},
): Promise<Snapshot> {
  const faults = validateServerFields({ name });
  if (faults.length > 0) throw invalidServer(faults);
  let made: Snapshot | null = null;
  let given: Omit<store.NewSnapshot, 'actionId'>;
  const onAction = async (tx: Queryable, actionId: number) => {
    await store.insertSnapshot(tx, { ...given, actionId });
    made = await findSnapshot(tx, of.scope, given.id);
    await hooks.onSnapshot?.(tx, given.id);
  };
  const asked = { command: 'create_snapshot', capability: 'snapshots' } as const;
  const { isDryRun, precondition } = hooks;
  await change(deps, of, asked, { onAction, isDryRun, precondition }, async (tx, server, found) => {
    requirePower(server);
    if (deps.snapshotGbQuanta > 0) await requireCredit(tx, server.tenantId);
    const used = (await listSnapshots(tx, 'all', { serverId: server.id })).length;
    if (used >= deps.snapshotsMax)
      throw new CodedError(
        'servers.snapshot_limit',
        `This server has ${used} of ${deps.snapshotsMax} snapshots. Delete one first.`,
        { limit: 'snapshots', max: deps.snapshotsMax, used },
      );
    const id = await store.nextSnapshotId(tx);
    const { imageId, diskGb } = found;
    given = { id, serverId: server.id, name: name ?? `snapshot-${id}`, imageId, diskGb };
    return { request: { snapshotId: id } };
  });
  return made!;
}

/** Gives the server the disk of the snapshot. Throws `servers.snapshot_not_found` and as `createSnapshot` does. */
async function restoreSnapshot(
  deps: ServersDeps,
  { actor, scope }: Omit<ServerOf, 'serverId'>,
  snapshotId: number,
  hooks: ChangeHooks = {},
): Promise<{ action: ServerAction; isRestarted: boolean }> {
  const { serverId } = await requireSnapshot(deps.db(), scope, snapshotId);
  const asked = { command: 'restore_snapshot', capability: 'snapshots' } as const;
  let isRestarted = false;
  const action = await change(deps, { actor, scope, serverId }, asked, hooks, async (tx, server) => {
    requirePower(server);
    isRestarted = server.powerState === 'running';
    // With the server locked: it may have been deleted meanwhile.
    const { imageId } = await requireSnapshot(tx, scope, snapshotId);
    return { request: { snapshotId, imageId } };
  });
  return { action, isRestarted };
}

/** Throws `servers.snapshot_not_found`, and `servers.busy` while a snapshot of its server is taken or restored, or a server is made from it. */
async function deleteSnapshot(
  deps: ServersDeps,
  { actor, scope }: Omit<ServerOf, 'serverId'>,
  snapshotId: number,
): Promise<void> {
  const { serverId } = await requireSnapshot(deps.db(), scope, snapshotId);
  requireWriter(actor);
  await inTransaction(deps.db(), async (tx) => {
    await lockServer(tx, serverId);
    const { name, serverName, tenantId } = await requireSnapshot(tx, scope, snapshotId);
    const unfinished = await findUnfinishedAction(tx, serverId);
    if (unfinished?.command === 'create_snapshot' || unfinished?.command === 'restore_snapshot')
      throw busy(unfinished.id);
    if (await store.isSource(tx, { id: snapshotId })) throw beingCopied();
    await emit(tx, { type: 'snapshot.deleted', snapshotId });
    await chargeEnding(tx, deps.snapshotGbQuanta, { id: snapshotId });
    await discard(tx, serverId, snapshotId);
    await record(tx, actor, {
      operation: 'server.delete_snapshot',
      subject: { kind: 'server', id: serverId, name: serverName },
      tenantId,
      before: { snapshotId, name },
    });
  });
  deps.wake();
}

async function requireSnapshot(db: Queryable, scope: ServerOf['scope'], id: number): Promise<Snapshot> {
  const found = await findSnapshot(db, scope, id);
  if (found !== null) return found;
  throw new CodedError('servers.snapshot_not_found', 'There is no such snapshot.');
}

/** Ends a snapshot for its customer; its copy is removed by a job. */
async function discard(tx: Queryable, serverId: number, snapshotId: number): Promise<void> {
  await store.setState(tx, snapshotId, 'deleting');
  await cleanUpSnapshots(tx, serverId);
}

/** The snapshots of a server that is gone. */
export async function endSnapshots(
  { snapshotGbQuanta }: Pick<ServersDeps, 'snapshotGbQuanta'>,
  tx: Queryable,
  serverId: number,
): Promise<void> {
  await chargeEnding(tx, snapshotGbQuanta, { serverId });
  for (const { id: snapshotId } of await listSnapshots(tx, 'all', { serverId }))
    await emit(tx, { type: 'snapshot.deleted', snapshotId });
  await store.deleteAll(tx, serverId);
}

export async function runCreateSnapshot(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const { snapshotId } = request.request as SnapshotRequest;
  const { driver } = await hypervisorOf(deps, serverId);
  const name = guestName(serverId);
  // After a worker that died here: the guest may be off again, and its hypervisor have forgotten the copy.
  if (!(await store.isCopied(deps.db(), snapshotId))) {
    let copy: SnapshotProgress;
    try {
      copy = await driver.createSnapshot(name, snapshotId);
    } catch (error) {
      if (!isPermanentRefusal(error)) throw error;
      return failCreateSnapshot(deps, job, describeError(error));
    }
    if ('progress' in copy) {
      await noteProgress(deps.db(), serverId, copy.progress);
      if (!(await isActionOlder(deps.db(), serverId, copySecondsMax)))
        return askAgain(deps, job, {}, bootPollMs);
      return failCreateSnapshot(deps, job, 'the copy takes too long');
    }
    await store.noteCopied(deps.db(), snapshotId, copy.bytes);
  }
  if (!payloadOf(job).isRestarted) await driver.setPower(name, 'off');
  try {
    await conclude(deps, job, {}, async (tx) => {
      await store.setState(tx, snapshotId, 'ready');
      await emit(tx, { type: 'snapshot.created', snapshotId });
    });
  } finally {
    // A worker that slept until the snapshot had been deleted may have copied the disk again.
    if (!(await store.isKnown(deps.db(), snapshotId))) await driver.deleteSnapshot(name, snapshotId);
  }
}

/** The hypervisor refused, or was asked often enough: what there is of the copy is removed. */
export async function failCreateSnapshot(deps: ServersDeps, job: Job, error: string): Promise<void> {
  const serverId = serverIdOf(job);
  deps.reporter.error('a snapshot failed', { server: serverId, error });
  const { driver } = await hypervisorOf(deps, serverId);
  if (!payloadOf(job).isRestarted) await driver.setPower(guestName(serverId), 'off').catch(() => {});
  await inTransaction(deps.db(), async (tx) => {
    if (!(await isCurrent(tx, job))) return;
    await discard(tx, serverId, await store.findByAction(tx, actionIdOf(job)));
    const message = 'The hypervisor did not take the snapshot. The server keeps what it had.';
    await endAction(tx, serverId, { error: { code: 'hypervisor_failed', message } });
  });
  deps.wake();
}

export async function runRestoreSnapshot(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const { isRestarted } = payloadOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const { snapshotId, imageId } = request.request as SnapshotRequest;
  const { driver } = await hypervisorOf(deps, serverId);
  const name = guestName(serverId);
  if (isRestarted && (await markRebooting(deps, job)) === null) return;
  const isDone = await carryOut(deps, job, '', async () => {
    await driver.restoreSnapshot(name, snapshotId, request.actionId);
    if (isRestarted) await driver.setPower(name, 'on');
  });
  if (!isDone) return;
  await conclude(deps, job, { powerState: isRestarted ? 'running' : 'stopped' }, async (tx) => {
    await noteDisk(tx, serverId, imageId!);
    await emit(tx, { type: 'snapshot.restored', snapshotId });
    if (isRestarted) await noteServerChange(tx, serverId, 'rebooted');
  });
}

/** Removes the copies that are no snapshots any more; one that the disk needs waits for the next disk. */
export async function deleteCopies(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const discarded = await store.listDiscarded(deps.db(), serverId);
  if (discarded.length === 0) return;
  const { driver } = await hypervisorOf(deps, serverId);
  for (const id of discarded)
    if (await driver.deleteSnapshot(guestName(serverId), id)) await store.deleteSnapshot(deps.db(), id);
}
