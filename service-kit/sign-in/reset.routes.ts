/**
 * `/reset-password` mails a link to the owner of an address; `/set-password/{secret}` is where such a link leads.
 *
 * The answer to a request is the same for every address, and so is its time: the look-up and the mail come after it.
 */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { createAccessLink } from '#service-kit/access-links/index.ts';
import { type App, HttpError, hidden, originOf, sourceBucket } from '#service-kit/http/index.ts';
import type { Mail, Post } from '#service-kit/mail/index.ts';
import {
  alonePage,
  banner,
  type Content,
  field,
  form,
  type Html,
  html,
  link,
  sendPage,
} from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { foldEmail, otherSiteFault, passwordLengthMin, type Sessions } from '#service-kit/sessions/index.ts';
import type { SignInDeps } from './index.ts';
import { passwordChangedMail, resetMail } from './mails.ts';
import type { SignInPeople } from './people.ts';

const ResetForm = Type.Object({ email: Type.String({ maxLength: 320 }) });
const PasswordForm = Type.Object({ password: Type.String({ maxLength: 1_000 }) });
const Params = Type.Object({ secret: Type.String({ maxLength: 100 }) });

export function registerReset(app: App, deps: SignInDeps): void {
  const { area, people, sessions, post } = deps;

  app.get('/reset-password', { schema: hidden }, async (_request, reply) =>
    sendPage(reply, resetPage({ area, canSend: post.canSend })),
  );

  app.post('/reset-password', { schema: { ...hidden, body: ResetForm } }, async (request, reply) => {
    requireOwnPage(otherSiteFault(request));
    const { email } = request.body;
    if (!post.canSend) return sendPage(reply, resetPage({ area, canSend: false }), 503);
    const source = sourceBucket(request.ip);
    if (!(await sessions.countUse(`reset-source:${source}`, requestsPerSourceMax))) {
      const error = 'Too many requests from your address. Wait ten minutes, then try again.';
      return sendPage(reply, resetPage({ area, canSend: true, email, error }), 429);
    }
    post.sendLater(() => requestReset(deps, email));
    return sendPage(reply, resetSentPage({ area }));
  });

  app.get('/set-password/:secret', { schema: { ...hidden, params: Params } }, async (request, reply) => {
    const { secret } = request.params;
    const person = await people.findByLink(secret);
    if (person === null) return gone(reply, area);
    return sendPage(reply, setPasswordPage({ area, secret, email: person.email }));
  });

  app.post(
    '/set-password/:secret',
    { schema: { ...hidden, params: Params, body: PasswordForm } },
    async (request, reply) => {
      requireOwnPage(otherSiteFault(request));
      const { secret } = request.params;
      const person = await people.findByLink(secret);
      if (person === null) return gone(reply, area);
      try {
        if ((await people.setPasswordByLink(secret, request.body.password, originOf(request))) === null)
          return gone(reply, area);
      } catch (error) {
        if (!(error instanceof CodedError) || !error.code.endsWith('.invalid')) throw error;
        const page = setPasswordPage({ area, secret, email: person.email, error: error.message });
        return sendPage(reply, page, 422);
      }
      const nowMs = deps.clock.nowMs();
      post.sendLater(async () => passwordChangedMail(person, post.linkTo('/reset-password'), nowMs));
      // This browser's reader has the mailbox: failures of strangers don't keep them from signing in with it.
      const device = await sessions.knowDevice(person.email, undefined);
      if (device !== null) reply.header('set-cookie', device);
      return reply.redirect('/sign-in?done=password', 303);
    },
  );
}

function requireOwnPage(fault: string | null): void {
  if (fault === null) return;
  const message = `Nothing was changed: ${fault}. Reload the page and try again.`;
  throw new HttpError(403, { code: 'forbidden', message });
}

function gone(reply: FastifyReply, area: string): FastifyReply {
  return sendPage(reply, linkGonePage({ area }), 404);
}

/** Requests of one source in ten minutes. */
const requestsPerSourceMax = 20;
/** Mails to one address in ten minutes, so that strangers can't fill a mailbox. */
const mailsPerAddressMax = 3;
const linkHours = 1;

/** The mail with a link for the person of this address; null when there is none, or when they were mailed enough. */
async function requestReset(
  deps: { db: () => Queryable; people: SignInPeople; sessions: Sessions; post: Post },
  email: string,
): Promise<Mail | null> {
  const person = await deps.people.findByEmail(foldEmail(email));
  if (person === null) return null;
  if (!(await deps.sessions.countUse(`reset-person:${person.id}`, mailsPerAddressMax))) return null;
  const secret = await createAccessLink(deps.db(), person.id, linkHours);
  return resetMail(person, deps.post.linkTo(`/set-password/${secret}`));
}

interface PageOptions {
  area: string;
}

/** The pages for a forgotten password, and for a first one. */
export const passwordHint = `At least ${passwordLengthMin} characters. Several words make a good one.`;

function resetPage(options: PageOptions & { canSend: boolean; email?: string; error?: string }): Html {
  const { area, canSend, email, error } = options;
  const content = canSend
    ? [
        html`<p class="hint">Give the email address of your account. We email you a link to set a new password.</p>`,
        form({ action: '/reset-password', csrfToken: null, submit: 'Email me a link', error }, [
          field({
            kind: 'email',
            name: 'email',
            label: 'Email',
            required: true,
            maxLength: 254,
            autocomplete: 'username',
            value: email,
            autofocus: true,
          }),
        ]),
      ]
    : banner({
        tone: 'warn',
        title: 'Mail is not available',
        text: 'This installation has no mail server. Ask support for a link to set a new password.',
      });
  return alone(area, 'Reset your password', [content, backToSignIn()]);
}

function resetSentPage({ area }: PageOptions): Html {
  return alone(area, 'Check your mailbox', [
    html`<p>If this address has an account, a link to set a new password is on its way. It works once, for one
      hour.</p><p class="hint">No mail after some minutes? Check the address and the spam folder.</p>`,
    backToSignIn(),
  ]);
}

function setPasswordPage(options: PageOptions & { secret: string; email: string; error?: string }): Html {
  const { area, secret, email, error } = options;
  return alone(area, 'Set your password', [
    html`<p class="hint">For ${email}. Your sessions in all browsers end.</p>`,
    form({ action: `/set-password/${secret}`, csrfToken: null, submit: 'Set password' }, [
      // Password managers look for whose password this is.
      html`<input type="hidden" name="username" autocomplete="username" value="${email}">`,
      field({
        kind: 'password',
        name: 'password',
        label: 'New password',
        hint: passwordHint,
        required: true,
        autocomplete: 'new-password',
        autofocus: true,
        error,
      }),
    ]),
  ]);
}

function linkGonePage({ area }: PageOptions): Html {
  return alone(area, 'This link is not valid', [
    html`<p>It was used, replaced by a newer one, or has expired.</p>`,
    html`<div class="form-buttons">${link('/reset-password', 'Request a new link', { kind: 'primary' })}${link('/sign-in', 'Sign in', { kind: 'button' })}</div>`,
  ]);
}

/** The way out of a page that stands alone. */
export const backToSignIn = () => html`<p>${link('/sign-in', 'Back to sign-in')}</p>`;

/** A page with one card. */
export function alone(area: string, title: string, content: Content): Html {
  return alonePage({ area, title }, html`<h1>${title}</h1>${content}`);
}
