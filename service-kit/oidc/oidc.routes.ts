/**
 * Signing in at the provider: `/sign-in/oidc` sends a browser there, `/sign-in/oidc/confirm` does so for a sensitive change,
 * and the provider sends it back to `/sign-in/oidc/answer`.
 *
 * The answer counts in the browser that asked alone, which has a cookie for that: no stranger can sign a person in to the
 * stranger's account. Nonce and PKCE verifier are derived from that cookie and the state, so no table holds them.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { AuditActor } from '#service-kit/audit/index.ts';
import { type App, hidden, originOf, sourceBucket } from '#service-kit/http/index.ts';
import {
  askButton,
  type Content,
  form,
  type Html,
  hiddenField,
  html,
  isLocalPath,
  link,
  pageHeader,
  section,
  sendPage,
  withQuery,
} from '#service-kit/pages/index.ts';
import { readCookie, type Sessions } from '#service-kit/sessions/index.ts';
import { alone, completeSignIn, type SignInDeps, type SignInPerson } from '#service-kit/sign-in/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Oidc, Refusal } from './oidc.ts';
import type { Purpose } from './store.ts';

export interface OidcRouteDeps
  extends Pick<SignInDeps, 'area' | 'people' | 'sessions' | 'post' | 'clock' | 'publicUrl'> {
  oidc: Oidc;
  /** The console's first page. */
  home: string;
  /** The console requires a second factor. */
  requireSecondFactor: boolean;
}

const answerPath = '/sign-in/oidc/answer';
/** Of one source in ten minutes; each is a row and two requests to the provider. */
const attemptsMax = 100;
const cookieSeconds = 600;

export function registerOidc(app: App, deps: OidcRouteDeps): void {
  const { oidc, sessions } = deps;
  const Query = Type.Object({ next: Type.Optional(Type.String()) });
  app.get('/sign-in/oidc', { schema: { ...hidden, querystring: Query } }, async (request, reply) => {
    const { next } = request.query;
    return sendToProvider(deps, request, reply, {
      purpose: 'sign_in',
      next: isLocalPath(next) ? next : deps.home,
    });
  });

  app.get('/sign-in/oidc/confirm', { schema: hidden }, async (request, reply) => {
    const session = await sessions.read(request.headers.cookie);
    if (session === null || session.identityId === null) return reply.redirect('/sign-in', 303);
    const { personId } = session;
    return sendToProvider(deps, request, reply, { purpose: 'confirm', next: deps.home, personId });
  });

  app.get(answerPath, { schema: hidden }, async (request, reply) => {
    if (oidc.label === null) throw noSuchPage();
    if (!(await countAttempt(sessions, request))) return refuse(deps, reply, 'too_many');
    const secret = readCookie(request.headers.cookie, cookieName(sessions));
    const found = await oidc.finish({
      ...{
        secret,
        redirectUri: redirectUriOf(deps, request),
        query: new URL(request.url, 'http://localhost').search.slice(1),
      },
      actor: { kind: 'system', job: 'oidc', origin: originOf(request) },
    });
    if ('refused' in found) return refuse(deps, reply, found.refused);
    if (found.purpose === 'link') return reply.redirect(withQuery(found.next, { ticket: found.ticket }), 303);
    const { hasSecondFactor, authenticatedAtMs } = found.proved;
    if (deps.requireSecondFactor && !hasSecondFactor) return refuse(deps, reply, 'no_second_factor');
    if (found.purpose === 'confirm') return confirm(deps, request, reply, found.personId, hasSecondFactor);
    const { identity, person, next } = found;
    const noted = { oidc: { issuer: oidc.label, email: identity.email, hasSecondFactor } };
    const proof = { hasSecondFactor, authenticatedAtMs, identityId: identity.id, noted };
    return completeSignIn(deps, request, reply, person, next, proof);
  });
}

/** A session of this very person gets a new secret; the form waits in another tab. */
async function confirm(
  deps: OidcRouteDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  personId: number,
  hasSecondFactor: boolean,
): Promise<FastifyReply> {
  const { cookie } = request.headers;
  const session = await deps.sessions.read(cookie);
  if (session?.personId !== personId || session.identityId === null)
    return refuse(deps, reply, 'other_person');
  const renewed = await deps.sessions.confirm(cookie, hasSecondFactor);
  if (renewed !== null) reply.header('set-cookie', renewed);
  return sendPage(
    reply,
    alone(deps.area, 'Confirmed', [
      html`<p>Go back to the tab with your change and continue there. You can close this one.</p>`,
      html`<p>${link(deps.home, 'Go to the first page')}</p>`,
    ]),
  );
}

/** Begins at the provider; for routes behind a guard too. */
async function sendToProvider(
  deps: Pick<OidcRouteDeps, 'area' | 'sessions' | 'publicUrl' | 'oidc'>,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: { purpose: Purpose; next: string; personId?: number },
): Promise<FastifyReply> {
  const { oidc, sessions } = deps;
  if (oidc.label === null) throw noSuchPage();
  if (!(await countAttempt(sessions, request))) return refuse(deps, reply, 'too_many');
  // Another tab may be on its way with the same secret.
  const name = cookieName(sessions);
  const secret = readCookie(request.headers.cookie, name) ?? randomBytes(32).toString('base64url');
  const begun = await oidc.begin({ ...asked, secret, redirectUri: redirectUriOf(deps, request) });
  if ('refused' in begun) return refuse(deps, reply, begun.refused);
  // Lax: the browser sends it when the provider sends it back.
  const secure = name.startsWith('__Host-') ? '; Secure' : '';
  const cookie = `${name}=${secret}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${cookieSeconds}`;
  return reply.header('set-cookie', cookie).redirect(begun.href, 303);
}

const cookieName = ({ cookieName: name }: Pick<Sessions, 'cookieName'>) => `${name}_oidc`;

const countAttempt = (sessions: Sessions, request: FastifyRequest) =>
  sessions.countUse(`oidc:${sourceBucket(request.ip)}`, attemptsMax);

const redirectUriOf = ({ publicUrl }: Pick<OidcRouteDeps, 'publicUrl'>, request: FastifyRequest) =>
  `${publicUrl ?? `${request.protocol}://${request.host}`}${answerPath}`;

/** What a person reads who was not signed in: why, and what to do now. */
const again = 'Begin again, or sign in here with your password.';
const refusals: Readonly<Record<Refusal, { status: number; title: string; text: string }>> = {
  provider_down: {
    ...{ status: 503, title: 'The sign-in provider can’t be reached' },
    text: 'It does not answer, or answers with an error. Try again in a minute. People with a password can sign in here with it meanwhile.',
  },
  declined: { status: 403, title: 'The provider did not sign you in', text: again },
  not_genuine: {
    ...{ status: 403, title: 'This sign-in is not valid' },
    text: `The answer is not what this program asked for, or not signed by the provider. ${again} If it happens again, an operator has to check SVC_OIDC_ISSUER and the client.`,
  },
  not_confirmed: {
    ...{ status: 403, title: 'The provider did not ask who you are' },
    text: 'A sensitive change needs a fresh sign-in there, with a second factor where one is asked for. Nothing was changed. Try again.',
  },
  other_browser: {
    ...{ status: 403, title: 'This sign-in was not begun here' },
    text: `It must begin and end in the same browser, within ten minutes, and works once. ${again}`,
  },
  no_group: {
    ...{ status: 403, title: 'Your groups give no access' },
    text: 'None of your groups at the provider has a role here. Ask who manages them. Your sessions here are ended.',
  },
  not_linked: {
    ...{ status: 403, title: 'Your account here is not linked yet' },
    text: 'An account with your email address exists here. Sign in with its password once, and link the two under Your account. Accounts aren’t linked by email address.',
  },
  no_email: {
    ...{ status: 403, title: 'The provider named no email address' },
    text: 'A new account needs one. An operator can ask for it by SVC_OIDC_SCOPE.',
  },
  no_access: {
    ...{ status: 403, title: 'Your account here has no access' },
    text: 'It was deactivated. Ask another operator of this program.',
  },
  last_operator: {
    ...{ status: 403, title: 'You are the last operator' },
    text: 'Your groups let you read only, and no other person may change things here. Make another person an operator first.',
  },
  other_person: {
    ...{ status: 403, title: 'This is another person’s account' },
    text: 'The provider signed in an account that belongs to someone else here. Nothing was changed. Sign out there and try again.',
  },
  no_second_factor: {
    ...{ status: 403, title: 'A second factor is required' },
    text: 'You signed in to the provider without one. Set one up there, then sign in again.',
  },
  too_many: {
    ...{ status: 429, title: 'Too many sign-ins' },
    text: 'Wait ten minutes, then try again, or sign in here with your password.',
  },
};

function refuse(deps: Pick<OidcRouteDeps, 'area'>, reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { status, title, text } = refusals[refusal];
  const page = alone(deps.area, title, [
    html`<p>${text}</p>`,
    html`<div class="form-buttons">${link('/sign-in?local=1', 'Back to sign-in', { kind: 'primary' })}</div>`,
  ]);
  return sendPage(reply, page, status);
}

// Linking one's own account with the provider's; each console registers this below its guard, beside the account's pages.
//
// The browser comes back from the provider with an account that anyone may have begun to link, so a form with the session's
// token and a fresh proof makes the link, and names what is linked.

export interface OidcAccountOptions {
  /** As pages call the program. */
  area: string;
  /** The path of the account's pages below the scope's prefix, such as `/account`, and the whole one. */
  path: string;
  base: string;
  oidc: Oidc;
  sessions: Sessions;
  publicUrl: string | null;
  /** The person that the guard let in. */
  visitorOf: (request: FastifyRequest) => { actor: AuditActor; person: SignInPerson; csrfToken: string };
  send: (
    request: FastifyRequest,
    reply: FastifyReply,
    page: { title: string; content: Content; status: number },
  ) => FastifyReply;
}

const Ticket = Type.Object({ ticket: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }) });

export function registerOidcAccount(scope: App, options: OidcAccountOptions): void {
  const { path, base, oidc, sessions, visitorOf } = options;
  const config = { isOwn: true };
  const secretOf = (request: FastifyRequest) =>
    readCookie(request.headers.cookie, cookieName(sessions)) ?? '';

  scope.get(`${path}/oidc/begin`, (request, reply) => {
    const { id: personId } = visitorOf(request).person;
    return sendToProvider(options, request, reply, { purpose: 'link', next: `${base}/oidc/link`, personId });
  });

  scope.get(`${path}/oidc/link`, { schema: { querystring: Ticket } }, async (request, reply) => {
    const { person, csrfToken } = visitorOf(request);
    const { ticket } = request.query;
    const pending = await oidc.findPending(person.id, secretOf(request), ticket);
    if (pending === null) throw noSuchPage();
    const content = [
      pageHeader({ title: 'Link your account' }),
      html`<p>Your account ${person.email} will be signed in by ${pending.email || 'the account'} at ${oidc.label}.</p>`,
      form({ action: `${base}/oidc/link`, csrfToken, submit: 'Link the accounts' }, [
        hiddenField('ticket', ticket),
      ]),
      html`<p>${link(`${base}/`, 'Do not link')}</p>`,
    ];
    return options.send(request, reply, { title: 'Link your account', content, status: 200 });
  });

  scope.post(`${path}/oidc/link`, { config, schema: { body: Ticket } }, async (request, reply) => {
    const { actor, person } = visitorOf(request);
    const isLinked = await oidc.link(actor, person.id, secretOf(request), request.body.ticket);
    if (isLinked === null) throw noSuchPage();
    return reply.redirect(`${base}/?done=${isLinked ? 'linked' : 'not_linked'}`, 303);
  });

  scope.post(`${path}/oidc/unlink`, { config }, async (request, reply) => {
    const { actor, person } = visitorOf(request);
    await oidc.unlink(actor, person.id);
    return reply.redirect(`${base}/?done=unlinked`, 303);
  });
}

/** The part of the account's page; nothing where there is no provider. */
export async function oidcSection(
  oidc: Oidc,
  base: string,
  { id, csrfToken }: { id: number; csrfToken: string },
): Promise<Html | ''> {
  if (oidc.label === null) return '';
  const linked = await oidc.findLinked(id);
  const unlink = { id: 'unlink-oidc', action: `${base}/oidc/unlink`, csrfToken };
  const state =
    linked === null
      ? html`<p>${link(`${base}/oidc/begin`, `Link an account at ${oidc.label}`, { kind: 'button' })}</p>`
      : html`<p>Linked with ${linked.email || 'an account'}. ${
          linked.isManaged
            ? 'This account has no other way to sign in.'
            : askButton(
                { ...unlink, label: 'Unlink', title: 'Unlink the accounts?' },
                'You sign in with your password from then on. Sessions that were begun at the provider end.',
              )
        }</p>`;
  return section({ id: 'provider', title: `Sign-in at ${oidc.label}` }, state);
}
