/**
 * `/sign-in` and `/sign-out`.
 *
 * Before there is a session there is no token to compare, so a browser's sign-in must come from our own page: nobody
 * can sign a visitor in to a stranger's account. Signing out carries the session's token like any other form.
 */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Operators } from '#monitor/operators/index.ts';
import { type App, HttpError, originOf, sourceBucket } from '#service-kit/http/index.ts';
import { isLocalPath, sendPage, signInPage } from '#service-kit/pages/index.ts';
import { csrfFault, otherSiteFault, type Sessions } from '#service-kit/sessions/index.ts';

const SignInForm = Type.Object({
  email: Type.String({ maxLength: 320 }),
  password: Type.String({ maxLength: 1_000 }),
  next: Type.Optional(Type.String({ maxLength: 2_000 })),
});

export function registerSignIn(app: App, deps: { operators: Operators; sessions: Sessions }): void {
  app.get(
    '/sign-in',
    { schema: { querystring: Type.Object({ next: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const session = await deps.sessions.read(request.headers.cookie);
      if (session && (await deps.operators.find(session.personId))) {
        return reply.redirect(landing(request.query.next), 303);
      }
      return showForm(reply, 200, { next: request.query.next });
    },
  );

  app.post('/sign-in', { schema: { body: SignInForm } }, async (request, reply) => {
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
    const operator = await deps.operators.checkPassword(email, password);
    if (operator === null) {
      const error = 'E-mail address and password do not fit together. Check both and try again.';
      return showForm(reply, 401, { email, next, error });
    }
    await attempt.giveBack();
    // Whatever session this browser had ends here: nobody inherits another person's.
    await deps.sessions.end(request.headers.cookie);
    const device = await deps.sessions.knowDevice(email, request.headers.cookie);
    const session = await deps.sessions.start(operator.id);
    await deps.operators.noteSession(operator.id, 'session.start', originOf(request));
    reply.header('set-cookie', device === null ? session : [session, device]);
    return reply.redirect(landing(next), 303);
  });

  app.post('/sign-out', async (request, reply) => {
    const session = await deps.sessions.read(request.headers.cookie);
    const fault = session ? csrfFault(request, session.csrfToken) : null;
    if (fault !== null) {
      const message = `You are still signed in: ${fault}. Load the page again and repeat it.`;
      throw new HttpError(403, { code: 'forbidden', message });
    }
    reply.header('set-cookie', await deps.sessions.end(request.headers.cookie));
    if (session) await deps.operators.noteSession(session.personId, 'session.end', originOf(request));
    return reply.redirect('/sign-in', 303);
  });
}

function landing(next: string | undefined): string {
  return isLocalPath(next) ? next : '/';
}

function showForm(
  reply: FastifyReply,
  status: number,
  shown: { email?: string; next?: string | undefined; error?: string },
): FastifyReply {
  const next = isLocalPath(shown.next) ? shown.next : undefined;
  const page = signInPage({ area: 'Monitor', email: shown.email, error: shown.error, next });
  return sendPage(reply, page, status);
}
