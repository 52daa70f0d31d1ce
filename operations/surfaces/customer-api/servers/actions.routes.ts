import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type { PowerCommand, ServerAction } from '#operations/views/server-store.ts';
import { type Call, type Handler, type Handlers, notFound } from '../call.ts';
import { idempotent } from '../idempotent.ts';
import { bodyReader, cursorsOf, idOf, pageOfFound, queryReader, readSelection } from '../request-parts.ts';
import { invalidFields } from '../validate-input.ts';
import { showAction } from '../views.ts';
import { callerSignal, readWait, waitWhileAllowed } from './prefer-wait.ts';
import { findServer, serverPrecondition } from './servers.routes.ts';

const readActionRequest = bodyReader(schemas.ActionRequest);
const readPageQuery = queryReader(schemas.ListActionsQuery);
const cursors = cursorsOf('actions');
const limitDefault = 50;

/** Power actions of a server and their results. */
export function actionHandlers(deps: Features) {
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
      const { limit = limitDefault, cursor } = readPageQuery(request);
      const beforeId = cursor === undefined ? null : cursors.read(cursor);
      const { actions, total } = await servers.pageActions(call.actor, call.tenant.id, idOf(request), {
        limit: limit + 1,
        beforeId,
      });
      const cursorOf = ({ id }: ServerAction) => cursors.write(id);
      const { page, pagination } = pageOfFound(request, reply, actions, { limit, total, cursorOf });
      return { actions: page.map(showAction), pagination };
    },

    async actOnServer(call, request, reply) {
      const id = idOf(request);
      // A missing server is a 404 before the body is validated, so that a body reveals nothing about another's server.
      await findServer(servers, call, id);
      const named = (request.body as { action?: unknown } | null | undefined)?.action;
      if (typeof named === 'string') commandOf(named);
      const body = readActionRequest(call, request);
      const wish = readWish(body);
      const precondition = serverPrecondition(servers, call, request);
      const action = await idempotent(deps.idempotency, {
        ...{ call, request, reply, body },
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
      readSelection(call, request);
      return showAction(await servers.cancelAction(call.actor, call.tenant.id, idOf(request)));
    },
  } satisfies Handlers;
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
