import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Accounts, Person, StaffActor } from '#operations/accounts/index.ts';
import { HttpError, originOf } from '#service-kit/http/index.ts';
import { type ConfirmDeps, confirmIdentity } from '#service-kit/sign-in/index.ts';
import {
  askToSignIn,
  isChange,
  lacksSecondFactor,
  noSuchPage,
  readSession,
  requireToken,
} from '#service-kit/web/index.ts';

/** The one of the path. */
export const Id = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });

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
 * its fields are validated. The operations refuse support as well; this hook only gives the better answer.
 */
export function guardConsole(
  deps: Omit<ConfirmDeps, 'people'> & { accounts: Accounts; requireSecondFactor: boolean },
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const session = await readSession(deps.sessions, request);
    const person = session && (await deps.accounts.findPerson(session.personId));
    if (!session || !person?.isActive) {
      return askToSignIn(request, reply);
    }
    const found = await deps.accounts.staffActorOf(session.personId);
    if (!found) throw noSuchPage();
    const actor = { ...found, origin: originOf(request) };
    const isUnsafe = isChange(request);
    if (isUnsafe) requireToken(request, session);
    if (isUnsafe && actor.role !== 'operator' && !request.routeOptions.config.isOwn)
      throw new HttpError(403, {
        code: 'forbidden',
        message: 'Support is read-only. Ask an operator to do this.',
      });
    if (await lacksSecondFactor(deps, request, session, '/console/account/'))
      return reply.redirect('/console/account/', 303);
    const confirming = { ...deps, people: deps.accounts.people };
    if (isUnsafe && !(await confirmIdentity(confirming, 'Operations', request, reply, person, session)))
      return reply;
    request.staff = { actor, person, csrfToken: session.csrfToken, canChange: actor.role === 'operator' };
    return undefined;
  };
}
