import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Accounts, CustomerActor, Person } from '#operations/accounts/index.ts';
import { originOf } from '#service-kit/http/index.ts';
import { type ConfirmDeps, confirmIdentity } from '#service-kit/sign-in/index.ts';
import { askToSignIn, isChange, readSession, requireToken } from '#service-kit/web/index.ts';

/** The one of the path. */
export const Id = Type.Object({ id: Type.String() });
/** What was done before a redirect; a page says it. */
export const Done = Type.Object({ done: Type.Optional(Type.String()) });

/** Who looks at a portal page. */
export interface Visitor {
  actor: CustomerActor;
  person: Person;
  csrfToken: string;
  sessionId: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The signed-in customer; set for every page of the portal. */
    visitor: Visitor | null;
  }
}

/**
 * A hook that requires a session and redirects all other requests to sign-in. It runs after the body is read, because
 * every change must carry the session's token.
 */
export function guardPortal(deps: Omit<ConfirmDeps, 'people'> & { accounts: Accounts }) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const session = await readSession(deps.sessions, request);
    const [actor, person] = session
      ? await Promise.all([
          deps.accounts.customerActorOf(session.personId),
          deps.accounts.findPerson(session.personId),
        ])
      : [null, null];
    if (!session || !actor || !person) {
      return askToSignIn(request, reply);
    }
    if (isChange(request)) {
      requireToken(request, session);
      const confirming = { ...deps, people: deps.accounts.people };
      if (!(await confirmIdentity(confirming, 'Customer portal', request, reply, person, session)))
        return reply;
    }
    request.visitor = {
      actor: { ...actor, origin: originOf(request) },
      person,
      csrfToken: session.csrfToken,
      sessionId: session.id,
    };
    return undefined;
  };
}
