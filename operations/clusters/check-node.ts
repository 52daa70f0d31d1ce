/**
 * Checks of nodes: when one is added, when its connection changes, and at an operator's request. A job asks the hypervisor, so that no
 * page waits for a node that hangs; its result stays until the next check.
 */
import { CodedError, describeError } from '#common/errors/index.ts';
import { imageKinds } from '#contracts/capabilities.ts';
import { type Actor, requireOperator } from '#operations/accounts/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import { type Hypervisors, imageFile, type NodeCheck } from '#operations/hypervisors/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob, finishJob, type Job, type JobHandler } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

interface CheckDeps {
  db: () => Queryable;
  hypervisors: Hypervisors;
  catalog: Catalog;
}

/** Throws `clusters.not_found`. Operators only. */
export async function checkNode(deps: Pick<CheckDeps, 'db'>, actor: Actor, nodeId: number): Promise<void> {
  requireOperator(actor);
  const node = await store.findNode(deps.db(), nodeId);
  if (node === null) throw new CodedError('clusters.not_found', 'There is no such node.');
  await inTransaction(deps.db(), async (tx) => {
    await askCheck(tx, nodeId);
    const subject = { kind: 'node', id: nodeId, name: node.name };
    await record(tx, actor, { operation: 'node.check', subject });
  });
}

/** Queues a check in the transaction that is a reason for one. */
export async function askCheck(tx: Queryable, nodeId: number): Promise<void> {
  await store.beginCheck(tx, nodeId);
  await enqueueJob(tx, 'clusters.check_node', { node_id: nodeId });
}

export function checkJobs(deps: CheckDeps): Record<string, JobHandler> {
  return { 'clusters.check_node': { run: (job) => runCheck(deps, job) } };
}

async function runCheck({ db, hypervisors, catalog }: CheckDeps, job: Job): Promise<void> {
  const { node_id: nodeId } = job.payload as { node_id: number };
  const node = await store.findNode(db(), nodeId);
  if (node === null) return;
  const files = (await catalog.listImages(imageKinds)).map(imageFile);
  let checks: NodeCheck[];
  try {
    checks = await hypervisors.of(node).checkNode(files);
  } catch (error) {
    checks = [{ subject: 'connection', state: 'bad', text: describeError(error) }];
  }
  await inTransaction(db(), async (tx) => {
    if (await finishJob(tx, job)) await store.endCheck(tx, nodeId, checks);
  });
}
