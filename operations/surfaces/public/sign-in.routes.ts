/**
 * `/sign-in` and `/sign-out`.
 *
 * Before there is a session there is no token to compare, so a browser's sign-in must come from our own page: nobody
 * can sign a visitor in to a stranger's account. Signing out carries the session's token like any other form.
 */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Accounts, Person } from '#operations/accounts/index.ts';
import { type App, HttpError, originOf, sourceBucket } from '#service-kit/http/index.ts';
import { isLocalPath, sendPage, signInPage } from '#service-kit/pages/index.ts';
import { csrfFault, otherSiteFault, type Sessions } from '#service-kit/sessions/index.ts';

export interface SignInDeps {
  accounts: Accounts;
  sessions: Sessions;
}

const SignInForm = Type.Object({
  email: Type.String({ maxLength: 320 }),
  password: Type.String({ maxLength: 1_000 }),
  next: Type.Optional(Type.String({ maxLength: 2_000 })),
});
const hidden = { hide: true } as object;

export function registerSignIn(app: App, deps: SignInDeps): void {
  app.get(
    '/sign-in',
    { schema: { ...hidden, querystring: Type.Object({ next: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const session = await deps.sessions.read(request.headers.cookie);
      const person = session && (await deps.accounts.findPerson(session.personId));
      if (person?.isActive) return reply.redirect(landingOf(person, request.query.next), 303);
      return showForm(reply, 200, { next: request.query.next });
    },
  );

  app.post('/sign-in', { schema: { ...hidden, body: SignInForm } }, async (request, reply) => {
    const { email, password, next } = request.body;
    const source = sourceBucket(request.ip);
    if (otherSiteFault(request) !== null) {
      const error = 'The request came from another site. Sign in here.';
      return showForm(reply, 403, { email, next, error });
    }
    const attempt = await deps.sessions.beginAttempt(email, source, request.headers.cookie);
    if (attempt === null) {
      const error = 'Too many failed attempts. Wait ten minutes, then try again.';
      return showForm(reply, 429, { email, next, error });
    }
    const person = await deps.accounts.signIn(email, password);
    if (person === null) {
      const error = 'E-mail address and password do not fit together. Check both and try again.';
      return showForm(reply, 401, { email, next, error });
    }
    await attempt.giveBack();
    // Whatever session this browser had ends here: nobody inherits another person's.
    await deps.sessions.end(request.headers.cookie);
    const device = await deps.sessions.knowDevice(email, request.headers.cookie);
    const session = await deps.sessions.start(person.id);
    await deps.accounts.noteSession(person.id, 'session.start', originOf(request));
    reply.header('set-cookie', device === null ? session : [session, device]);
    return reply.redirect(landingOf(person, next), 303);
  });

  app.post('/sign-out', { schema: hidden }, async (request, reply) => {
    const session = await deps.sessions.read(request.headers.cookie);
    if (session) {
      const fault = csrfFault(request, session.csrfToken);
      if (fault !== null) {
        throw new HttpError(403, {
          code: 'forbidden',
          message: `You are still signed in: ${fault}. Load the page again and repeat it.`,
        });
      }
    }
    reply.header('set-cookie', await deps.sessions.end(request.headers.cookie));
    if (session) await deps.accounts.noteSession(session.personId, 'session.end', originOf(request));
    return reply.redirect('/sign-in', 303);
  });
}

/** Where a person goes after signing in: where they wanted to, else staff to the console, customers to the portal. */
function landingOf(person: Person, next: string | undefined): string {
  if (isLocalPath(next)) return next;
  return person.staffRole === null ? '/client/' : '/console/';
}

function showForm(
  reply: FastifyReply,
  status: number,
  shown: { email?: string; next?: string | undefined; error?: string },
): FastifyReply {
  const next = isLocalPath(shown.next) ? shown.next : undefined;
  return sendPage(
    reply,
    signInPage({ area: 'Virtual servers', email: shown.email, error: shown.error, next }),
    status,
  );
}
