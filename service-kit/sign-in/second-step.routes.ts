/**
 * `/sign-in/code`: the second step of signing in, for people who have a second factor.
 *
 * Between the steps a browser has a cookie of its own and no session. Codes are limited for each person, and apart for
 * browsers that are known, so that a stranger with the password does not lock the owner out of theirs.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type App, HttpError, hidden, originOf } from '#service-kit/http/index.ts';
import { hiddenField, html, isLocalPath, link, sendPage } from '#service-kit/pages/index.ts';
import { browserName, otherSiteFault, readCookie, type SessionProof } from '#service-kit/sessions/index.ts';
import { codeForm, passkeySignInForm, siteOf } from './factor-forms.ts';
import type { SignInDeps } from './index.ts';
import { newBrowserMail, recoveryUsedMail } from './mails.ts';
import type { SignInPerson } from './people.ts';
import { alone, backToSignIn } from './reset.routes.ts';

const CodeForm = Type.Object({
  code: Type.String({ maxLength: 100 }),
  next: Type.Optional(Type.String({ maxLength: 2_000 })),
});
const Query = Type.Object({ next: Type.Optional(Type.String()) });
const stepMinutes = 10;

const cookieNameOf = ({ sessions }: Pick<SignInDeps, 'sessions'>) => `${sessions.cookieName}_step`;

/** Signs a person in who has shown the password: at once, or by way of the second step. */
export async function proceedSignIn(
  deps: Omit<SignInDeps, 'db' | 'publicUrl'>,
  request: FastifyRequest,
  reply: FastifyReply,
  person: SignInPerson,
  next?: string,
): Promise<FastifyReply> {
  const state = await deps.factors.stateOf(person.id);
  if (!state.hasAny) return completeSignIn(deps, request, reply, person, next, { hasSecondFactor: false });
  const secret = await deps.factors.beginStep(person.id);
  reply.header('set-cookie', stepCookie(deps, secret, stepMinutes * 60));
  const query = isLocalPath(next) ? `?next=${encodeURIComponent(next)}` : '';
  return reply.redirect(`/sign-in/code${query}`, 303);
}

function stepCookie(deps: Pick<SignInDeps, 'sessions'>, secret: string, seconds: number): string {
  const name = cookieNameOf(deps);
  const secure = name.startsWith('__Host-') ? '; Secure' : '';
  return `${name}=${secret}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${seconds}`;
}

export function registerSecondStep(app: App, deps: SignInDeps): void {
  const { factors, people, sessions } = deps;
  const find = async (request: FastifyRequest) => {
    const secret = readCookie(request.headers.cookie, cookieNameOf(deps));
    const personId = secret === null ? null : await factors.findStep(secret);
    const person = personId === null ? null : await people.find(personId);
    return person === null ? null : { secret: secret!, person };
  };

  app.get('/sign-in/code', { schema: { ...hidden, querystring: Query } }, async (request, reply) => {
    const step = await find(request);
    if (step === null) return reply.redirect('/sign-in', 303);
    return show(deps, request, reply, 200, request.query.next);
  });

  app.post('/sign-in/code', { schema: { ...hidden, body: CodeForm } }, async (request, reply) => {
    const fault = otherSiteFault(request);
    if (fault !== null)
      throw new HttpError(403, { code: 'forbidden', message: `You are not signed in: ${fault}.` });
    const step = await find(request);
    if (step === null) return reply.redirect('/sign-in', 303);
    const { code, next } = request.body;
    const { person, secret } = step;
    const attempt = await sessions.beginCode(person.email, request.headers.cookie);
    if (attempt === null)
      return show(deps, request, reply, 429, next, 'Too many wrong codes. Wait ten minutes, then try again.');
    const kind = await factors.takeCode(person.id, code);
    if (kind === null)
      return show(
        deps,
        request,
        reply,
        401,
        next,
        'This code is wrong or was used before. Wait for the next one.',
      );
    await attempt.giveBack();
    await factors.endStep(secret);
    if (kind === 'recovery') await mailRecoveryUse(deps, person);
    reply.header('set-cookie', stepCookie(deps, '', 0));
    return completeSignIn(deps, request, reply, person, next, { hasSecondFactor: true });
  });
}

/** Mails a person that one of their recovery codes was used, with how many are left. */
export async function mailRecoveryUse(
  { factors, post }: Pick<SignInDeps, 'factors' | 'post'>,
  person: SignInPerson,
): Promise<void> {
  const { recoveryCodesLeft } = await factors.stateOf(person.id);
  post.sendLater(async () => recoveryUsedMail(person, recoveryCodesLeft, post.linkTo('/reset-password')));
}

function show(
  { area, publicUrl }: SignInDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  next: string | undefined,
  error?: string,
): FastifyReply {
  const content = codeForm({
    action: '/sign-in/code',
    csrfToken: null,
    submit: 'Sign in',
    fields: isLocalPath(next) ? hiddenField('next', next) : '',
    error,
  });
  return sendPage(
    reply,
    alone(area, 'Enter your code', [
      content,
      siteOf(request, publicUrl) && passkeySignInForm(next),
      backToSignIn(),
    ]),
    status,
  );
}

/** What was proved, and what the audit trail says of it beside the session's start. */
export interface SignInProof extends SessionProof {
  noted?: object;
}

/** Starts a session for a person who has proved who they are, and mails them when the browser is new. */
export async function completeSignIn(
  deps: Omit<SignInDeps, 'db' | 'factors' | 'publicUrl'>,
  request: FastifyRequest,
  reply: FastifyReply,
  person: SignInPerson,
  next: string | undefined,
  proof: SignInProof,
): Promise<FastifyReply> {
  if (proof.identityId === undefined && (await deps.oidc.governs(person.id)))
    return sendPage(reply, providerOnlyPage(deps), 403);
  const { cookie, 'user-agent': userAgent = null } = request.headers;
  // The session that this browser had ends here, so that one person never inherits another's.
  await deps.sessions.end(cookie);
  const device = await deps.sessions.knowDevice(person.email, cookie);
  const session = await deps.sessions.start(person.id, { source: request.ip, userAgent }, proof);
  await deps.people.noteOwn(person.id, 'session.start', originOf(request), proof.noted);
  // Beside cookies that the caller has set.
  for (const each of device === null ? [session] : [session, device]) reply.header('set-cookie', each);
  if (device !== null) {
    const from = { browser: browserName(userAgent), source: request.ip, atMs: deps.clock.nowMs() };
    deps.post.sendLater(async () => newBrowserMail(person, from, deps.post.linkTo('/reset-password')));
  }
  return reply.redirect(isLocalPath(next) ? next : await deps.people.landingOf(person.id), 303);
}

/** A person whom the provider made is let in by it alone: what its groups give must end there too. */
const providerOnlyPage = ({ area, oidc }: Pick<SignInDeps, 'area' | 'oidc'>) =>
  alone(area, 'Sign in at your provider', [
    html`<p>This account was made by ${oidc.label}, and is signed in there only.</p>`,
    html`<div class="form-buttons">${link('/sign-in/oidc', `Sign in at ${oidc.label}`, { kind: 'primary' })}</div>`,
  ]);
