/**
 * Linking one's own account with the provider's; each console registers this below its guard, beside the account's pages.
 *
 * The browser comes back from the provider with an account that anyone may have begun to link, so a form with the session's
 * token and a fresh proof makes the link, and names what is linked.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  askButton,
  type Content,
  form,
  type Html,
  hiddenField,
  html,
  link,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { readCookie, type Sessions } from '#service-kit/sessions/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { cookieName, sendToProvider } from './oidc.routes.ts';
import type { Oidc } from './oidc.ts';

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
