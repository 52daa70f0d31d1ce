/**
 * The work behind orders, power commands and destruction.
 *
 * Each handler may be killed anywhere and run again: what it decides is in the database before the hypervisor is asked,
 * the hypervisor's calls are idempotent by name, and the last transaction is fenced by the job's term, so a worker that
 * was overtaken changes nothing. What a guest takes its time for (booting, halting) is asked about again by a later job:
 * no worker waits for a guest.
 */

import { describeError, hasCode } from '#common/errors/index.ts';
import { releaseAddresses } from '#operations/addresses/index.ts';
import { releaseRoom } from '#operations/clusters/index.ts';
import { enqueueDestroyNotice } from '#operations/destroy-notices/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName, isPermanentRefusal } from '#operations/hypervisors/index.ts';
import { deleteNicsOf, settleNics } from '#operations/networks/index.ts';
import type { Job, JobHandler } from '#service-kit/jobs/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import { ageOfAction, noteProgress } from './action-store.ts';
import type { ServersDeps } from './index.ts';
import {
  askAgain,
  bootPollMs,
  describeGuest,
  endAction,
  finish,
  hypervisorOf,
  isSilentTooLong,
  removeStray,
  serverIdOf,
  withoutSecret,
} from './job-kit.ts';
import {
  failMachine,
  forgetPassword,
  runIso,
  runNewDisk,
  runReset,
  runResize,
  runUnrescue,
  settleDisk,
} from './run-machine.ts';
import { failPower, runPower } from './run-power.ts';
import { failAddresses, runAddresses, settleAddresses } from './server-addresses.ts';
import { findSource } from './snapshot-store.ts';
import {
  copySecondsMax,
  deleteCopies,
  endSnapshots,
  failCreateSnapshot,
  runCreateSnapshot,
  runRestoreSnapshot,
} from './snapshots.ts';
import * as store from './store.ts';

const provisioningAttemptsMax = 8;
const powerAttemptsMax = 5;

/** Handlers by job kind. */
export function serverJobs(deps: ServersDeps): Record<string, JobHandler> {
  const machine = (run: typeof runNewDisk): JobHandler => ({
    run: (job) => run(deps, job),
    attemptsMax: powerAttemptsMax,
    giveUp: (job, error) => failMachine(deps, job, error),
  });
  const addresses: JobHandler = {
    run: (job) => runAddresses(deps, job),
    attemptsMax: powerAttemptsMax,
    giveUp: (job, error) => failAddresses(deps, job, error),
  };
  return {
    'servers.provision': {
      run: (job) => provision(deps, job),
      attemptsMax: provisioningAttemptsMax,
      giveUp: (job, error) => failProvisioning(deps, serverIdOf(job), 'hypervisor_failed', error),
    },
    'servers.power': {
      run: (job) => runPower(deps, job),
      attemptsMax: powerAttemptsMax,
      giveUp: (job, error) => failPower(deps, job, error),
    },
    'servers.rebuild': machine(runNewDisk),
    'servers.rescue': machine(runNewDisk),
    'servers.unrescue': machine(runUnrescue),
    'servers.attach_iso': machine(runIso),
    'servers.detach_iso': machine(runIso),
    'servers.resize': machine(runResize),
    'servers.reset_password': machine(runReset),
    'servers.attach_address': addresses,
    'servers.detach_address': addresses,
    'servers.create_snapshot': {
      run: (job) => runCreateSnapshot(deps, job),
      attemptsMax: powerAttemptsMax,
      giveUp: (job, error) => failCreateSnapshot(deps, job, error),
    },
    'servers.restore_snapshot': machine(runRestoreSnapshot),
    'servers.delete_snapshots': { run: (job) => deleteCopies(deps, job) },
    'servers.forget_password': { run: (job) => forgetPassword(deps, job) },
    // Until it succeeds, as the others below: the row must name the image of the disk, whether it is in rescue, and its ISO.
    'servers.settle_disk': { run: (job) => settleDisk(deps, job) },
    // What an account has detached must not stay with a server.
    'servers.settle_addresses': { run: (job) => settleAddresses(deps, job) },
    // Without end: a server that its owner destroyed must go, however long its hypervisor is away.
    'servers.destroy': { run: (job) => destroy(deps, job) },
  };
}

async function provision(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const { driver } = await hypervisorOf(deps, serverId);
  const site = await driver.describeSite();
  const facts = await inTransaction(deps.db(), async (tx) => {
    const server = await store.lockServer(tx, serverId);
    if (server === null || !['queued', 'provisioning'].includes(server.provisioningState)) return null;
    if (server.provisioningState === 'queued')
      await store.updateState(tx, serverId, {
        provisioningState: 'provisioning',
        node: site.node,
        failure: null,
      });
    await store.setInterfacePlace(tx, serverId, site.bridge);
    await noteProgress(tx, serverId, 5);
    return server;
  });
  if (facts === null) return;
  const source = await findSource(deps.db(), serverId);
  const guest = {
    ...(await describeGuest(deps, facts, await deps.findRootPassword(facts.orderId))),
    ...(source && { source: { guest: guestName(source.snapshotServerId), snapshot: source.snapshotId } }),
  };
  try {
    const progress = await driver.ensureGuest(guest, (percent) => noteProgress(deps.db(), serverId, percent));
    if (progress === 'copying') return await waitForCopy(deps, job);
    if (progress === 'booting') return await waitForBoot(deps, job);
  } catch (caught) {
    const error = withoutSecret(caught, guest.rootPassword);
    if (!isPermanentRefusal(error)) throw error;
    await failProvisioning(deps, serverId, 'hypervisor_failed', describeError(error));
    return;
  }
  try {
    await finish(deps, job, async (tx) => {
      await store.updateState(tx, serverId, { provisioningState: 'ready', powerState: 'running' });
      await settleNics(
        tx,
        serverId,
        guest.privateInterfaces.map(({ mac }) => mac),
      );
      await emit(tx, { type: 'server.provisioned', serverId });
      await endAction(tx, serverId, {});
    });
  } catch (error) {
    if (hasCode(error, 'jobs.overtaken')) await removeStray(deps, serverId);
    throw error;
  }
}

/** `ready` means addressable: a guest that says nothing within its time has failed, however well it was made. */
async function waitForBoot(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const { copySeconds } = job.payload as { copySeconds?: number };
  if (!(await isSilentTooLong(deps, serverId, copySeconds))) return askAgain(deps, job, {}, bootPollMs);
  await failProvisioning(deps, serverId, 'guest_silent', 'the guest has sent nothing');
}

/** The guest has its time to boot once the copy of its disk is complete. */
async function waitForCopy(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const copySeconds = await ageOfAction(deps.db(), serverId);
  if (copySeconds < copySecondsMax) return askAgain(deps, job, { copySeconds }, bootPollMs);
  await failProvisioning(deps, serverId, 'hypervisor_failed', 'the copy of the snapshot takes too long');
}

/** What customers read: the hypervisor's own words may name machines of ours. */
const failures = {
  hypervisor_failed: 'The server could not be made. Our operators look into it.',
  guest_silent: 'The server was made, but it does not answer. Our operators look into it.',
} as const;

async function failProvisioning(
  deps: ServersDeps,
  serverId: number,
  code: keyof typeof failures,
  error: string,
): Promise<void> {
  deps.reporter.error('provisioning failed', { server: serverId, error });
  await inTransaction(deps.db(), async (tx) => {
    const server = await store.lockServer(tx, serverId);
    if (server === null || !['queued', 'provisioning'].includes(server.provisioningState)) return;
    const failure = { code, message: failures[code] };
    await store.updateState(tx, serverId, { provisioningState: 'failed', failure, failureDetail: error });
    await emit(tx, { type: 'server.provisioning_failed', serverId });
    await endAction(tx, serverId, { error: failure });
  });
}

async function destroy(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  await noteProgress(deps.db(), serverId, 10);
  // Its network interfaces are detached before the guest is deleted, so that none is left on a segment.
  await deps.networks.unplugAll(serverId);
  const { driver } = await hypervisorOf(deps, serverId);
  await driver.ensureGone(guestName(serverId));
  await finish(deps, job, async (tx) => {
    const server = await store.lockServer(tx, serverId);
    if (server === null || server.provisioningState !== 'deleting') return;
    await releaseAddresses(tx, serverId);
    await endSnapshots(deps, tx, serverId);
    await deleteNicsOf(tx, serverId);
    await releaseRoom(tx, serverId);
    const macAddresses = await store.releaseInterfaces(tx, serverId);
    await store.updateState(tx, serverId, { provisioningState: 'deleted', powerState: 'unknown' });
    await emit(tx, { type: 'server.destroyed', serverId });
    await endAction(tx, serverId, {});
    await enqueueDestroyNotice(tx, { clusterId: server.clusterId, serverId, macAddresses });
  });
}
