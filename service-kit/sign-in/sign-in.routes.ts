/**
 * `/sign-in`, `/sign-out`, and the pages for a forgotten password.
 *
 * Before there is a session there is no token to compare, so a form must come from our own page: a visitor can't be
 * signed in to a stranger's account. Signing out carries the session's token like any other form.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { type App, HttpError, originOf, sourceBucket } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { isLocalPath, sendPage, signInPage } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import { csrfFault, otherSiteFault, type Sessions } from '#service-kit/sessions/index.ts';
import { registerPasskeySignIn } from './passkey.routes.ts';
import { passkeySignInForm, siteOf } from './passkey-button.ts';
import type { SignInPeople, SignInPerson } from './people.ts';
import { registerReset } from './reset.routes.ts';
import { proceedSignIn, registerSecondStep } from './second-step.routes.ts';

export interface SignInDeps {
  db: () => Queryable;
  /** "Virtual servers", "Monitor". */
  area: string;
  people: SignInPeople;
  sessions: Sessions;
  factors: SecondFactors;
  post: Post;
  clock: Clock;
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
}

const SignInForm = Type.Object({
  email: Type.String({ maxLength: 320 }),
  password: Type.String({ maxLength: 1_000 }),
  next: Type.Optional(Type.String({ maxLength: 2_000 })),
});
const Query = Type.Object({ next: Type.Optional(Type.String()), done: Type.Optional(Type.String()) });
const hidden = { hide: true } as object;

interface Shown {
  email?: string;
  next?: string | undefined;
  error?: string;
  done?: string | undefined;
}

export function registerSignIn(app: App, deps: SignInDeps): void {
  app.get('/sign-in', { schema: { ...hidden, querystring: Query } }, async (request, reply) => {
    const { next, done } = request.query;
    const session = await deps.sessions.read(request.headers.cookie);
    const person = session && (await deps.people.find(session.personId));
    if (person) return reply.redirect(await targetOf(deps, person, next), 303);
    return showSignIn(deps, request, reply, 200, { next, done });
  });

  app.post('/sign-in', { schema: { ...hidden, body: SignInForm } }, async (request, reply) => {
    const { email, password, next } = request.body;
    const source = sourceBucket(request.ip);
    if (otherSiteFault(request) !== null) {
      const error = 'The request came from another site. Sign in here.';
      return showSignIn(deps, request, reply, 403, { email, next, error });
    }
    const attempt = await deps.sessions.beginAttempt(email, source, request.headers.cookie);
    if (attempt === null) return showSignIn(deps, request, reply, 429, { email, next, error: tooMany(deps) });
    const person = await deps.people.checkPassword(email, password);
    if (person === null) {
      const error = 'Email or password is incorrect.';
      return showSignIn(deps, request, reply, 401, { email, next, error });
    }
    await attempt.giveBack();
    return proceedSignIn(deps, request, reply, person, next);
  });

  app.post('/sign-out', { schema: hidden }, async (request, reply) => {
    const session = await deps.sessions.read(request.headers.cookie);
    const fault = session ? csrfFault(request, session.csrfToken) : null;
    if (fault !== null) {
      const message = `You are still signed in: ${fault}. Load the page again and repeat it.`;
      throw new HttpError(403, { code: 'forbidden', message });
    }
    reply.header('set-cookie', await deps.sessions.end(request.headers.cookie));
    if (session) await deps.people.noteOwn(session.personId, 'session.end', originOf(request));
    return reply.redirect('/sign-in', 303);
  });

  registerSecondStep(app, deps);
  registerPasskeySignIn(app, deps);
  registerReset(app, deps);
}

/** A person who is locked out by failures of others has a way in that others can't shut: the mailed link. */
function tooMany({ post }: SignInDeps): string {
  const wait = 'Too many failed attempts. Wait ten minutes, then try again.';
  return post.canSend ? `${wait} To sign in at once, reset your password by mail.` : wait;
}

async function targetOf(
  { people }: Pick<SignInDeps, 'people'>,
  person: SignInPerson,
  next: string | undefined,
): Promise<string> {
  return isLocalPath(next) ? next : people.landingOf(person.id);
}

/** The sign-in page. */
export function showSignIn(
  deps: SignInDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  shown: Shown,
): FastifyReply {
  const { email, error, done } = shown;
  const next = isLocalPath(shown.next) ? shown.next : undefined;
  const success = done === 'password' ? 'Your password is set. Sign in with it.' : undefined;
  const page = signInPage({
    area: deps.area,
    email,
    error,
    success,
    next,
    alternative: siteOf(request, deps.publicUrl) && passkeySignInForm(next),
    resetHref: '/reset-password',
  });
  return sendPage(reply, page, status);
}
