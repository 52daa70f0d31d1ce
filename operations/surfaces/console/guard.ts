import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Accounts, Person, StaffActor } from '#operations/accounts/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { csrfFault, type Sessions } from '#service-kit/sessions/index.ts';

/** One of our people at the console. */
export interface Staff {
  actor: StaffActor;
  person: Person;
  csrfToken: string;
  /** False for support, who only read. */
  canChange: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The signed-in staff member; set for every page of the console. */
    staff: Staff | null;
  }
}

/** A hook: strangers are sent to sign in, customers see nothing here, support changes nothing. */
export function guardConsole(deps: { accounts: Accounts; sessions: Sessions }) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const session = await deps.sessions.read(request.headers.cookie);
    const person = session && (await deps.accounts.findPerson(session.personId));
    if (!session || !person?.isActive) {
      const next = request.method === 'GET' ? `?next=${encodeURIComponent(request.url)}` : '';
      return reply.redirect(`/sign-in${next}`, 303);
    }
    const actor = await deps.accounts.staffActorOf(session.personId);
    if (!actor) throw noSuchPage();
    const canChange = actor.role === 'operator';
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const fault = csrfFault(request, session.csrfToken);
      if (fault !== null) throw refused(`Nothing was changed: ${fault}. Load the page again and repeat it.`);
      if (!canChange) throw refused('Support staff may only read. Ask an operator.');
    }
    request.staff = { actor, person, csrfToken: session.csrfToken, canChange };
    return undefined;
  };
}

export function noSuchPage(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'There is nothing at this path.' });
}

function refused(message: string): HttpError {
  return new HttpError(403, { code: 'forbidden', message });
}
