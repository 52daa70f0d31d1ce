import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type { PowerCommand, ServerAction } from '#operations/views/server-store.ts';
import { type Call, type Handler, notFound } from '../call.ts';
import { idempotent } from '../idempotent.ts';
import { bodyOf, idOf, invalidCursor, linkNextPage } from '../request-parts.ts';
import { compileValidator, convertQuery, invalidFields } from '../validate-input.ts';
import { showAction } from '../views.ts';
import { callerSignal, readWait, waitWhileAllowed } from './prefer-wait.ts';
import { serverPrecondition } from './servers.routes.ts';

const checkAction = compileValidator(schemas.ActionRequest);
const checkSelection = compileValidator(schemas.SelectionRequest);
const checkPage = compileValidator(schemas.ListActionsQuery);
const limitDefault = 50;

export interface ActionHandlers {
  listServerActions: Handler;
  actOnServer: Handler;
  readAction: Handler;
  cancelAction: Handler;
}

/** Power actions of a server and their results. */
export function actionHandlers(deps: Features): ActionHandlers {
  const { servers } = deps;
  const find = async (call: Call, id: number) => {
    const action = await servers.findAction(call.actor, call.tenant.id, id);
    if (action === null) throw notFound();
    return action;
  };
  const isFinished = (action: ServerAction) => action.status === 'success' || action.status === 'error';

  /** The action as it is when it has finished, or when the caller does not want to wait any longer. */
  const settled = async (
    call: Call,
    action: ServerAction,
    [request, reply]: [Parameters<Handler>[1], Parameters<Handler>[2]],
  ) => {
    const seconds = readWait(request, reply) ?? 0;
    if (seconds === 0 || isFinished(action)) return action;
    const topic = `server:${action.serverId}`;
    return waitWhileAllowed(deps.notifications, call, {
      wait: { topic, timeoutMs: seconds * 1_000, signal: callerSignal(reply) },
      look: () => find(call, action.id),
      isEnough: isFinished,
    });
  };

  return {
    async listServerActions(call, request, reply) {
      const { limit, beforeId } = readPage(request);
      const { actions, total } = await servers.pageActions(call.actor, call.tenant.id, idOf(request), {
        limit: limit + 1,
        beforeId,
      });
      const page = actions.slice(0, limit);
      const cursor = actions.length > limit ? writeCursor(page.at(-1)!.id) : null;
      if (cursor !== null) linkNextPage(request, reply, cursor);
      return {
        actions: page.map(showAction),
        pagination: { limit, total, has_more: cursor !== null, next_cursor: cursor },
      };
    },

    async actOnServer(call, request, reply) {
      const id = idOf(request);
      const body = bodyOf(call, request);
      // A missing server is a 404 before the body is validated, so that a body reveals nothing about another's server.
      if ((await servers.findServer(call.actor, call.tenant.id, id)) === null) throw notFound();
      const named = (body as { action?: unknown } | null)?.action;
      if (typeof named === 'string') commandOf(named);
      checkAction(body);
      const wish = readWish(body as schemas.ActionRequest);
      const precondition = serverPrecondition(servers, call, request);
      const action = await idempotent(deps.idempotency, {
        call,
        request,
        reply,
        body,
        run: (claim) =>
          servers.changePower(call.actor, call.tenant.id, id, wish, {
            precondition,
            onAction: async (tx, actionId) => claim?.bind(tx, { kind: 'action', id: actionId }),
          }),
        replay: (result) => find(call, result.id),
      });
      const shown = await settled(call, action, [request, reply]);
      reply.code(isFinished(shown) ? 200 : 202);
      return showAction(shown);
    },

    async readAction(call, request, reply) {
      const action = await find(call, idOf(request));
      return showAction(await settled(call, action, [request, reply]));
    },

    async cancelAction(call, request) {
      checkSelection(bodyOf(call, request));
      return showAction(await servers.cancelAction(call.actor, call.tenant.id, idOf(request)));
    },
  };
}

function readPage(request: FastifyRequest): { limit: number; beforeId: number | null } {
  const { tenant: _, ...rest } = request.query as Record<string, unknown>;
  const query = convertQuery(schemas.ListActionsQuery, rest);
  checkPage(query);
  const { limit = limitDefault, cursor } = query as schemas.ListActionsQuery;
  return { limit, beforeId: cursor === undefined ? null : readCursor(cursor) };
}

/** Opaque to callers: the last id of the page. */
function writeCursor(id: number): string {
  return Buffer.from(`actions:${id}`).toString('base64url');
}

function readCursor(cursor: string): number {
  const match = /^actions:([1-9]\d{0,14})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (match === null) throw invalidCursor();
  return Number(match[1]);
}

function readWish(body: schemas.ActionRequest) {
  const command = commandOf(body.action);
  const { timeout_s: timeoutSeconds, on_timeout: onTimeout } = body;
  if (command !== 'shutdown' && (timeoutSeconds !== undefined || onTimeout !== undefined)) {
    const path = timeoutSeconds === undefined ? 'on_timeout' : 'timeout_s';
    throw invalidFields([{ path, code: 'unknown_field', message: 'belongs to the action shutdown alone' }]);
  }
  return { command, timeoutSeconds, onTimeout };
}

function commandOf(name: string): PowerCommand {
  const command = schemas.actionAliases[name] ?? name;
  const known = schemas.actionNames.find((candidate) => candidate === command);
  if (known) return known;
  const allowed = [...schemas.actionNames];
  const fault = { path: 'action', code: 'unknown_value', message: 'There is no such action.', allowed };
  throw invalidFields([fault], 'unsupported_action', 'There is no such action. See `fields[0].allowed`.');
}
