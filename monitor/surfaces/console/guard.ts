import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Actor, Operator, Operators } from '#monitor/operators/index.ts';
import type { Site, Sites } from '#monitor/sites/index.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';
import { type ConfirmDeps, confirmIdentity } from '#service-kit/sign-in/index.ts';
import {
  askToSignIn,
  isChange,
  lacksSecondFactor,
  readSession,
  requireToken,
} from '#service-kit/web/index.ts';

/** The signed-in person. */
export interface Viewer {
  operator: Operator;
  actor: Actor;
  csrfToken: string;
  /** May change data; operations check it again. */
  canChange: boolean;
  /** Every site, for the switcher. */
  sites: readonly Site[];
}

const viewers = new WeakMap<FastifyRequest, Viewer>();
const readOnlyText = 'Your role is read-only. Ask an operator to do this. Nothing was changed.';

/**
 * A hook that admits signed-in people and redirects all others to sign in. It runs after the body is read, because
 * every change must contain the session's token, and before the body is validated, because a caller without permission
 * must not receive validation errors.
 */
export function guardConsole(
  deps: Omit<ConfirmDeps, 'people'> & { operators: Operators; sites: Sites; requireSecondFactor: boolean },
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const session = await readSession(deps.sessions, request);
    const operator = session ? await deps.operators.find(session.personId) : null;
    if (!session || !operator) {
      if (request.url.startsWith('/api/')) {
        throw new HttpError(401, { code: 'unauthenticated', message: 'Sign in first.' });
      }
      return askToSignIn(request, reply);
    }
    const canChange = operator.role === 'operator';
    if (isChange(request)) {
      requireToken(request, session);
      // Operations refuse as well; this check covers forms that forget it.
      if (!canChange && !request.routeOptions.config.isOwn) {
        throw new HttpError(403, { code: 'read_only', message: readOnlyText });
      }
      const confirming = { ...deps, people: deps.operators.people };
      if (!(await confirmIdentity(confirming, 'Monitor', request, reply, operator, session))) return reply;
    }
    if (await lacksSecondFactor(deps, request, session, '/account/')) return reply.redirect('/account/', 303);
    viewers.set(request, {
      operator,
      actor: {
        kind: 'person',
        id: operator.id,
        role: operator.role,
        name: operator.email,
        origin: originOf(request),
      },
      csrfToken: session.csrfToken,
      canChange,
      sites: request.url.startsWith('/api/') ? [] : await deps.sites.list(),
    });
    return undefined;
  };
}

/** The person that the guard admitted. */
export function viewerOf(request: FastifyRequest): Viewer {
  return viewers.get(request)!;
}
