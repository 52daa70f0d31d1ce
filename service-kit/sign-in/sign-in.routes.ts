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
import { browserName, csrfFault, otherSiteFault, type Sessions } from '#service-kit/sessions/index.ts';
import { newBrowserMail } from './mails.ts';
import type { SignInPeople, SignInPerson } from './people.ts';
import { registerReset } from './reset.routes.ts';

export interface SignInDeps {
  db: () => Queryable;
  /** "Virtual servers", "Monitor". */
  area: string;
  people: SignInPeople;
  sessions: Sessions;
  post: Post;
  clock: Clock;
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
    return showForm(deps, reply, 200, { next, done });
  });

  app.post('/sign-in', { schema: { ...hidden, body: SignInForm } }, async (request, reply) => {
    const { email, password, next } = request.body;
    const source = sourceBucket(request.ip);
    if (otherSiteFault(request) !== null) {
      const error = 'The request came from another site. Sign in here.';
      return showForm(deps, reply, 403, { email, next, error });
    }
    const attempt = await deps.sessions.beginAttempt(email, source, request.headers.cookie);
    if (attempt === null) return showForm(deps, reply, 429, { email, next, error: tooMany(deps) });
    const person = await deps.people.checkPassword(email, password);
    if (person === null) {
      const error = 'Email or password is incorrect.';
      return showForm(deps, reply, 401, { email, next, error });
    }
    await attempt.giveBack();
    return completeSignIn(deps, request, reply, person, next);
  });

  app.post('/sign-out', { schema: hidden }, async (request, reply) => {
    const session = await deps.sessions.read(request.headers.cookie);
    const fault = session ? csrfFault(request, session.csrfToken) : null;
    if (fault !== null) {
      const message = `You are still signed in: ${fault}. Load the page again and repeat it.`;
      throw new HttpError(403, { code: 'forbidden', message });
    }
    reply.header('set-cookie', await deps.sessions.end(request.headers.cookie));
    if (session) await deps.people.noteSession(session.personId, 'session.end', originOf(request));
    return reply.redirect('/sign-in', 303);
  });

  registerReset(app, deps);
}

/** Starts a session for a person who has proved who they are, and mails them when the browser is new. */
export async function completeSignIn(
  deps: Omit<SignInDeps, 'area' | 'db'>,
  request: FastifyRequest,
  reply: FastifyReply,
  person: SignInPerson,
  next?: string,
): Promise<FastifyReply> {
  const { cookie, 'user-agent': userAgent = null } = request.headers;
  // The session that this browser had ends here, so that one person never inherits another's.
  await deps.sessions.end(cookie);
  const device = await deps.sessions.knowDevice(person.email, cookie);
  const session = await deps.sessions.start(person.id, { source: request.ip, userAgent });
  await deps.people.noteSession(person.id, 'session.start', originOf(request));
  reply.header('set-cookie', device === null ? session : [session, device]);
  if (device !== null) {
    const from = { browser: browserName(userAgent), source: request.ip, atMs: deps.clock.nowMs() };
    deps.post.sendLater(async () => newBrowserMail(person, from, deps.post.linkTo('/reset-password')));
  }
  return reply.redirect(await targetOf(deps, person, next), 303);
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

function showForm(deps: SignInDeps, reply: FastifyReply, status: number, shown: Shown): FastifyReply {
  const { email, error, done } = shown;
  const next = isLocalPath(shown.next) ? shown.next : undefined;
  const success = done === 'password' ? 'Your password is set. Sign in with it.' : undefined;
  const page = signInPage({ area: deps.area, email, error, success, next, resetHref: '/reset-password' });
  return sendPage(reply, page, status);
}
