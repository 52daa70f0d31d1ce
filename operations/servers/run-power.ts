/** Carries a power command out at the hypervisor, and says honestly what came of a request to halt. */

import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { type Clusters, noteSeen } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { recordGuards } from '#operations/guards/index.ts';
import {
  guestName,
  type HypervisorDriver,
  type Hypervisors,
  serverIdOfGuest,
} from '#operations/hypervisors/index.ts';
import { noteServerChange, type ServerChangeKind } from '#operations/server-changes/index.ts';
import type { PowerCommand, PowerState } from '#operations/views/server-store.ts';
import type { Job } from '#service-kit/jobs/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import {
  type ActionRequest,
  beginAction,
  findActionRequest,
  findUnfinishedAction,
  isActionOlder,
} from './action-store.ts';
import type { ServersDeps } from './index.ts';
import { actionIdOf, askAgain, endAction, finish, hypervisorOf, serverIdOf } from './job-kit.ts';
import { powerCourse, type ShutdownOutcome } from './server.ts';
import * as store from './store.ts';

export const haltPollMs = 1_000;
/** Commands that leave the power state as it was, so that only a change tells of them. */
const restarts: { [command in PowerCommand]?: ServerChangeKind } = { reboot: 'rebooted', reset: 'reset' };

interface PowerJob {
  /** The guest has been asked to halt already. */
  signalled?: boolean;
}

export async function runPower(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const request = await findActionRequest(deps.db(), actionIdOf(job));
  if (request === null || !(await beginAction(deps.db(), request.actionId))) return;
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
async function halt(deps: ServersDeps, job: Job, driver: HypervisorDriver, request: ActionRequest) {
  const name = guestName(request.serverId);
  if (!(job.payload as PowerJob).signalled) await driver.signalShutdown(name);
  if ((await driver.readPower(name)) === 'off')
    return conclude(deps, job, { powerState: 'stopped', outcome: 'stopped' });
  // The power observer updates the state when no job waits for the guest.
  if (request.timeoutSeconds === 0)
    return conclude(deps, job, { powerState: 'running', outcome: 'signal_sent' });
  if (!(await isActionOlder(deps.db(), request.serverId, request.timeoutSeconds)))
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
export async function isCurrent(tx: Queryable, job: Job): Promise<boolean> {
  const serverId = serverIdOf(job);
  await store.lockServer(tx, serverId);
  return (await findUnfinishedAction(tx, serverId))?.id === actionIdOf(job);
}

/** The hypervisor did not obey: what the guest does now is not known. */
export async function failPower(deps: ServersDeps, job: Job, error: string): Promise<void> {
  const serverId = serverIdOf(job);
  deps.reporter.error('power command failed', { server: serverId, error });
  await inTransaction(deps.db(), async (tx) => {
    if (!(await isCurrent(tx, job))) return;
    await store.updateState(tx, serverId, { powerState: 'unknown' });
    const fault = { code: 'hypervisor_failed', message: 'The hypervisor did not carry the command out.' };
    await endAction(tx, serverId, { error: fault });
  });
}

// Looks at every node and brings servers' power states up to date: a guest that halted by itself, or was switched by an
// operator at the node, is shown as it is. A server that is being acted upon is left to its action.

interface ObserverDeps {
  db: () => Queryable;
  clusters: Clusters;
  hypervisors: Hypervisors;
  reporter: Reporter;
}

const powerStates = { on: 'running', off: 'stopped', unknown: 'unknown' } as const;

/** One look at every node; returns how many servers were not as we thought. */
export async function observePower(deps: ObserverDeps): Promise<number> {
  let changed = 0;
  for (const node of await deps.clusters.listNodes(systemActor, null)) {
    const since = new Date(await readNowMs(deps.db()));
    try {
      const guests = await deps.hypervisors.of(node).observeGuests();
      await noteSeen(deps.db(), node.id, null);
      const seen = guests.flatMap((guest) => {
        const serverId = serverIdOfGuest(guest.name);
        return serverId === null ? [] : [{ serverId, powerState: powerStates[guest.power] }];
      });
      changed += await store.applyObservation(deps.db(), node.id, since, seen);
      const living = new Set(await store.listServersOfNode(deps.db(), node.id));
      await recordGuards(
        deps.db(),
        guests.filter(({ name }) => living.has(serverIdOfGuest(name) ?? 0)),
      );
    } catch (error) {
      const message = describeError(error);
      if (node.lastError === null)
        deps.reporter.warn('a node does not answer', { node: node.name, error: message });
      await noteSeen(deps.db(), node.id, message);
    }
  }
  return changed;
}

/** The loop that looks every 15 seconds, on one of the replicas. */
export function createPowerObserver(deps: ObserverDeps & { clock: Clock }): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.power_observer',
    intervalMs: 15_000,
    ttlSeconds: 60,
    ...deps,
    async run() {
      await observePower(deps);
    },
  });
}
