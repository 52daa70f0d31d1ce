/**
 * `/sign-in`, `/sign-out`, and the pages for a forgotten password.
 *
 * Before there is a session there is no token to compare, so a form must come from our own page: a visitor can't be
 * signed in to a stranger's account. Signing out carries the session's token like any other form.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { isLocalDemo, requireLocal } from '#service-kit/demo/index.ts';
import { type App, HttpError, hidden, originOf, sourceBucket } from '#service-kit/http/index.ts';
import {
  type Content,
  form,
  hiddenField,
  html,
  isLocalPath,
  link,
  sendPage,
  signInPage,
  withQuery,
} from '#service-kit/pages/index.ts';
import { csrfFault, otherSiteFault } from '#service-kit/sessions/index.ts';
import { passkeyOptionsPath, passkeySignInForm, siteOf } from './factor-forms.ts';
import type { SignInDeps } from './index.ts';
import type { SignInPerson } from './people.ts';
import { registerReset } from './reset.routes.ts';
import { completeSignIn, proceedSignIn, registerSecondStep } from './second-step.routes.ts';

const SignInForm = Type.Object({
  email: Type.String({ maxLength: 320 }),
  password: Type.String({ maxLength: 1_000 }),
  next: Type.Optional(Type.String({ maxLength: 2_000 })),
});
const text = Type.Optional(Type.String());
/** `local`: the provider could not help, so the browser is not sent there again by itself. */
const Query = Type.Object({ next: text, done: text, local: text });

export function registerSignIn(app: App, deps: SignInDeps): void {
  app.get('/sign-in', { schema: { ...hidden, querystring: Query } }, async (request, reply) => {
    const { next, done, local } = request.query;
    const session = await deps.sessions.read(request.headers.cookie);
    const person = session && (await deps.people.find(session.personId));
    if (person && session.isCheckDue && deps.oidc.label !== null && local === undefined)
      return reply.redirect(withQuery('/sign-in/oidc', { next: isLocalPath(next) ? next : undefined }), 303);
    if (person && !session.isCheckDue) return reply.redirect(await targetOf(deps, person, next), 303);
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
      const message = `You are still signed in: ${fault}. Reload the page and try again.`;
      throw new HttpError(403, { code: 'forbidden', message });
    }
    reply.header('set-cookie', await deps.sessions.end(request.headers.cookie));
    if (session) await deps.people.noteOwn(session.personId, 'session.end', originOf(request));
    return reply.redirect('/sign-in', 303);
  });

  registerSecondStep(app, deps);
  registerPasskeySignIn(app, deps);
  registerReset(app, deps);
  registerDemoSignIn(app, deps);
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

/**
 * `/sign-in/passkey`: signing in by a passkey alone, also as the second step. Failures of others do not block it,
 * because a passkey cannot be guessed.
 */
const PasskeyForm = Type.Object({
  passkey: Type.String({ maxLength: 20_000 }),
  next: Type.Optional(Type.String({ maxLength: 2_000 })),
});
/** Challenges for one source in ten minutes; each is a row for five. */
const challengesMax = 100;

function registerPasskeySignIn(app: App, deps: SignInDeps): void {
  app.post(passkeyOptionsPath, { schema: hidden }, async (request, reply) => {
    const site = siteOf(request, deps.publicUrl);
    if (otherSiteFault(request) !== null || site === null)
      throw new HttpError(403, { code: 'forbidden', message: 'Passkeys work on our own pages only.' });
    if (!(await deps.sessions.countUse(`passkey:${sourceBucket(request.ip)}`, challengesMax)))
      throw new HttpError(429, { code: 'rate_limited', message: 'Too many attempts. Wait ten minutes.' });
    return reply.send(await deps.factors.beginPasskeySignIn(site));
  });

  app.post('/sign-in/passkey', { schema: { ...hidden, body: PasskeyForm } }, async (request, reply) => {
    const { passkey, next } = request.body;
    const site = siteOf(request, deps.publicUrl);
    const isOurs = otherSiteFault(request) === null && site !== null;
    const personId = isOurs ? await deps.factors.takePasskey(site, passkey) : null;
    const person = personId === null ? null : await deps.people.find(personId);
    if (person !== null) return completeSignIn(deps, request, reply, person, next, { hasSecondFactor: true });
    const error = 'This passkey was not accepted. Try again, or sign in with your password.';
    return showSignIn(deps, request, reply, 401, { next, error });
  });
}

interface Shown {
  email?: string;
  next?: string | undefined;
  error?: string;
  done?: string | undefined;
}

/** For staff; customers have no account there. */
function providerLink({ oidc }: SignInDeps, next: string | undefined): Content {
  if (oidc.label === null) return '';
  const href = withQuery('/sign-in/oidc', { next });
  return html`<p>${link(href, `Staff: sign in at ${oidc.label}`, { kind: 'button' })}</p>`;
}

/** The sign-in page. */
function showSignIn(
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
    alternative: [
      providerLink(deps, next),
      siteOf(request, deps.publicUrl) && passkeySignInForm(next),
      demoSignInForms(deps),
    ],
    resetHref: '/reset-password',
  });
  return sendPage(reply, page, status);
}

// `/sign-in/demo`: one click signs a visitor of the demo in as one of its people.
//
// There is no such route unless the demo world is on and the program listens on this machine alone, and then it answers
// no one who comes from elsewhere or under a name that others could give to this machine.

const Body = Type.Object({ email: Type.String({ maxLength: 320 }) });

export interface DemoRole {
  /** Such as `Customer`. */
  label: string;
  email: string;
}

/** The roles of a demo that only this machine reaches; none of any other program. */
export function demoRolesOf(
  program: { isDemo: boolean; host: string },
  roles: readonly DemoRole[],
): readonly DemoRole[] {
  return isLocalDemo(program) ? roles : [];
}

function registerDemoSignIn(app: App, deps: SignInDeps): void {
  const { demoRoles = [], people } = deps;
  if (demoRoles.length === 0) return;
  const schema = { hide: true, body: Body } as const;
  app.post('/sign-in/demo', { schema }, async (request, reply) => {
    requireLocal(request, 'The demo signs in on this machine only.');
    const role = demoRoles.find(({ email }) => email === request.body.email);
    const person = role && (await people.findByEmail(role.email));
    if (!person) throw new HttpError(404, { code: 'not_found', message: 'The demo has no such person.' });
    return proceedSignIn(deps, request, reply, person);
  });
}

/** A button for each role; nothing outside of a demo. */
function demoSignInForms({ demoRoles = [] }: Pick<SignInDeps, 'demoRoles'>): Content {
  if (demoRoles.length === 0) return '';
  return html`<section class="demo-roles" aria-label="Demo"><p class="hint">Demo: sign in with one click</p><div class="actions">${demoRoles.map(
    ({ label, email }) =>
      form(
        { action: '/sign-in/demo', csrfToken: null, submit: label, submitKind: 'button', layout: 'inline' },
        hiddenField('email', email),
      ),
  )}</div></section>`;
}
