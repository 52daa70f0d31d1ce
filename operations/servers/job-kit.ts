/** What the handlers of servers' jobs have in common. */
import { CodedError, describeError } from '#common/errors/index.ts';
import { listGuestAddresses } from '#operations/addresses/index.ts';
import { findNodeOfServer, type Node } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { type GuestDefinition, guestName, type HypervisorDriver } from '#operations/hypervisors/index.ts';
import { enqueueJob, finishJob, type Job } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { finishAction, isActionOlder } from './action-store.ts';
import type { ServersDeps } from './index.ts';
import { listDiscarded } from './snapshot-store.ts';
import { lockServer, type ProvisioningFacts } from './store.ts';

/** The hypervisor of a server's node. A deleted server's is the node that it last had. */
export async function hypervisorOf(
  deps: ServersDeps,
  serverId: number,
): Promise<{ driver: HypervisorDriver; node: Node }> {
  const node = await findNodeOfServer(deps.db(), serverId);
  if (node === null) throw new CodedError('servers.no_node', `Server ${serverId} has no room on any node.`);
  return { driver: deps.hypervisors.of(node), node };
}

/** The last transaction of a job, undone when another worker has claimed the job since. */
export async function finish(deps: ServersDeps, job: Job, effects: (tx: Queryable) => Promise<void>) {
  await inTransaction(deps.db(), async (tx) => {
    if (!(await finishJob(tx, job)))
      throw new CodedError('jobs.overtaken', 'Another worker has taken this job over.');
    await effects(tx);
  });
}

/** Ends the server's unfinished action and emits its event. */
export async function endAction(tx: Queryable, serverId: number, result: Parameters<typeof finishAction>[2]) {
  const actionId = await finishAction(tx, serverId, result);
  if (actionId !== null) await emit(tx, { type: 'action.finished', serverId, actionId });
}

/** Ends this job and queues the same job for later, so that no worker waits. */
export function askAgain(deps: ServersDeps, job: Job, more: object, delayMs: number): Promise<void> {
  return finish(deps, job, async (tx) => {
    await enqueueJob(tx, job.kind, { ...(job.payload as object), ...more }, delayMs);
  });
}

export function serverIdOf(job: Job): number {
  return (job.payload as { server_id: number }).server_id;
}

export function actionIdOf(job: Job): number {
  return (job.payload as { action_id: number }).action_id;
}

/** A hypervisor's tools may repeat what they were given: of the password nothing comes into a log or a table. */
export function withoutSecret(error: unknown, secret: string): unknown {
  const told = describeError(error);
  if (!told.includes(secret)) return error;
  const message = told.replaceAll(secret, '(password)');
  return error instanceof CodedError ? new CodedError(error.code, message) : new Error(message);
}

/** The guest as the hypervisor is to make it. */
export async function describeGuest(
  deps: ServersDeps,
  facts: ProvisioningFacts,
  rootPassword: string,
): Promise<GuestDefinition> {
  return {
    name: guestName(facts.id),
    mac: facts.macAddress,
    addresses: await listGuestAddresses(deps.db(), facts.id),
    privateInterfaces: await deps.networks.listInterfaces(facts.id),
    hostname: facts.hostname,
    imageSlug: facts.imageSlug,
    vcpus: facts.vcpus,
    memoryMb: facts.memoryMb,
    diskGb: facts.diskGb,
    rootPassword,
    sshKeys: facts.sshKeys,
    userData: facts.userData,
  };
}

/** A worker that slept through the destruction of its server may have made the guest again. */
export async function removeStray(deps: ServersDeps, serverId: number): Promise<void> {
  const server = await inTransaction(deps.db(), (tx) => lockServer(tx, serverId));
  if (server?.provisioningState !== 'deleted') return;
  const { driver } = await hypervisorOf(deps, serverId);
  await driver.ensureGone(guestName(serverId));
}

/** Queues the removal of copies that are no snapshots any more: the disk of the server may need one of them no longer. */
export async function cleanUpSnapshots(tx: Queryable, serverId: number): Promise<void> {
  if ((await listDiscarded(tx, serverId)).length > 0)
    await enqueueJob(tx, 'servers.delete_snapshots', { server_id: serverId });
}

/** How often a guest that boots, or a disk that is copied, is looked at. */
export const bootPollMs = 2_000;

/** How long a new guest may be silent before its provisioning has failed. */
const bootSecondsMax = 180;

/** True when a guest has had its time to boot since the action began, or since its disk was copied so many seconds later. */
export function isSilentTooLong(deps: ServersDeps, serverId: number, copySeconds = 0): Promise<boolean> {
  return isActionOlder(deps.db(), serverId, copySeconds + bootSecondsMax);
}
