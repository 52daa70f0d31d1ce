import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Accounts, Person, StaffActor } from '#operations/accounts/index.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';
import { csrfFault, type Sessions } from '#service-kit/sessions/index.ts';

/** One of our people at the console. */
export interface Staff {
  actor: StaffActor;
  person: Person;
  csrfToken: string;
  /** False for support, who only read: their pages have no forms. */
  canChange: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The signed-in staff member; set for every page of the console. */
    staff: Staff | null;
  }
}

/**
 * A hook: strangers are sent to sign in, customers see nothing here, and support gets one refusal for every form, before
 * anybody looks at its fields. The operations refuse support as well: theirs is the lock, this is the answer.
 */
export function guardConsole(deps: { accounts: Accounts; sessions: Sessions }) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const session = await deps.sessions.read(request.headers.cookie);
    const person = session && (await deps.accounts.findPerson(session.personId));
    if (!session || !person?.isActive) {
      const next = request.method === 'GET' ? `?next=${encodeURIComponent(request.url)}` : '';
      return reply.redirect(`/sign-in${next}`, 303);
    }
    const found = await deps.accounts.staffActorOf(session.personId);
    if (!found) throw noSuchPage();
    const actor = { ...found, origin: originOf(request) };
    const isUnsafe = request.method !== 'GET' && request.method !== 'HEAD';
    if (isUnsafe) {
      const fault = csrfFault(request, session.csrfToken);
      if (fault !== null) {
        throw new HttpError(403, {
          code: 'forbidden',
          message: `Nothing was changed: ${fault}. Load the page again and repeat it.`,
        });
      }
    }
    if (isUnsafe && actor.role !== 'operator' && !request.routeOptions.config.isOwn)
      throw new HttpError(403, {
        code: 'forbidden',
        message: 'Support reads everything and changes nothing. Ask an operator to do this.',
      });
    request.staff = { actor, person, csrfToken: session.csrfToken, canChange: actor.role === 'operator' };
    return undefined;
  };
}

export function noSuchPage(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'There is nothing at this path.' });
}
