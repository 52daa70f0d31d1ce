/**
 * What operators do about a server whose provisioning failed. Until one of them has, its owner can't destroy it
 * (API-3.4): parts of it may remain on a node, and only an operator can find out.
 */
import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireOperator, requireStaff } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName } from '#operations/hypervisors/index.ts';
import { detachAll, settleNics } from '#operations/networks/index.ts';
import { findServer, type ServerAction } from '#operations/views/server-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { insertAction } from './action-store.ts';
import { notFound, requester } from './authorise.ts';
import type { ServersDeps } from './index.ts';
import { endAction, hypervisorOf } from './job-kit.ts';
import * as store from './store.ts';

/** `repaired`: the guest runs now. `remove`: its remains are removed, as when its owner destroys it. */
export type Resolution = 'repaired' | 'remove';

/** Sends a failed server through provisioning again. Operators only; throws `servers.not_failed` for any other state. */
export async function retryProvisioning(deps: ServersDeps, actor: Actor, serverId: number): Promise<void> {
  await withFailed(deps, actor, 'server.retry', serverId, async (tx) => {
    const action = await insertAction(tx, { serverId, command: 'create', ...requester(actor) });
    await store.updateState(tx, serverId, { provisioningState: 'queued', failure: null });
    await enqueueJob(tx, 'servers.provision', { server_id: serverId });
    return action;
  });
  deps.wake();
}

/**
 * Ends a failed provisioning by an operator's decision. Throws `servers.not_failed`, and `servers.not_running` when a
 * guest that is called repaired does not run: what customers read must be so.
 */
export async function resolveProvisioning(
  deps: ServersDeps,
  actor: Actor,
  serverId: number,
  resolution: Resolution,
): Promise<ServerAction> {
  requireOperator(actor);
  if (resolution === 'repaired') {
    const { driver } = await hypervisorOf(deps, serverId);
    if ((await driver.readPower(guestName(serverId))) !== 'on')
      throw new CodedError(
        'servers.not_running',
        `The node has no running guest ${guestName(serverId)}. Start it there first, or provision again.`,
      );
  }
  const action = await withFailed(deps, actor, `server.resolve_${resolution}`, serverId, async (tx) => {
    if (resolution === 'remove') {
      const destroying = await insertAction(tx, { serverId, command: 'destroy', ...requester(actor) });
      await store.updateState(tx, serverId, { provisioningState: 'deleting', failure: null });
      await detachAll(tx, serverId);
      await enqueueJob(tx, 'servers.destroy', { server_id: serverId });
      return destroying;
    }
    const creating = await insertAction(tx, { serverId, command: 'create', ...requester(actor) });
    await store.updateState(tx, serverId, {
      provisioningState: 'ready',
      powerState: 'running',
      failure: null,
    });
    await settleNics(tx, serverId, []);
    await emit(tx, { type: 'server.provisioned', serverId });
    await endAction(tx, serverId, {});
    return creating;
  });
  deps.wake();
  return action;
}

/** What the hypervisor said about a failed server, in its own words. Staff only. */
export async function findFailureDetail(
  deps: ServersDeps,
  actor: Actor,
  serverId: number,
): Promise<string | null> {
  requireStaff(actor);
  return store.findFailureDetail(deps.db(), serverId);
}

async function withFailed(
  deps: ServersDeps,
  actor: Actor,
  operation: `server.${string}`,
  serverId: number,
  change: (tx: Queryable) => Promise<ServerAction>,
): Promise<ServerAction> {
  requireOperator(actor);
  return inTransaction(deps.db(), async (tx) => {
    const server = await store.lockServer(tx, serverId);
    if (server === null || server.provisioningState === 'deleted') throw notFound();
    if (server.provisioningState !== 'failed')
      throw new CodedError('servers.not_failed', `Server ${serverId} has not failed provisioning.`);
    const found = await findServer(deps.db(), 'all', serverId);
    const action = await change(tx);
    await record(tx, actor, {
      operation,
      subject: { kind: 'server', id: serverId, name: found?.name ?? null },
      tenantId: found?.tenantId ?? null,
      after: { actionId: action.id },
    });
    return action;
  });
}
