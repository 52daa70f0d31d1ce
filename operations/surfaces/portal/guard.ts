import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Accounts, CustomerActor, Person } from '#operations/accounts/index.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';
import { csrfFault } from '#service-kit/sessions/index.ts';
import { type ConfirmDeps, confirmIdentity } from '#service-kit/sign-in/index.ts';

/** Who looks at a portal page. */
export interface Visitor {
  actor: CustomerActor;
  person: Person;
  csrfToken: string;
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
    const session = await deps.sessions.read(request.headers.cookie);
    const [actor, person] = session
      ? await Promise.all([
          deps.accounts.customerActorOf(session.personId),
          deps.accounts.findPerson(session.personId),
        ])
      : [null, null];
    if (!session || !actor || !person) {
      const next = request.method === 'GET' ? `?next=${encodeURIComponent(request.url)}` : '';
      return reply.redirect(`/sign-in${next}`, 303);
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const fault = csrfFault(request, session.csrfToken);
      if (fault !== null) {
        throw new HttpError(403, {
          code: 'forbidden',
          message: `Nothing was changed: ${fault}. Reload the page and try again.`,
        });
      }
      const confirming = { ...deps, people: deps.accounts.people };
      if (!(await confirmIdentity(confirming, 'Customer portal', request, reply, person, session)))
        return reply;
    }
    request.visitor = {
      actor: { ...actor, origin: originOf(request) },
      person,
      csrfToken: session.csrfToken,
    };
    return undefined;
  };
}

/** The 404 of the portal: one for what is another customer's and for what never was. */
export function noSuchPage(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'No page exists at this path.' });
}
