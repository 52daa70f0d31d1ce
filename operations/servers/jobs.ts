/**
 * The work behind orders, power commands and destruction.
 *
 * Each handler may be killed anywhere and run again: what it decides is in the database before the hypervisor is asked,
 * the hypervisor's calls are idempotent by name, and the last transaction is fenced by the job's term, so a worker that
 * was overtaken changes nothing.
 */
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import { releaseAddresses } from '#operations/addresses/index.ts';
import { enqueueDestroyNotice } from '#operations/destroy-notices/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName, isPermanentRefusal } from '#operations/hypervisors/index.ts';
import { deleteCardsOf, markAttached } from '#operations/networks/index.ts';
import { finishJob, type Job, type JobHandler } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ServersDeps } from './index.ts';
import { type PowerCommand, powerCourse } from './server.ts';
import * as store from './store.ts';

const provisioningAttemptsMax = 8;
const powerAttemptsMax = 5;

/** Handlers by job kind. */
export function serverJobs(deps: ServersDeps): Record<string, JobHandler> {
  return {
    'servers.provision': {
      run: (job) => provision(deps, job),
      attemptsMax: provisioningAttemptsMax,
      giveUp: (job, error) => failProvisioning(deps, serverIdOf(job), error),
    },
    'servers.power': {
      run: (job) => runPower(deps, job),
      attemptsMax: powerAttemptsMax,
      giveUp: (job, error) => failPower(deps, serverIdOf(job), error),
    },
    // Without end: a server that its owner destroyed must go, however long its hypervisor is away.
    'servers.destroy': { run: (job) => destroy(deps, job) },
  };
}

async function provision(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const site = await deps.hypervisor.describeSite();
  const facts = await inTransaction(deps, async (tx) => {
    const server = await store.lockServer(tx, serverId);
    if (server === null || !['queued', 'provisioning'].includes(server.provisioningState)) return null;
    if (server.provisioningState === 'queued')
      await store.updateState(tx, serverId, {
        provisioningState: 'provisioning',
        node: site.node,
        failure: null,
      });
    await store.setInterfacePlace(tx, serverId, site.bridge);
    await store.noteProgress(tx, serverId, 5);
    return server;
  });
  if (facts === null) return;
  const addresses = await deps.addresses.listAllocationsOfServers([serverId]);
  const guest = {
    name: guestName(serverId),
    mac: facts.macAddress,
    addresses,
    privateInterfaces: await deps.networks.listInterfaces(serverId),
    hostname: facts.hostname,
    imageSlug: facts.imageSlug,
    vcpus: facts.vcpus,
    memoryMb: facts.memoryMb,
    diskGb: facts.diskGb,
    rootPassword: await store.findRootPassword(deps.db(), facts.orderId),
    sshKeys: facts.sshKeys,
    userData: facts.userData,
  };
  try {
    await deps.hypervisor.ensureGuest(guest, (progress) => store.noteProgress(deps.db(), serverId, progress));
  } catch (error) {
    if (!isPermanentRefusal(error)) throw error;
    await failProvisioning(deps, serverId, describeError(error));
    return;
  }
  try {
    await finish(deps, job, async (tx) => {
      await store.updateState(tx, serverId, { provisioningState: 'ready', powerState: 'running' });
      await markAttached(tx, serverId);
      await emit(tx, { type: 'server.provisioned', serverId });
      await endAction(tx, serverId, {});
    });
  } catch (error) {
    if (hasCode(error, 'jobs.overtaken')) await removeStray(deps, serverId);
    throw error;
  }
}

/** A worker that slept through the destruction of its server may have made the guest again. */
async function removeStray(deps: ServersDeps, serverId: number): Promise<void> {
  const server = await inTransaction(deps, (tx) => store.lockServer(tx, serverId));
  if (server?.provisioningState === 'deleted') await deps.hypervisor.ensureGone(guestName(serverId));
}

async function failProvisioning(deps: ServersDeps, serverId: number, error: string): Promise<void> {
  deps.reporter.error('provisioning failed', { server: serverId, error });
  await inTransaction(deps, async (tx) => {
    const server = await store.lockServer(tx, serverId);
    if (server === null || !['queued', 'provisioning'].includes(server.provisioningState)) return;
    // The hypervisor's own words may name machines of ours; the customer reads a sentence that doesn't.
    const failure = {
      code: 'hypervisor_failed',
      message: 'The server could not be made. Our operators look into it.',
    };
    await store.updateState(tx, serverId, { provisioningState: 'failed', failure });
    await emit(tx, { type: 'server.provisioning_failed', serverId });
    await endAction(tx, serverId, { error: failure });
  });
}

async function runPower(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const action = await store.findUnfinishedAction(deps.db(), serverId);
  if (action === null || action.id !== (job.payload as { action_id: number }).action_id) return;
  const course = powerCourse[action.command as PowerCommand];
  await store.noteProgress(deps.db(), serverId, 10);
  const name = guestName(serverId);
  if (course.via === 'rebooting') await deps.hypervisor.restart(name);
  else await deps.hypervisor.setPower(name, course.to === 'running' ? 'on' : 'off');
  await finish(deps, job, async (tx) => {
    await store.updateState(tx, serverId, { powerState: course.to });
    await emit(tx, { type: 'server.power_changed', serverId });
    await endAction(tx, serverId, { outcome: course.outcome });
  });
}

/** The hypervisor did not obey: what the guest does now is not known. */
async function failPower(deps: ServersDeps, serverId: number, error: string): Promise<void> {
  deps.reporter.error('power command failed', { server: serverId, error });
  await inTransaction(deps, async (tx) => {
    await store.updateState(tx, serverId, { powerState: 'unknown' });
    const fault = { code: 'hypervisor_failed', message: 'The hypervisor did not carry the command out.' };
    await endAction(tx, serverId, { error: fault });
  });
}

async function destroy(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  await store.noteProgress(deps.db(), serverId, 10);
  // Its cards leave their networks before the guest goes, so that nothing of it is left on a segment.
  await deps.networks.unplugAll(serverId);
  await deps.hypervisor.ensureGone(guestName(serverId));
  await finish(deps, job, async (tx) => {
    const server = await store.lockServer(tx, serverId);
    if (server === null || server.provisioningState !== 'deleting') return;
    await releaseAddresses(tx, serverId);
    await deleteCardsOf(tx, serverId);
    const macAddresses = await store.releaseInterfaces(tx, serverId);
    await store.updateState(tx, serverId, { provisioningState: 'deleted', powerState: 'unknown' });
    await emit(tx, { type: 'server.destroyed', serverId });
    await endAction(tx, serverId, {});
    await enqueueDestroyNotice(tx, { clusterId: server.clusterId, serverId, macAddresses });
  });
}

/** Ends the server's unfinished action, and tells whoever subscribed to that. */
async function endAction(
  tx: Queryable,
  serverId: number,
  result: Parameters<typeof store.finishAction>[2],
): Promise<void> {
  const actionId = await store.finishAction(tx, serverId, result);
  if (actionId !== null) await emit(tx, { type: 'action.finished', serverId, actionId });
}

/** The last transaction of a job, undone when another worker has claimed the job since. */
async function finish(deps: ServersDeps, job: Job, effects: (tx: Queryable) => Promise<void>): Promise<void> {
  await inTransaction(deps, async (tx) => {
    if (!(await finishJob(tx, job)))
      throw new CodedError('jobs.overtaken', 'Another worker has taken this job over.');
    await effects(tx);
  });
}

function inTransaction<T>(deps: ServersDeps, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return deps.db().transaction().execute(work);
}

function serverIdOf(job: Job): number {
  return (job.payload as { server_id: number }).server_id;
}
