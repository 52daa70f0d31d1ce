import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Actor, Operator, Operators } from '#monitor/operators/index.ts';
import type { Site, Sites } from '#monitor/sites/index.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';
import { csrfFault, type Sessions } from '#service-kit/sessions/index.ts';

/** Who looks at a page of the console. */
export interface Viewer {
  operator: Operator;
  actor: Actor;
  csrfToken: string;
  /** May change things; the operations ask again. */
  canChange: boolean;
  /** Every site, for the frame's switch. */
  sites: readonly Site[];
}

const viewers = new WeakMap<FastifyRequest, Viewer>();
const readOnlyText =
  'Your role may look at everything and change nothing. Ask an operator to do this. Nothing was changed.';

/**
 * A hook that lets signed-in people in and sends everybody else to sign in. It runs after the body is read, because
 * whatever changes something must carry the session's token, and before the body is judged, because who may not ask
 * is not told what was wrong with the question.
 */
export function guardConsole(deps: { operators: Operators; sessions: Sessions; sites: Sites }) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const session = await deps.sessions.read(request.headers.cookie);
    const operator = session ? await deps.operators.find(session.personId) : null;
    if (!session || !operator) {
      if (request.url.startsWith('/api/')) {
        throw new HttpError(401, { code: 'unauthenticated', message: 'Sign in first.' });
      }
      const next = request.method === 'GET' ? `?next=${encodeURIComponent(request.url)}` : '';
      return reply.redirect(`/sign-in${next}`, 303);
    }
    const canChange = operator.role === 'operator';
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const fault = csrfFault(request, session.csrfToken);
      if (fault !== null) {
        throw new HttpError(403, {
          code: 'forbidden',
          message: `Nothing was changed: ${fault}. Load the page again and repeat it.`,
        });
      }
      // The operations refuse as well; here no new form can be forgotten.
      if (!canChange && !request.routeOptions.config.isOwn) {
        throw new HttpError(403, { code: 'read_only', message: readOnlyText });
      }
    }
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

/** The person that the guard let in. */
export function viewerOf(request: FastifyRequest): Viewer {
  return viewers.get(request)!;
}
