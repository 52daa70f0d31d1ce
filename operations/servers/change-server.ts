/** Power commands and destruction: recorded as an action, carried out by a job. */
import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireWriter } from '#operations/accounts/index.ts';
import { setRoom } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { detachAll } from '#operations/networks/index.ts';
import type { Scope } from '#operations/views/scope.ts';
import {
  type ActionCommand,
  findServer,
  type PowerCommand,
  type Server,
  type ServerAction,
} from '#operations/views/server-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import {
  cancelAction as cancelStoredAction,
  findAction,
  findUnfinishedAction,
  insertAction,
} from './action-store.ts';
import { notFound, requester } from './authorise.ts';
import type { ServersDeps } from './index.ts';
import { endAction } from './job-kit.ts';
import { powerCourse, supersededBy } from './server.ts';
import { isSource } from './snapshot-store.ts';
import * as store from './store.ts';

export interface PowerRequest {
  command: PowerCommand;
  /** Of a shutdown: how long the guest may take; 0 asks it and does not look. Default 120. */
  timeoutSeconds?: number | undefined;
  /** What comes when it did not halt: nothing more, or its power is cut. Default `fail`. */
  onTimeout?: 'fail' | 'stop' | undefined;
}

/** What a caller does in the transaction of a change. */
export interface ChangeHooks {
  /** Called once the server's row is locked, before anything else is looked at; what it throws refuses the change. */
  precondition?: ((tx: Queryable) => Promise<void>) | undefined;
  /** Told of the action in the transaction that makes it. */
  onAction?: ((tx: Queryable, actionId: number) => Promise<void>) | undefined;
  /** Everything is decided by the same code, and undone. */
  isDryRun?: boolean | undefined;
}

const shutdownSeconds = 120;

/**
 * Starts, stops or restarts a server. Throws `servers.not_found`, `servers.busy` (details.actionId),
 * `servers.not_ready`. A server that is in the wanted state already is left alone and told so (`changed: false`). `stop` and
 * `reset` end a shutdown and a reboot that are under way, and take their place.
 */
export function changePower(
  deps: ServersDeps,
  actor: Actor,
  scope: Scope,
  serverId: number,
  { command, timeoutSeconds, onTimeout }: PowerRequest,
  hooks: ChangeHooks = {},
): Promise<ServerAction> {
  return withServer(deps, actor, scope, serverId, { hooks, command }, async (tx, server) => {
    requireReady(server);
    const course = powerCourse[command];
    const isThere = course.via !== 'rebooting' && server.powerState === course.to;
    // On its way it is only while a softer command runs, whose place this one takes.
    const canRestart = ['running', 'stopping', 'rebooting'].includes(server.powerState);
    if (course.via === 'rebooting' && !canRestart) {
      throw new CodedError('servers.not_ready', 'The server is stopped. Start it instead.', {
        isOnItsWay: false,
      });
    }
    const action = await insertAction(tx, {
      serverId,
      command,
      ...requester(actor),
      isUnchanged: isThere,
      ...(command === 'shutdown'
        ? { timeoutSeconds: timeoutSeconds ?? shutdownSeconds, onTimeout: onTimeout ?? 'fail' }
        : {}),
    });
    await hooks.onAction?.(tx, action.id);
    if (isThere) return action;
    await store.updateState(tx, serverId, { powerState: course.via });
    await enqueueJob(tx, 'servers.power', { server_id: serverId, action_id: action.id });
    return action;
  });
}

/** Throws `servers.not_ready` for a server that has no guest to change. */
export function requireReady({ provisioningState }: store.ProvisioningFacts): void {
  if (provisioningState === 'ready') return;
  // A failed server stays so until an operator acts, and one that is being destroyed never becomes ready.
  const isOnItsWay = ['queued', 'provisioning'].includes(provisioningState);
  throw new CodedError(
    'servers.not_ready',
    isOnItsWay
      ? 'The server is not ready. Wait until its status is running.'
      : `The server is ${provisioningState}, so it can’t be changed.`,
    { isOnItsWay },
  );
}

/**
 * Destroys a server. Throws `servers.not_found`, `servers.busy`, and `servers.provisioning_failed` for one that failed:
 * an operator has to resolve that first (API-3.4). It is busy while another server is made from its snapshot. Asked again while it runs, it answers with the same action. It ends a power
 * command that is under way, and an order whose provisioning has not begun.
 */
export function destroyServer(
  deps: ServersDeps,
  actor: Actor,
  scope: Scope,
  serverId: number,
  hooks: ChangeHooks = {},
): Promise<ServerAction> {
  return withServer(deps, actor, scope, serverId, { hooks, command: 'destroy' }, async (tx, server) => {
    if (server.provisioningState === 'failed') {
      throw new CodedError(
        'servers.provisioning_failed',
        'Provisioning of this server failed. An operator has to retry or resolve it before it can be destroyed.',
      );
    }
    if (await isSource(tx, { serverId })) throw beingCopied();
    const action = await insertAction(tx, { serverId, command: 'destroy', ...requester(actor) });
    await store.updateState(tx, serverId, { provisioningState: 'deleting' });
    await detachAll(tx, serverId);
    await enqueueJob(tx, 'servers.destroy', { server_id: serverId });
    return action;
  });
}

/**
 * Takes a power command back: one that has not begun, or a shutdown that waits for the operating system, which may halt all the
 * same. Throws `servers.not_found` and `servers.not_cancellable`. Asked again, it answers with the same action.
 */
export async function cancelAction(
  deps: ServersDeps,
  actor: Actor,
  scope: Scope,
  actionId: number,
): Promise<ServerAction> {
  const found = await findAction(deps.db(), scope, actionId);
  if (found === null) throw notFound();
  requireWriter(actor);
  const { serverId } = found;
  const server = await findServer(deps.db(), scope, serverId);
  return inTransaction(deps.db(), async (tx) => {
    const locked = await store.lockServer(tx, serverId);
    if (await cancelStoredAction(tx, actionId, cancelled)) {
      const { command } = found;
      // Of a power command alone: the others change the state when they begin.
      const isPower = command in powerCourse;
      const powerState = isPower ? (command === 'start' ? 'stopped' : 'running') : locked!.powerState;
      if (isPower) await store.updateState(tx, serverId, { powerState });
      if (isPower) await emit(tx, { type: 'server.power_changed', serverId });
      if (command === 'resize') await setRoom(tx, serverId, locked!);
      await emit(tx, { type: 'action.finished', serverId, actionId });
      await record(tx, actor, {
        operation: 'server.cancel_action',
        subject: { kind: 'server', id: serverId, name: server?.name ?? null },
        tenantId: server?.tenantId ?? null,
        before: { powerState: server?.powerState ?? null },
        after: { actionId, powerState },
      });
    }
    const action = (await findAction(tx, scope, actionId))!;
    if (action.error?.code === cancelled.code) return action;
    throw new CodedError(
      'servers.not_cancellable',
      'The action has begun or finished, so it can’t be cancelled.',
    );
  });
}

const cancelled = { code: 'cancelled', message: 'The action was cancelled.' };

/** Carries the action of a dry run out of the transaction that it undoes. */
class Undone extends Error {
  readonly action: ServerAction;
  constructor(action: ServerAction) {
    super('undone');
    this.action = action;
  }
}

/** Runs `change` on a locked server of the scope that is idle, or whose action the command supersedes. */
export async function withServer(
  deps: ServersDeps,
  actor: Actor,
  scope: Scope,
  serverId: number,
  { hooks, command, audited }: { hooks: ChangeHooks; command: ActionCommand; audited?: () => object },
  change: (tx: Queryable, server: store.ProvisioningFacts, found: Server) => Promise<ServerAction>,
): Promise<ServerAction> {
  // Whether it is the actor's at all comes before anything else that could be told about it.
  const found = await findServer(deps.db(), scope, serverId);
  if (found === null) throw notFound();
  requireWriter(actor);
  try {
    const action = await inTransaction(deps.db(), async (tx) => {
      const server = await store.lockServer(tx, serverId);
      if (server === null || server.provisioningState === 'deleted') throw notFound();
      await hooks.precondition?.(tx);
      const unfinished = await findUnfinishedAction(tx, serverId);
      if (unfinished?.command === 'destroy' && command === 'destroy') return unfinished;
      if (unfinished !== null) await supersede(tx, server, unfinished, command);
      const asked = await change(tx, server, found);
      if (hooks.isDryRun) throw new Undone(asked);
      await record(tx, actor, {
        operation: `server.${asked.command}`,
        subject: { kind: 'server', id: serverId, name: found.name },
        tenantId: found.tenantId,
        before: { powerState: server.powerState },
        after: { actionId: asked.id, ...audited?.() },
      });
      return asked;
    });
    deps.wake();
    return action;
  } catch (error) {
    if (error instanceof Undone) return error.action;
    if (!isUniqueViolation(error, 'server_actions_unfinished')) throw error;
    throw busy((await findUnfinishedAction(deps.db(), serverId))?.id ?? null);
  }
}

/** Ends the unfinished action, or throws `servers.busy` where the command may not. */
async function supersede(
  tx: Queryable,
  server: store.ProvisioningFacts,
  unfinished: ServerAction,
  command: ActionCommand,
): Promise<void> {
  const isBegun = unfinished.command === 'create' && server.provisioningState !== 'queued';
  if (isBegun || !supersededBy[command]?.includes(unfinished.command)) throw busy(unfinished.id);
  const error = { code: 'superseded', message: `The action ${command} took its place.` };
  await endAction(tx, server.id, { error });
}

export function busy(actionId: number | null): CodedError {
  return new CodedError(
    'servers.busy',
    'Another action of this server is running. Wait until it has finished.',
    { actionId },
  );
}

export const beingCopied = () =>
  new CodedError('servers.busy', 'A server is being made from this snapshot. Wait until it runs.', {
    actionId: null,
  });
