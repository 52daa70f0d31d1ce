import { schemas } from '#contracts/customer-api/index.ts';
import type { PowerCommand, ServerAction } from '#operations/servers/index.ts';
import type { Call, Handler } from './call.ts';
import { idempotent } from './idempotent.ts';
import { callerSignal, readWait } from './prefer-wait.ts';
import { bodyOf, idOf } from './request-parts.ts';
import { notFound } from './select-tenant.ts';
import type { ServerRouteDeps } from './servers.routes.ts';
import { compileValidator, invalidFields } from './validate-input.ts';
import { showAction } from './views.ts';

const checkAction = compileValidator(schemas.ActionRequest);
const actionsMax = 50;

export interface ActionHandlers {
  listServerActions: Handler;
  actOnServer: Handler;
  readAction: Handler;
}

/** What is asked of a server's power, and what came of it. */
export function actionHandlers(deps: ServerRouteDeps): ActionHandlers {
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
    const seconds = readWait(request, reply);
    if (seconds === 0 || isFinished(action)) return action;
    const wait = {
      topic: `server:${action.serverId}`,
      timeoutMs: seconds * 1_000,
      signal: callerSignal(request),
    };
    return deps.notifications.waitFor(wait, () => find(call, action.id), isFinished);
  };

  return {
    async listServerActions(call, request) {
      const actions = await servers.listActions(call.actor, call.tenant.id, idOf(request), actionsMax);
      return {
        actions: actions.map(showAction),
        pagination: { limit: actionsMax, total: actions.length, has_more: false, next_cursor: null },
      };
    },

    async actOnServer(call, request, reply) {
      const id = idOf(request);
      const body = bodyOf(call, request);
      // What is not there is a 404 whatever was asked of it, so that a body tells nothing about another's server.
      if ((await servers.findServer(call.actor, call.tenant.id, id)) === null) throw notFound();
      checkAction(body);
      const wish = readWish(body as schemas.ActionRequest);
      const action = await idempotent(deps.idempotency, {
        call,
        request,
        reply,
        body,
        run: (claim) =>
          servers.changePower(call.actor, call.tenant.id, id, wish, (tx, actionId) =>
            claim === null ? Promise.resolve() : claim.bind(tx, { kind: 'action', id: actionId }),
          ),
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
  };
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
