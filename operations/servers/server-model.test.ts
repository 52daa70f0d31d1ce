/** Random sequences of what customers, operators, workers and guests do to a server, against a model of its states. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CodedError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import type { PowerCommand, PowerState, ProvisioningState } from '#operations/views/server-store.ts';
import { statusOf } from './server.ts';

interface Model {
  provisioning: ProvisioningState;
  power: PowerState;
  /** What the worker has still to do. */
  pending: PowerCommand | 'create' | 'destroy' | null;
  isHypervisorBroken: boolean;
}

interface Real {
  world: World;
  serverId: number;
  breaks: { isBroken: boolean };
}

const courses: Record<PowerCommand, { via: PowerState; to: PowerState }> = {
  start: { via: 'starting', to: 'running' },
  shutdown: { via: 'stopping', to: 'stopped' },
  stop: { via: 'stopping', to: 'stopped' },
  reboot: { via: 'rebooting', to: 'running' },
  reset: { via: 'rebooting', to: 'running' },
};

type Command = fc.AsyncCommand<Model, Real>;

/** A command whose `work` must end as `expect` says: a code of its refusal, or null; `expect` moves the model. */
function command(
  name: string,
  expect: (model: Model) => string | null,
  work: (real: Real) => Promise<unknown>,
): Command {
  return {
    check: () => true,
    async run(model, real) {
      const wanted = expect(model);
      const got = await work(real).then(
        () => null,
        (error: unknown) => {
          if (error instanceof CodedError) return error.code;
          throw error;
        },
      );
      assert.equal(got, wanted, name);
      await compare(model, real);
    },
    toString: () => name,
  };
}

async function compare(model: Model, { world, serverId }: Real): Promise<void> {
  const server = await world.servers.findServer(systemActor, null, serverId);
  if (model.provisioning === 'deleted') return assert.equal(server, null);
  assert.ok(server);
  const status = model.provisioning === 'ready' ? model.power : model.provisioning;
  assert.equal(statusOf(server), status);
  assert.equal(server.currentAction?.command ?? null, model.pending);
  assert.equal(server.failure !== null, model.provisioning === 'failed');
  const held = (await world.addresses.listAllocationsOfServers([serverId])).length;
  assert.equal(held, 2, 'a living server holds its addresses');
}

const power = (name: PowerCommand) =>
  command(
    name,
    (model) => {
      if (model.provisioning === 'deleted') return 'servers.not_found';
      const takesOver = ['stop', 'reset'].includes(name) && ['shutdown', 'reboot'].includes(model.pending!);
      if (model.pending !== null && !takesOver) return 'servers.busy';
      if (model.provisioning !== 'ready') return 'servers.not_ready';
      const { via, to } = courses[name];
      if (via !== 'rebooting' && model.power === to) return null;
      if (via === 'rebooting' && model.power !== 'running' && !takesOver) return 'servers.not_ready';
      model.power = via;
      model.pending = name;
      return null;
    },
    ({ world, serverId }) => world.servers.changePower(systemActor, null, serverId, { command: name }),
  );

const destroy = command(
  'destroy',
  (model) => {
    if (model.provisioning === 'deleted') return 'servers.not_found';
    if (model.pending === 'destroy') return null;
    if (model.provisioning === 'failed') return 'servers.provisioning_failed';
    model.provisioning = 'deleting';
    model.pending = 'destroy';
    return null;
  },
  ({ world, serverId }) => world.servers.destroyServer(systemActor, null, serverId),
);

const cancel = command(
  'cancel the action',
  (model) => {
    if (model.provisioning !== 'ready' || model.pending === null) return 'nothing to cancel';
    // No job has begun: they run in `work` alone.
    model.power = model.pending === 'start' ? 'stopped' : 'running';
    model.pending = null;
    return null;
  },
  async ({ world, serverId }) => {
    const action = (await world.servers.findServer(systemActor, null, serverId))?.currentAction;
    if (!action || ['create', 'destroy'].includes(action.command))
      throw new CodedError('nothing to cancel', '');
    await world.servers.cancelAction(systemActor, null, action.id);
  },
);

const work = command(
  'work',
  (model) => {
    const { pending } = model;
    model.pending = null;
    if (pending === 'destroy') model.provisioning = 'deleted';
    else if (pending === 'create' && model.isHypervisorBroken) model.provisioning = 'failed';
    else if (pending === 'create') Object.assign(model, { provisioning: 'ready', power: 'running' });
    else if (pending !== null) model.power = courses[pending].to;
    return null;
  },
  ({ world }) => world.jobs.drain(),
);

const failedOnly = (model: Model): string | null => {
  if (model.provisioning === 'deleted') return 'servers.not_found';
  return model.provisioning === 'failed' ? null : 'servers.not_failed';
};

const retry = command(
  'retry',
  (model) => {
    const refusal = failedOnly(model);
    if (refusal === null) Object.assign(model, { provisioning: 'queued', pending: 'create' });
    return refusal;
  },
  ({ world, serverId }) => world.servers.retryProvisioning(systemActor, serverId),
);

const remove = command(
  'resolve by removal',
  (model) => {
    const refusal = failedOnly(model);
    if (refusal === null) Object.assign(model, { provisioning: 'deleting', pending: 'destroy' });
    return refusal;
  },
  ({ world, serverId }) => world.servers.resolveProvisioning(systemActor, serverId, 'remove'),
);

const haltByItself = command(
  'the guest halts by itself, and is seen',
  (model) => {
    if (model.provisioning === 'ready' && model.pending === null && model.power === 'running')
      model.power = 'stopped';
    return null;
  },
  async ({ world, serverId }) => {
    await world.hypervisor.setPower(`vm-${serverId}`, 'off').catch(() => {});
    await world.observePower();
  },
);

const setBroken = (isBroken: boolean) =>
  command(
    isBroken ? 'the hypervisor breaks' : 'the hypervisor is mended',
    (model) => {
      model.isHypervisorBroken = isBroken;
      return null;
    },
    async ({ breaks }) => {
      breaks.isBroken = isBroken;
    },
  );

test('API-3.4, API-4.8: in every order of requests, a server’s states and refusals are those of the model', async () => {
  const breaks = { isBroken: false };
  await using world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest(guest, step) {
        if (breaks.isBroken) throw new CodedError('hypervisor.refused', 'broken');
        return usual.ensureGuest(guest, step);
      },
    }),
  });
  const { tenant } = await world.createCustomer('Model');
  const commands = (Object.keys(courses) as PowerCommand[]).map((name) => fc.constant(power(name)));
  const all = [
    ...commands,
    ...[destroy, cancel, work, work, work, retry, remove, haltByItself].map((one) => fc.constant(one)),
  ];
  const broken = [setBroken(true), setBroken(false)].map((one) => fc.constant(one));
  await fc.assert(
    fc.asyncProperty(fc.commands([...all, ...broken], { maxCommands: 25 }), async (sequence) => {
      breaks.isBroken = false;
      const { serverId } = await world.ordering.createServer(systemActor, {
        tenantId: tenant.id,
        plan: 'small',
        image: 'debian-12',
      });
      const model: Model = {
        provisioning: 'queued',
        power: 'unknown',
        pending: 'create',
        isHypervisorBroken: false,
      };
      await fc.asyncModelRun(() => ({ model, real: { world, serverId, breaks } }), sequence);
      await world.database.pool.query('update jobs set finished_at = svc_now() where finished_at is null');
    }),
    { numRuns: Number(process.env.SVC_MODEL_RUNS ?? 25), seed: 1 },
  );
});
