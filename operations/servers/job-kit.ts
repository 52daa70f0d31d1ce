/** What the handlers of servers' jobs have in common. */
import { CodedError } from '#common/errors/index.ts';
import { findNodeOfServer, type Node } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import type { HypervisorDriver } from '#operations/hypervisors/index.ts';
import { enqueueJob, finishJob, type Job } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { finishAction } from './action-store.ts';
import type { ServersDeps } from './index.ts';

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
export async function finish(
  deps: ServersDeps,
  job: Job,
  effects: (tx: Queryable) => Promise<void>,
): Promise<void> {
  await inTransaction(deps, async (tx) => {
    if (!(await finishJob(tx, job)))
      throw new CodedError('jobs.overtaken', 'Another worker has taken this job over.');
    await effects(tx);
  });
}

/** Ends the server's unfinished action and emits its event. */
export async function endAction(
  tx: Queryable,
  serverId: number,
  result: Parameters<typeof finishAction>[2],
): Promise<void> {
  const actionId = await finishAction(tx, serverId, result);
  if (actionId !== null) await emit(tx, { type: 'action.finished', serverId, actionId });
}

/** Ends this job and queues the same job for later, so that no worker waits. */
export function askAgain(deps: ServersDeps, job: Job, more: object, delayMs: number): Promise<void> {
  return finish(deps, job, async (tx) => {
    await enqueueJob(tx, job.kind, { ...(job.payload as object), ...more }, delayMs);
  });
}

export function inTransaction<T>(deps: ServersDeps, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return deps.db().transaction().execute(work);
}

export function serverIdOf(job: Job): number {
  return (job.payload as { server_id: number }).server_id;
}
