/**
 * Carries out what `change-machine.ts` recorded: rebuild, resize, a new root password. What is refused or given up leaves the
 * server with the image, the plan and the price that it had.
 */
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import { setRoom } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName, isPermanentRefusal } from '#operations/hypervisors/index.ts';
import { noteServerChange } from '#operations/server-changes/index.ts';
import type { PowerState } from '#operations/views/index.ts';
import type { Job } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type ActionRequest,
  beginAction,
  findActionRequest,
  isActionOlder,
  type NewImage,
  type NewPlan,
  noteProgress,
} from './action-store.ts';
import { changePlan } from './charge-server-hours.ts';
import type { ServersDeps } from './index.ts';
import {
  actionIdOf,
  askAgain,
  bootPollMs,
  cleanUpSnapshots,
  describeGuest,
  endAction,
  finish,
  hypervisorOf,
  inTransaction,
  isSilentTooLong,
  removeStray,
  serverIdOf,
  withoutSecret,
} from './job-kit.ts';
import { haltPollMs, isCurrent } from './run-power.ts';
import * as store from './store.ts';

interface MachineJob {
  /** The server ran when this was asked for. */
  isRestarted: boolean;
  /** The guest has been asked to halt already. */
  signalled?: boolean;
}

interface Fault {
  code: string;
  message: string;
}

export const payloadOf = (job: Job) => job.payload as MachineJob;

/** What the action asks for, once it is marked as begun; null when it has ended. */
export async function begin(deps: ServersDeps, job: Job): Promise<ActionRequest | null> {
  const request = await findActionRequest(deps.db(), actionIdOf(job));
  return request !== null && (await beginAction(deps.db(), request.actionId)) ? request : null;
}

/** Runs a call of the hypervisor; a final refusal ends the action. False then. */
export async function carryOut(
  deps: ServersDeps,
  job: Job,
  secret: string,
  work: () => Promise<void>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (caught) {
    const error = secret === '' ? caught : withoutSecret(caught, secret);
    if (!isPermanentRefusal(error)) throw error;
    const hasNoAgent = error instanceof CodedError && error.details.reason === 'no_agent';
    await failMachine(deps, job, describeError(error), hasNoAgent ? noAgent : undefined);
    return false;
  }
}

export async function runRebuild(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const { imageId, imageSlug } = request.request as NewImage;
  const { driver } = await hypervisorOf(deps, serverId);
  const facts = await inTransaction(deps, async (tx) => {
    if (!(await isCurrent(tx, job))) return null;
    await store.updateState(tx, serverId, { powerState: 'rebooting' });
    return store.lockServer(tx, serverId);
  });
  if (facts === null) return;
  const guest = { ...(await describeGuest(deps, facts, request.rootPassword!)), imageSlug };
  let isSilent = false;
  const isDone = await carryOut(deps, job, guest.rootPassword, async () => {
    const step = (percent: number) => noteProgress(deps.db(), serverId, percent);
    isSilent = (await driver.rebuildGuest(guest, request.actionId, step)) === 'booting';
  });
  if (!isDone) return;
  if (isSilent && !(await isSilentTooLong(deps, serverId))) return askAgain(deps, job, {}, bootPollMs);
  const error = isSilent ? guestSilent : undefined;
  await conclude(deps, job, { powerState: 'running', error }, async (tx) => {
    await cleanUpSnapshots(tx, serverId);
    await store.setImage(tx, serverId, imageId);
    await emit(tx, { type: 'server.rebuilt', serverId });
    await noteServerChange(tx, serverId, 'rebooted');
  });
}

export async function runReset(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const { driver } = await hypervisorOf(deps, serverId);
  const password = request.rootPassword!;
  if (await carryOut(deps, job, password, () => driver.setRootPassword(guestName(serverId), password)))
    await conclude(deps, job, {}, async () => {});
}

export async function runResize(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const { isRestarted, signalled } = payloadOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const name = guestName(serverId);
  const plan = request.request as NewPlan;
  const { driver } = await hypervisorOf(deps, serverId);
  if ((await driver.readPower(name)) === 'on') {
    if (!signalled) {
      await inTransaction(deps, (tx) => store.updateState(tx, serverId, { powerState: 'stopping' }));
      await driver.signalShutdown(name);
    }
    if ((await driver.readPower(name)) !== 'off') {
      if (!(await isActionOlder(deps.db(), serverId, request.timeoutSeconds)))
        return askAgain(deps, job, { signalled: true }, haltPollMs);
      if (request.onTimeout !== 'stop') return abandonResize(deps, job, request.timeoutSeconds);
      await driver.setPower(name, 'off');
    }
  }
  await noteProgress(deps.db(), serverId, 50);
  const isDone = await carryOut(deps, job, '', async () => {
    await driver.resizeGuest(name, plan);
    if (isRestarted) await driver.setPower(name, 'on');
  });
  if (!isDone) return;
  await conclude(deps, job, { powerState: isRestarted ? 'running' : 'stopped' }, async (tx) => {
    await changePlan(tx, serverId, request.actionId, plan);
    await setRoom(tx, serverId, plan);
    await emit(tx, { type: 'server.resized', serverId });
    if (isRestarted) await noteServerChange(tx, serverId, 'rebooted');
  });
}

/** The guest did not halt, so nothing was changed. */
function abandonResize(deps: ServersDeps, job: Job, seconds: number): Promise<void> {
  const error = {
    code: 'shutdown_timeout',
    message: `The operating system did not shut down within ${seconds} seconds, so the server was not resized. Stop the server first.`,
  };
  return conclude(deps, job, { powerState: 'running', error }, (tx) => freeRoom(tx, serverIdOf(job)));
}

/** Back to the room that the server's own sizes take. */
async function freeRoom(tx: Queryable, serverId: number): Promise<void> {
  const server = await store.lockServer(tx, serverId);
  if (server !== null) await setRoom(tx, serverId, server);
}

/**
 * Ends job and action in one transaction; nothing happens when the action has ended before. A worker that was overtaken
 * removes the guest that it may have defined again after its server was destroyed.
 */
export async function conclude(
  deps: ServersDeps,
  job: Job,
  result: { powerState?: PowerState; error?: Fault | undefined },
  effects: (tx: Queryable) => Promise<void>,
): Promise<void> {
  const serverId = serverIdOf(job);
  try {
    await finish(deps, job, async (tx) => {
      if (!(await isCurrent(tx, job))) return;
      await effects(tx);
      if (result.powerState) {
        await store.updateState(tx, serverId, { powerState: result.powerState });
        await emit(tx, { type: 'server.power_changed', serverId });
      }
      await endAction(tx, serverId, result.error ? { error: result.error } : {});
    });
  } catch (error) {
    if (hasCode(error, 'jobs.overtaken')) await removeStray(deps, serverId);
    throw error;
  }
}

const hypervisorFailed = {
  code: 'hypervisor_failed',
  message: 'The hypervisor did not carry it out. The server keeps what it had.',
};
const guestSilent = {
  code: 'guest_silent',
  message: 'The server was rebuilt, but its operating system does not answer.',
};
const noAgent = {
  code: 'no_guest_agent',
  message: 'Nothing in the server can set a password. Install and start the package qemu-guest-agent in it.',
};

/** The hypervisor refused, or was asked often enough. A guest that was shut down for a resize is started again. */
export async function failMachine(
  deps: ServersDeps,
  job: Job,
  error: string,
  fault: Fault = hypervisorFailed,
): Promise<void> {
  const serverId = serverIdOf(job);
  deps.reporter.error('a change of a guest failed', { server: serverId, job: job.kind, error });
  const { driver } = await hypervisorOf(deps, serverId);
  const name = guestName(serverId);
  if (payloadOf(job).isRestarted && job.kind !== 'servers.reset_password')
    await driver.setPower(name, 'on').catch(() => {});
  const power = await driver.readPower(name).catch(() => null);
  const powerState = power === 'on' ? 'running' : power === 'off' ? 'stopped' : 'unknown';
  await inTransaction(deps, async (tx) => {
    if (!(await isCurrent(tx, job))) return;
    await store.updateState(tx, serverId, { powerState });
    await freeRoom(tx, serverId);
    await endAction(tx, serverId, { error: fault });
  });
}
