/** Carries a power command out at the hypervisor, and says honestly what came of a request to halt. */
import { emit } from '#operations/events/index.ts';
import { guestName, type HypervisorDriver } from '#operations/hypervisors/index.ts';
import { noteServerChange, type ServerChangeKind } from '#operations/server-changes/index.ts';
import type { Job } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ServersDeps } from './deps.ts';
import { askAgain, endAction, finish, hypervisorOf, inTransaction, serverIdOf } from './job-kit.ts';
import { type PowerCommand, type PowerState, powerCourse, type ShutdownOutcome } from './server.ts';
import * as store from './store.ts';

const haltPollMs = 1_000;
/** Commands that leave the power state as it was, so that only a change tells of them. */
const restarts: { [command in PowerCommand]?: ServerChangeKind } = { reboot: 'rebooted', reset: 'reset' };

interface PowerJob {
  server_id: number;
  action_id: number;
  /** The guest has been asked to halt already. */
  signalled?: boolean;
}

export async function runPower(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await store.findPowerRequest(deps.db(), serverId);
  if (request?.actionId !== actionIdOf(job) || !(await store.beginAction(deps.db(), request.actionId)))
    return;
  const { driver } = await hypervisorOf(deps, serverId);
  const name = guestName(serverId);
  const command = request.command as PowerCommand;
  if (command === 'shutdown') return halt(deps, job, driver, request);
  if (command === 'reboot') await driver.restart(name, 'acpi');
  else if (command === 'reset') await driver.restart(name, 'reset');
  else await driver.setPower(name, command === 'start' ? 'on' : 'off');
  const change = restarts[command];
  await conclude(deps, job, { powerState: powerCourse[command].to, outcome: null, change });
}

/**
 * Asks the guest to halt and looks until it has, or until its time is over. `signal_sent` means that the result was not checked,
 * `timeout` that it did not halt; with `on_timeout: stop` its power is then cut.
 */
async function halt(
  deps: ServersDeps,
  job: Job,
  driver: HypervisorDriver,
  request: store.PowerRequest,
): Promise<void> {
  const name = guestName(request.serverId);
  if (!(job.payload as PowerJob).signalled) await driver.signalShutdown(name);
  if ((await driver.readPower(name)) === 'off')
    return conclude(deps, job, { powerState: 'stopped', outcome: 'stopped' });
  // The power observer updates the state when no job waits for the guest.
  if (request.timeoutSeconds === 0)
    return conclude(deps, job, { powerState: 'running', outcome: 'signal_sent' });
  if (!(await store.isActionOlder(deps.db(), request.serverId, request.timeoutSeconds)))
    return askAgain(deps, job, { signalled: true }, haltPollMs);
  if (request.onTimeout === 'stop') {
    await driver.setPower(name, 'off');
    return conclude(deps, job, { powerState: 'stopped', outcome: 'timeout' });
  }
  return conclude(deps, job, {
    powerState: 'running',
    outcome: 'timeout',
    error: {
      code: 'shutdown_timeout',
      message: `The guest did not halt within ${request.timeoutSeconds} seconds. Use stop to switch it off.`,
    },
  });
}

async function conclude(
  deps: ServersDeps,
  job: Job,
  result: {
    powerState: PowerState;
    outcome: ShutdownOutcome | null;
    change?: ServerChangeKind | undefined;
    error?: { code: string; message: string };
  },
): Promise<void> {
  const serverId = serverIdOf(job);
  await finish(deps, job, async (tx) => {
    if (!(await isCurrent(tx, job))) return;
    await store.updateState(tx, serverId, { powerState: result.powerState });
    await emit(tx, { type: 'server.power_changed', serverId });
    if (result.change) await noteServerChange(tx, serverId, result.change);
    await endAction(tx, serverId, {
      outcome: result.outcome,
      ...(result.error === undefined ? {} : { error: result.error }),
    });
  });
}

/** Locks the server; false when its action was cancelled, or another has taken its place: the server's state is that one's. */
async function isCurrent(tx: Queryable, job: Job): Promise<boolean> {
  const serverId = serverIdOf(job);
  await store.lockServer(tx, serverId);
  return (await store.findUnfinishedAction(tx, serverId))?.id === actionIdOf(job);
}

const actionIdOf = (job: Job) => (job.payload as PowerJob).action_id;

/** The hypervisor did not obey: what the guest does now is not known. */
export async function failPower(deps: ServersDeps, job: Job, error: string): Promise<void> {
  const serverId = serverIdOf(job);
  deps.reporter.error('power command failed', { server: serverId, error });
  await inTransaction(deps, async (tx) => {
    if (!(await isCurrent(tx, job))) return;
    await store.updateState(tx, serverId, { powerState: 'unknown' });
    const fault = { code: 'hypervisor_failed', message: 'The hypervisor did not carry the command out.' };
    await endAction(tx, serverId, { error: fault });
  });
}
