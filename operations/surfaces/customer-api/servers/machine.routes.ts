import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Consoles } from '#operations/consoles/index.ts';
import type { Features } from '#operations/features.ts';
import type { ChangeHooks } from '#operations/servers/index.ts';
import type { ServerAction } from '#operations/views/server-store.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { idempotent, type RepeatableWork } from '../idempotent.ts';
import { baseUrl, bodyReader, idOf, readSelection } from '../request-parts.ts';
import { showAction, showActionForecast } from '../views.ts';
import { findServer, serverPrecondition } from './servers.routes.ts';

const readRebuild = bodyReader(schemas.RebuildRequest);
const readResize = bodyReader(schemas.ResizeRequest);
const readRescue = bodyReader(schemas.RescueRequest);
const readIso = bodyReader(schemas.AttachIsoRequest);
const readConsole = bodyReader(schemas.ConsoleRequest);
const readReset = bodyReader(schemas.ResetPasswordRequest);

/** Rebuild, resize, a new root password, rescue, ISOs and the console. */
export function machineHandlers(deps: Features & { consoles: Consoles }) {
  const { servers } = deps;
  /** What such a call names, checked. A missing server is a 404 before anything is said of the body. */
  const begin = async <Body>(
    call: Call,
    request: FastifyRequest,
    read: (call: Call, request: FastifyRequest) => Body,
  ) => {
    const id = idOf(request);
    const server = await findServer(servers, call, id);
    const body = read(call, request);
    return { id, body, server, precondition: serverPrecondition(servers, call, request) };
  };

  /** Asks for an action once for each `Idempotency-Key`; a new password is read from the action again for a repetition. */
  const once = async (
    given: Pick<RepeatableWork<unknown>, 'call' | 'request' | 'reply' | 'body'>,
    ask: (hooks: ChangeHooks) => Promise<{ action: ServerAction; rootPassword?: string | null | undefined }>,
  ) => {
    const { action, rootPassword } = await idempotent<Awaited<ReturnType<typeof ask>>>(deps.idempotency, {
      ...given,
      run: (claim) =>
        ask({ onAction: async (tx, actionId) => claim?.bind(tx, { kind: 'action', id: actionId }) }),
      async replay(result) {
        const { actor, tenant } = given.call;
        const action = await servers.findAction(actor, tenant.id, result.id);
        if (action === null) throw notFound();
        return { action, rootPassword: await servers.findActionPassword(result.id) };
      },
    });
    given.reply.code(202);
    const shown = showAction(action);
    return typeof rootPassword === 'string' ? { ...shown, root_password: rootPassword } : shown;
  };

  return {
    async openConsole(call, request, reply) {
      const { id, body } = await begin(call, request, readConsole);
      const { actor, tenant } = call;
      const wanted = { sessionId: null, kind: body.protocol ?? null };
      const { path, kind, expiresAt } = await deps.consoles.createTicket(actor, tenant.id, id, wanted);
      reply.code(201);
      const url = `${baseUrl(request).replace(/^http/, 'ws')}${path}`;
      return { url, protocol: kind, expires_at: expiresAt.toISOString() };
    },

    async rebuildServer(call, request, reply) {
      const { id, body, server, precondition } = await begin(call, request, readRebuild);
      const { dry_run: isDryRun, ...wanted } = body;
      const rebuild = (hooks: ChangeHooks) =>
        servers.rebuildServer(call.actor, call.tenant.id, id, wanted, { ...hooks, precondition });
      if (isDryRun) {
        const { action } = await rebuild({ isDryRun });
        const { hourlyQuanta, monthlyCapQuanta } = server;
        const cost = { hourlyQuanta, monthlyCapQuanta, dueQuanta: 0, isRestarted: true };
        return showActionForecast(action, cost, call.tenant.currency);
      }
      return once({ call, request, reply, body: wanted }, rebuild);
    },

    async resizeServer(call, request, reply) {
      const { id, body, precondition } = await begin(call, request, readResize);
      const { dry_run: isDryRun, ...wanted } = body;
      const { plan, keep_disk: keepDisk, timeout_s: timeoutSeconds, on_timeout: onTimeout } = wanted;
      const input = { plan, keepDisk, timeoutSeconds, onTimeout };
      const resize = (hooks: ChangeHooks) =>
        servers.resizeServer(call.actor, call.tenant.id, id, input, { ...hooks, precondition });
      if (isDryRun) {
        const forecast = await resize({ isDryRun });
        return showActionForecast(forecast.action, forecast, call.tenant.currency);
      }
      return once({ call, request, reply, body: wanted }, resize);
    },

    async resetPassword(call, request, reply) {
      const { id, body, precondition } = await begin(call, request, readReset);
      return once({ call, request, reply, body }, (hooks) =>
        servers.resetPassword(call.actor, call.tenant.id, id, { ...hooks, precondition }),
      );
    },

    async rescueServer(call, request, reply) {
      const { id, body, precondition } = await begin(call, request, readRescue);
      const { rescue_image: image } = body;
      const answer = await once({ call, request, reply, body }, (hooks) =>
        servers.rescueServer(call.actor, call.tenant.id, id, { image }, { ...hooks, precondition }),
      );
      return { root_password: null, ...answer };
    },

    async unrescueServer(call, request, reply) {
      const { id, body, precondition } = await begin(call, request, readSelection);
      return once({ call, request, reply, body }, async (hooks) => ({
        action: await servers.unrescueServer(call.actor, call.tenant.id, id, { ...hooks, precondition }),
      }));
    },

    async attachIso(call, request, reply) {
      const { id, body, precondition } = await begin(call, request, readIso);
      const { iso } = body;
      return once({ call, request, reply, body }, async (hooks) => ({
        action: await servers.attachIso(call.actor, call.tenant.id, id, iso, { ...hooks, precondition }),
      }));
    },

    async detachIso(call, request, reply) {
      const { id, body, precondition } = await begin(call, request, readSelection);
      return once({ call, request, reply, body }, async (hooks) => ({
        action: await servers.detachIso(call.actor, call.tenant.id, id, { ...hooks, precondition }),
      }));
    },
  } satisfies Handlers;
}
