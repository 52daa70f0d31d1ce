/** The page of a server, for staff. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import { isConfirmed, sendPage, toastOf } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Staff } from '../guard.ts';
import { readServerPage, type ServerPageOptions, serverPage } from './server.page.ts';

const Id = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
const PowerForm = Type.Object({
  action: Type.Union([Type.Literal('start'), Type.Literal('shutdown'), Type.Literal('stop')]),
});
const ResolveForm = Type.Object({
  resolution: Type.Union([Type.Literal('repaired'), Type.Literal('remove')]),
});

const GuardForm = Type.Object({ state: Type.Union([Type.Literal('on'), Type.Literal('off')]) });

const outcomes: Record<string, string> = {
  retry: 'Provisioning is queued again.',
  repaired: 'The server is available to its owner.',
  remove: 'The server is being removed.',
  start: 'Starting.',
  shutdown: 'The operating system was asked to shut down.',
  stop: 'Switching off.',
  guard_on: 'The guard is being switched on.',
  guard_off: 'The guard is being switched off.',
};

export function registerServer(app: App, deps: Features): void {
  app.get(
    '/servers/:id',
    { schema: { params: Id, querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const toast = toastOf(outcomes, request.query.done);
      return show(deps, request.staff!, reply, request.params.id, 200, { toast });
    },
  );

  app.post('/servers/:id/retry', { schema: { params: Id } }, (request, reply) =>
    change(deps, request.staff!, reply, request.params.id, 'retry', (staff, id) =>
      deps.servers.retryProvisioning(staff.actor, id),
    ),
  );

  app.post('/servers/:id/resolve', { schema: { params: Id, body: ResolveForm } }, async (request, reply) => {
    const staff = request.staff!;
    const { id } = request.params;
    const { resolution } = request.body;
    const server = await findServer(deps, staff, id);
    if (resolution === 'remove' && !isConfirmed(request.body, server.name)) {
      const confirmError = `Nothing was removed. Type ${server.name} to confirm.`;
      return show(deps, staff, reply, id, 422, { confirmError });
    }
    return change(deps, staff, reply, id, resolution, () =>
      deps.servers.resolveProvisioning(staff.actor, id, resolution),
    );
  });

  app.post('/servers/:id/guard', { schema: { params: Id, body: GuardForm } }, (request, reply) => {
    const { state } = request.body;
    return change(deps, request.staff!, reply, request.params.id, `guard_${state}`, (staff, id) =>
      deps.guards.switchGuard(staff.actor, id, state === 'on'),
    );
  });

  app.post('/servers/:id/actions', { schema: { params: Id, body: PowerForm } }, (request, reply) =>
    change(deps, request.staff!, reply, request.params.id, request.body.action, (staff, id) =>
      deps.servers.changePower(staff.actor, null, id, { command: request.body.action }),
    ),
  );
}

/** Runs an operator's change and shows its result; a refusal is shown as a toast. */
async function change(
  deps: Features,
  staff: Staff,
  reply: FastifyReply,
  id: number,
  done: string,
  work: (staff: Staff, id: number) => Promise<unknown>,
): Promise<FastifyReply> {
  try {
    await work(staff, id);
  } catch (error) {
    if (!(error instanceof CodedError) || error.code === 'accounts.forbidden') throw error;
    if (error.code === 'servers.not_found' || error.code === 'guards.not_found') throw noSuchPage();
    return show(deps, staff, reply, id, 409, { toast: { tone: 'bad', text: error.message } });
  }
  return reply.redirect(`/console/servers/${id}?done=${done}`, 303);
}

async function show(
  deps: Features,
  staff: Staff,
  reply: FastifyReply,
  id: number,
  status: number,
  state: Pick<ServerPageOptions, 'toast' | 'confirmError'>,
): Promise<FastifyReply> {
  const server = await findServer(deps, staff, id);
  const page = { staff, server, ...(await readServerPage(deps, staff, server)), ...state };
  return sendPage(reply, serverPage(page), status);
}

async function findServer(deps: Features, staff: Staff, id: number): Promise<Server> {
  const server = await deps.servers.findServer(staff.actor, null, id);
  if (server === null) throw noSuchPage();
  return server;
}
