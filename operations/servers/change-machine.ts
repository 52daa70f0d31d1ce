/** Rebuild, resize, rescue, ISOs and a new root password: recorded as an action, carried out by a job (`run-machine.ts`). */
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { Capability } from '#contracts/capabilities.ts';
import type { Actor } from '#operations/accounts/index.ts';
import { describeRefusal, findBalance } from '#operations/billing/index.ts';
import { changeRoom } from '#operations/clusters/index.ts';
import type { Scope } from '#operations/views/scope.ts';
import type { MachineCommand, Server, ServerAction } from '#operations/views/server-store.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { insertAction, type NewAction } from './action-store.ts';
import { requester } from './authorise.ts';
import { type ChangeHooks, requireReady, withServer } from './change-server.ts';
import type { ServersDeps } from './index.ts';
import { newRootPassword } from './server.ts';
import { findChargedHour, type ProvisioningFacts } from './store.ts';
import { type FieldFault, invalidServer, pickOffered } from './validate-server-fields.ts';

/** Which server, and whose it has to be. */
export interface ServerOf {
  actor: Actor;
  scope: Scope;
  serverId: number;
}

/** What callers of servers do with the machine; `scope` is what the actor reaches within the tenant. */
export function machineCalls(
  deps: ServersDeps,
  scope: (actor: Actor, tenantId: number | null) => ServerOf['scope'],
) {
  type Image = { image?: string | number | undefined };
  const of = (actor: Actor, tenantId: number | null, serverId: number): ServerOf => ({
    ...{ actor, scope: scope(actor, tenantId), serverId },
  });
  return {
    /** Throws what `changePower` throws, `servers.invalid` and `servers.unsupported`, as the others do. */
    rebuildServer: (
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      wanted: Image,
      hooks?: ChangeHooks,
    ) => rebuildServer(deps, of(actor, tenantId, serverId), wanted, hooks),
    /** Throws `servers.capacity` and `orders.not_eligible` as well. */
    resizeServer: (
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      wanted: ResizeRequest,
      hooks?: ChangeHooks,
    ) => resizeServer(deps, of(actor, tenantId, serverId), wanted, hooks),
    resetPassword: (actor: Actor, tenantId: number | null, serverId: number, hooks?: ChangeHooks) =>
      resetPassword(deps, of(actor, tenantId, serverId), hooks),
    rescueServer: (
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      wanted: Image,
      hooks?: ChangeHooks,
    ) => rescueServer(deps, of(actor, tenantId, serverId), wanted, hooks),
    unrescueServer: (actor: Actor, tenantId: number | null, serverId: number, hooks?: ChangeHooks) =>
      unrescueServer(deps, of(actor, tenantId, serverId), hooks),
    attachIso: (
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      iso: string | number,
      hooks?: ChangeHooks,
    ) => attachIso(deps, of(actor, tenantId, serverId), iso, hooks),
    detachIso: (actor: Actor, tenantId: number | null, serverId: number, hooks?: ChangeHooks) =>
      change(
        deps,
        of(actor, tenantId, serverId),
        { command: 'detach_iso', capability: 'iso' },
        hooks ?? {},
        async (_tx, server) => ({ isUnchanged: server.isoId === null }),
      ),
  };
}

interface NewPasswordAction {
  action: ServerAction;
  /** For the answer to this call alone, and its repetitions. */
  rootPassword: string;
}

interface ResizeRequest {
  /** Slug or id. */
  plan: string | number;
  /** The disk stays as it is, so that the server can have its old plan again. */
  keepDisk?: boolean | undefined;
  /** How long the operating system may take to shut down; default 120. */
  timeoutSeconds?: number | undefined;
  /** What comes when it did not: nothing more, or its power is cut. Default `fail`. */
  onTimeout?: 'fail' | 'stop' | undefined;
}

/** A resize that was asked for or rehearsed, and what it costs. */
interface Resize {
  action: ServerAction;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  /** Charged when it is done: the higher price of the hour that has begun, before the cap of the month. */
  dueQuanta: number;
  /** False for a server that is off. */
  isRestarted: boolean;
}

const shutdownSeconds = 120;

/**
 * Gives the server a new disk made from the image, its own by default; its id, addresses, firewall and price stay. Throws
 * `servers.invalid`, `servers.unsupported` and what `changePower` throws.
 */
async function rebuildServer(
  deps: ServersDeps,
  of: ServerOf,
  wanted: { image?: string | number | undefined },
  hooks: ChangeHooks = {},
): Promise<NewPasswordAction> {
  const faults: FieldFault[] = [];
  const images = wanted.image === undefined ? [] : await deps.catalog.listImages();
  const image = wanted.image === undefined ? null : pickOffered(images, wanted.image, 'image', faults);
  if (image === undefined) throw invalidServer(faults);
  const rootPassword = newRootPassword();
  const action = await change(deps, of, { command: 'rebuild' }, hooks, async (_tx, _server, found) => ({
    request: { imageId: image?.id ?? found.imageId, imageSlug: image?.slug ?? found.imageSlug },
    rootPassword,
  }));
  return { action, rootPassword };
}

/** Sets a new root password inside the server, which has to run. Throws as `rebuildServer` does. */
async function resetPassword(
  deps: ServersDeps,
  of: ServerOf,
  hooks: ChangeHooks = {},
): Promise<NewPasswordAction> {
  const rootPassword = newRootPassword();
  const action = await change(deps, of, { command: 'reset_password' }, hooks, async (_tx, server) => {
    if (server.powerState !== 'running') throw notInState('The server does not run. Start it first.');
    return { rootPassword };
  });
  return { action, rootPassword };
}

/**
 * Restarts the server from a rescue image, the first one by default, with its own disk beside it. No password for a server that is in
 * rescue already. Throws as `rebuildServer` does.
 */
async function rescueServer(
  deps: ServersDeps,
  of: ServerOf,
  wanted: { image?: string | number | undefined },
  hooks: ChangeHooks = {},
): Promise<{ action: ServerAction; rootPassword: string | null }> {
  const faults: FieldFault[] = [];
  const images = await deps.catalog.listImages(['rescue']);
  const image =
    wanted.image === undefined ? images[0] : pickOffered(images, wanted.image, 'rescue_image', faults);
  if (faults.length > 0) throw invalidServer(faults);
  const rootPassword = newRootPassword();
  const action = await change(deps, of, { command: 'rescue' }, hooks, async (_tx, server) => {
    if (server.isRescued) return { isUnchanged: true };
    if (image === undefined)
      throw new CodedError('servers.unsupported', 'There is no rescue image on offer.');
    return { request: { imageId: image.id, imageSlug: image.slug }, rootPassword };
  });
  return { action, rootPassword: action.changed ? rootPassword : null };
}

/** Restarts the server from its own disk. Throws as `rebuildServer` does. */
async function unrescueServer(deps: ServersDeps, of: ServerOf, hooks: ChangeHooks = {}) {
  const asked = { command: 'unrescue', capability: 'rescue' } as const;
  return change(deps, of, asked, hooks, async (_tx, server) => ({ isUnchanged: !server.isRescued }));
}

/** Puts an ISO into the server's CD drive, in place of another one. Throws as `rebuildServer` does. */
async function attachIso(deps: ServersDeps, of: ServerOf, wanted: string | number, hooks: ChangeHooks = {}) {
  const faults: FieldFault[] = [];
  const iso = pickOffered(await deps.catalog.listImages(['iso']), wanted, 'iso', faults);
  if (iso === undefined) throw invalidServer(faults);
  const asked = { command: 'attach_iso', capability: 'iso' } as const;
  return change(deps, of, asked, hooks, async (_tx, server) =>
    server.isoId === iso.id ? { isUnchanged: true } : { request: { imageId: iso.id, imageSlug: iso.slug } },
  );
}

/**
 * Gives the server another plan at the plan's present price. A running server is shut down and started again. Throws as
 * `rebuildServer` does, and `servers.capacity`, and `orders.not_eligible` for a higher price without credit.
 */
async function resizeServer(
  deps: ServersDeps,
  of: ServerOf,
  wanted: ResizeRequest,
  hooks: ChangeHooks = {},
): Promise<Resize> {
  const faults: FieldFault[] = [];
  const plan = pickOffered(await deps.catalog.listPlans(), wanted.plan, 'plan', faults);
  if (plan === undefined) throw invalidServer(faults);
  const { hourlyQuanta, monthlyCapQuanta } = plan;
  let dueQuanta = 0;
  let isRestarted = false;
  const action = await change(deps, of, { command: 'resize' }, hooks, async (tx, server) => {
    requirePower(server);
    if (plan.diskGb < server.diskGb)
      throw invalidServer([
        {
          path: 'plan',
          code: 'disk_too_small',
          message: `Its disk of ${plan.diskGb} GB is smaller than the server’s, and a disk of ${server.diskGb} GB can’t shrink.`,
        },
      ]);
    const diskGb = wanted.keepDisk ? server.diskGb : plan.diskGb;
    if (plan.id === server.planId && diskGb === server.diskGb) return { isUnchanged: true };
    const hour = await findChargedHour(tx, server.id);
    dueQuanta = Math.max(0, hourlyQuanta - (hour?.hourlyQuanta ?? server.hourlyQuanta));
    if (hourlyQuanta > server.hourlyQuanta) await requireCredit(tx, server.tenantId);
    await holdRoom(tx, server, { vcpus: plan.vcpus, memoryMb: plan.memoryMb, diskGb });
    isRestarted = server.powerState === 'running';
    const { vcpus, memoryMb } = plan;
    return {
      request: { planId: plan.id, vcpus, memoryMb, diskGb, hourlyQuanta, monthlyCapQuanta },
      timeoutSeconds: wanted.timeoutSeconds ?? shutdownSeconds,
      onTimeout: wanted.onTimeout ?? 'fail',
    };
  });
  return { action, hourlyQuanta, monthlyCapQuanta, dueQuanta, isRestarted };
}

/** Throws `orders.not_eligible`: what costs more than before needs credit. */
export async function requireCredit(tx: Queryable, tenantId: number): Promise<void> {
  if ((await findBalance(tx, tenantId)) > 0) return;
  const refusal = { status: 402, code: 'payment_required', reason: 'credit_required' } as const;
  throw new CodedError('orders.not_eligible', describeRefusal(refusal), { refusal });
}

/** Gives the guest the sizes that its server has; for operators, where the node has others. The price stays. */
export async function restoreSize(deps: ServersDeps, of: ServerOf): Promise<void> {
  await change(deps, of, { command: 'resize' }, {}, async (_tx, server, found) => {
    const { planId, vcpus, memoryMb, diskGb, hourlyQuanta } = server;
    const { monthlyCapQuanta } = found;
    return {
      request: { planId, vcpus, memoryMb, diskGb, hourlyQuanta, monthlyCapQuanta },
      timeoutSeconds: shutdownSeconds,
      onTimeout: 'fail',
    };
  });
}

/** Room for the larger of both sizes until the resize has ended, whichever way. */
async function holdRoom(
  tx: Queryable,
  server: ProvisioningFacts,
  size: { vcpus: number; memoryMb: number; diskGb: number },
): Promise<void> {
  const room = {
    vcpus: Math.max(server.vcpus, size.vcpus),
    memoryMb: Math.max(server.memoryMb, size.memoryMb),
    diskGb: Math.max(server.diskGb, size.diskGb),
  };
  try {
    await changeRoom(tx, { clusterId: server.clusterId, serverId: server.id, room });
  } catch (error) {
    if (!hasCode(error, 'clusters.full')) throw error;
    throw new CodedError(
      'servers.capacity',
      'The node of this server has no room for this plan right now. Try again later, or deploy another server.',
    );
  }
}

/** What is asked of a server; a command that needs a capability of the same name does not say so. */
type Asked =
  | { command: MachineCommand & Capability; capability?: never }
  | { command: MachineCommand; capability: Capability };

/** Records the action, and queues its job unless there is nothing to do. */
export function change(
  deps: ServersDeps,
  { actor, scope, serverId }: ServerOf,
  { command, capability }: Asked,
  hooks: ChangeHooks,
  decide: (tx: Queryable, server: ProvisioningFacts, found: Server) => Promise<Partial<NewAction>>,
): Promise<ServerAction> {
  let audited = {};
  const how = { hooks, command, audited: () => audited };
  return withServer(deps, actor, scope, serverId, how, async (tx, server, found) => {
    requireCapability(deps, found, capability ?? command);
    requireReady(server);
    if (server.isRescued && !duringRescue.has(command))
      throw notInState('The server is in rescue. Let it start from its own disk first.');
    if (server.isoId !== null && (command === 'rebuild' || command === 'rescue'))
      throw notInState('The server would start from the ISO in its CD drive. Detach it first.');
    const asked = await decide(tx, server, found);
    audited = { ...asked.request };
    const action = await insertAction(tx, { serverId, command, ...requester(actor), ...asked });
    await hooks.onAction?.(tx, action.id);
    const isRestarted = server.powerState === 'running';
    if (!asked.isUnchanged)
      await enqueueJob(tx, `servers.${command}`, { server_id: serverId, action_id: action.id, isRestarted });
    return action;
  });
}

/** What does not need the server’s own disk in its place. */
const duringRescue: ReadonlySet<MachineCommand> = new Set([
  ...(['rescue', 'unrescue', 'attach_address', 'detach_address'] as const),
]);

const cannot: Partial<Record<Capability, string>> = {
  rebuild: 'rebuild servers',
  resize: 'resize servers',
  reset_password: 'set root passwords',
  addresses: 'change the addresses of servers',
  snapshots: 'take snapshots of servers',
  rescue: 'rescue servers',
  iso: 'attach ISOs to servers',
};

function requireCapability(deps: ServersDeps, server: Server, capability: Capability): void {
  if (deps.hypervisors.capabilitiesOf(server.driver).includes(capability)) return;
  throw new CodedError(
    'servers.unsupported',
    `The hypervisors of ${server.locationName} can’t ${cannot[capability]}.`,
  );
}

/** Throws `servers.not_ready` unless the server runs or is stopped. */
export function requirePower({ powerState }: ProvisioningFacts): void {
  if (powerState !== 'running' && powerState !== 'stopped')
    throw notInState('The power state of the server is unknown. Start or stop it first.');
}

function notInState(message: string): CodedError {
  return new CodedError('servers.not_ready', message, { isOnItsWay: false });
}
