/**
 * Carries out what `change-machine.ts` recorded: rebuild, resize, rescue, a new root password. What is refused or given up leaves the
 * server with the image, the plan and the price that it had.
 */
import { describeError, hasCode } from '#common/errors/index.ts';
import { setRoom } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName, type HypervisorDriver, isPermanentRefusal } from '#operations/hypervisors/index.ts';
import { noteServerChange } from '#operations/server-changes/index.ts';
import type { PowerState } from '#operations/views/server-store.ts';
import { enqueueJob, type Job } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import {
  type ActionRequest,
  beginAction,
  findActionRequest,
  findUnfinishedAction,
  isActionOlder,
  isPasswordNewer,
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
    await failMachine(deps, job, describeError(error));
    return false;
  }
}

/** A rebuild or a rescue: the guest starts from another disk, with another root password. */
export async function runNewDisk(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const { actionId } = request;
  const isRescue = request.command === 'rescue';
  const { imageId, imageSlug } = request.request as NewImage;
  const { driver } = await hypervisorOf(deps, serverId);
  const facts = await markRebooting(deps, job);
  if (facts === null) return;
  const guest = { ...(await describeGuest(deps, facts, request.rootPassword!)), imageSlug };
  let isSilent = false;
  const isDone = await carryOut(deps, job, guest.rootPassword, async () => {
    const step = (percent: number) => noteProgress(deps.db(), serverId, percent);
    const progress = isRescue
      ? await driver.rescueGuest(guest, actionId, step)
      : await driver.rebuildGuest(guest, actionId, step);
    isSilent = progress === 'booting';
  });
  if (!isDone) return;
  if (isSilent && !(await isSilentTooLong(deps, serverId))) return askAgain(deps, job, {}, bootPollMs);
  const error = isSilent ? guestSilent : undefined;
  await conclude(deps, job, { powerState: 'running', error }, async (tx) => {
    await noteDisks(tx, { ...request, imageId });
    await emit(tx, { type: isRescue ? 'server.rescued' : 'server.rebuilt', serverId });
    await noteServerChange(tx, serverId, 'rebooted');
  });
}

export async function runUnrescue(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const { driver } = await hypervisorOf(deps, serverId);
  if ((await markRebooting(deps, job)) === null) return;
  const isDone = await carryOut(deps, job, '', async () => {
    await driver.endRescue(guestName(serverId), request.actionId);
    await driver.setPower(guestName(serverId), 'on');
  });
  if (!isDone) return;
  await conclude(deps, job, { powerState: 'running' }, async (tx) => {
    await noteDisks(tx, request);
    await emit(tx, { type: 'server.unrescued', serverId });
    await noteServerChange(tx, serverId, 'rebooted');
  });
}

export async function runIso(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const { imageId, imageSlug = null } = (request.request ?? {}) as Partial<NewImage>;
  const { driver } = await hypervisorOf(deps, serverId);
  let isThere = 'now' as 'now' | 'next_boot';
  const isDone = await carryOut(deps, job, '', async () => {
    isThere = await driver.changeIso(guestName(serverId), imageSlug, request.actionId);
  });
  if (!isDone) return;
  await conclude(deps, job, { outcome: isThere === 'now' ? null : isThere }, async (tx) => {
    await noteDisks(tx, { ...request, imageId });
    await emit(tx, { type: imageSlug === null ? 'server.iso_detached' : 'server.iso_attached', serverId });
  });
}

/** Null when the action is not the server's any more. */
export function markRebooting(deps: ServersDeps, job: Job): Promise<store.ProvisioningFacts | null> {
  return inTransaction(deps.db(), async (tx) => {
    if (!(await isCurrent(tx, job))) return null;
    await store.updateState(tx, serverIdOf(job), { powerState: 'rebooting' });
    return store.lockServer(tx, serverIdOf(job));
  });
}

/** An action that gives a guest another disk, or another ISO. */
interface DiskChange extends Pick<ActionRequest, 'actionId' | 'serverId' | 'command'> {
  /** What the new disk was made from, or the ISO. */
  imageId?: number | undefined;
  /** Of `attach_iso`. */
  imageSlug?: string | undefined;
}

const isOfIso = ({ command }: DiskChange) => command === 'attach_iso' || command === 'detach_iso';
const isOfRescue = ({ command }: DiskChange) => command === 'rescue' || command === 'unrescue';

/** Whether the guest has the disks that the action asks for. */
async function hasDisksOf(driver: HypervisorDriver, change: DiskChange): Promise<boolean> {
  const name = guestName(change.serverId);
  if (isOfIso(change)) return (await driver.readIso(name)) === (change.imageSlug ?? null);
  if (isOfRescue(change)) return (await driver.readRescue(name)) === (change.command === 'rescue');
  return change.imageId !== undefined && (await driver.readRebuild(name)) === change.actionId;
}

async function noteDisks(tx: Queryable, change: DiskChange): Promise<void> {
  const { serverId, imageId } = change;
  if (isOfIso(change)) await store.setIso(tx, serverId, imageId ?? null);
  else if (isOfRescue(change)) await store.setRescue(tx, serverId, change.command === 'rescue');
  else await noteDisk(tx, serverId, imageId!);
}

/** The server has another disk, made from this image. */
export async function noteDisk(tx: Queryable, serverId: number, imageId: number): Promise<void> {
  await store.noteNewMachine(tx, serverId, imageId);
  await cleanUpSnapshots(tx, serverId);
}

export async function runReset(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await begin(deps, job);
  if (request === null) return;
  const { driver } = await hypervisorOf(deps, serverId);
  const facts = await inTransaction(deps.db(), (tx) => store.lockServer(tx, serverId));
  if (facts === null) return;
  const guest = await describeGuest(deps, facts, request.rootPassword!);
  let holds = 'now' as 'now' | 'next_boot';
  const isDone = await carryOut(deps, job, guest.rootPassword, async () => {
    holds = await driver.setRootPassword(guest, request.actionId);
  });
  if (!isDone) return;
  const outcome = holds === 'next_boot' ? holds : null;
  await conclude(deps, job, { outcome }, async (tx) => {
    await store.noteNewMachine(tx, serverId, null);
    if (outcome === null) return;
    const payload = { server_id: serverId, action_id: request.actionId };
    await enqueueJob(tx, 'servers.forget_password', payload, passwordMs);
  });
}

/** How long a node keeps a password for the next boot. */
const passwordMs = 24 * 60 * 60 * 1000;

/** Works on a server between its actions, however long one takes. It stays locked, so that none begins meanwhile. */
async function whenIdle(
  deps: ServersDeps,
  job: Job,
  work: (tx: Queryable, facts: store.ProvisioningFacts) => Promise<void>,
): Promise<void> {
  const serverId = serverIdOf(job);
  const isBusy = await inTransaction(deps.db(), async (tx) => {
    const facts = await store.lockServer(tx, serverId);
    if (facts?.provisioningState !== 'ready') return false;
    if ((await findUnfinishedAction(tx, serverId)) !== null) return true;
    await work(tx, facts);
    return false;
  });
  if (isBusy) await askAgain(deps, job, {}, 60_000);
}

/**
 * Takes a password from the node that it kept for the next boot, unless a later one is there. A rebuild that began beside it would lose
 * its own password.
 */
export function forgetPassword(deps: ServersDeps, job: Job): Promise<void> {
  return whenIdle(deps, job, async (tx, facts) => {
    if (await isPasswordNewer(tx, facts.id, actionIdOf(job))) return;
    const { driver } = await hypervisorOf(deps, facts.id);
    await driver.forgetRootPassword(await describeGuest(deps, facts, ''));
  });
}

/** Finds out what a rebuild, a restore, a rescue or its end did before its node stopped answering. */
export function settleDisk(deps: ServersDeps, job: Job): Promise<void> {
  return whenIdle(deps, job, async (tx, { id: serverId }) => {
    const { driver } = await hypervisorOf(deps, serverId);
    // Version 0.1 and older name no command, and knew no rescue.
    const {
      image_id: imageId,
      image_slug: imageSlug,
      command = 'rebuild',
    } = job.payload as { image_id?: number; image_slug?: string; command?: DiskChange['command'] };
    const change = { serverId, actionId: actionIdOf(job), command, imageId, imageSlug };
    if (await hasDisksOf(driver, change)) await noteDisks(tx, change);
  });
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
      await inTransaction(deps.db(), (tx) => store.updateState(tx, serverId, { powerState: 'stopping' }));
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
  result: { powerState?: PowerState; outcome?: 'next_boot' | null; error?: Fault | undefined },
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
      const { error, outcome } = result;
      await endAction(tx, serverId, error ? { error } : { outcome: outcome ?? null });
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
const diskReplaced = {
  code: 'hypervisor_failed',
  message: 'The server has its other disk, but the hypervisor did not start it.',
};
const driveChanged = {
  code: 'hypervisor_failed',
  message:
    'The hypervisor did not change the CD drive of the running server; it is changed from its next start on.',
};
const diskUnknown = {
  code: 'hypervisor_failed',
  message: 'The hypervisor does not answer. Whether it was carried out is seen when it does.',
};
const guestSilent = {
  code: 'guest_silent',
  message: 'The server has its other disk, but the operating system on it does not answer.',
};

/** The hypervisor refused, or was asked often enough. A guest that was shut down for a resize is started again. */
export async function failMachine(deps: ServersDeps, job: Job, error: string): Promise<void> {
  const serverId = serverIdOf(job);
  deps.reporter.error('a change of a guest failed', { server: serverId, job: job.kind, error });
  const { driver } = await hypervisorOf(deps, serverId);
  const name = guestName(serverId);
  if (payloadOf(job).isRestarted && !/\.(reset_password|attach_iso|detach_iso)$/.test(job.kind))
    await driver.setPower(name, 'on').catch(() => {});
  const power = await driver.readPower(name).catch(() => null);
  const powerState = power === 'on' ? 'running' : power === 'off' ? 'stopped' : 'unknown';
  // A new disk does not go back: where there is one, what came after it has failed.
  const request = await findActionRequest(deps.db(), actionIdOf(job));
  const { imageId, imageSlug } = (request?.request ?? {}) as Partial<NewImage>;
  const change = request && { ...request, imageId, imageSlug };
  const isDone = change && (await hasDisksOf(driver, change).catch(() => 'unknown' as const));
  await inTransaction(deps.db(), async (tx) => {
    if (!(await isCurrent(tx, job))) return;
    if (isDone === true) await noteDisks(tx, change!);
    else if (isDone === 'unknown')
      await enqueueJob(tx, 'servers.settle_disk', {
        ...(job.payload as object),
        ...{ image_id: imageId, image_slug: imageSlug, command: change!.command },
      });
    await store.updateState(tx, serverId, { powerState });
    await freeRoom(tx, serverId);
    const done = change && isOfIso(change) ? driveChanged : diskReplaced;
    const undone = isDone === 'unknown' ? diskUnknown : hypervisorFailed;
    await endAction(tx, serverId, { error: isDone === true ? done : undone });
  });
}
