/**
 * `/join/{secret}`: where a mailed invitation leads. The page is the same for every address; a reader who has a password
 * gives it, every other reader sets one. The link itself is the secret, so no page of it is kept or named to another
 * site.
 */

import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Invitation } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import { type App, HttpError, hidden, originOf, sourceBucket } from '#service-kit/http/index.ts';
import { alonePage, banner, field, form, type Html, html, link, sendPage } from '#service-kit/pages/index.ts';
import { otherSiteFault } from '#service-kit/sessions/index.ts';
import { proceedSignIn } from '#service-kit/sign-in/index.ts';

const Params = Type.Object({ secret: Type.String({ maxLength: 100 }) });
const JoinForm = Type.Object({
  name: Type.Optional(Type.String({ maxLength: 200 })),
  password: Type.String({ maxLength: 1_000 }),
});

export function registerJoin(app: App, deps: Features): void {
  app.get('/join/:secret', { schema: { ...hidden, params: Params } }, async (request, reply) => {
    const invitation = await deps.accounts.findInvitation(request.params.secret);
    return invitation === null ? gone(reply) : show(reply, request, invitation, 200);
  });

  app.post(
    '/join/:secret',
    { schema: { ...hidden, params: Params, body: JoinForm } },
    async (request, reply) => {
      if (otherSiteFault(request) !== null)
        throw new HttpError(403, { code: 'forbidden', message: 'The request came from another site.' });
      const { secret } = request.params;
      const invitation = await deps.accounts.findInvitation(secret);
      if (invitation === null) return gone(reply);
      const source = sourceBucket(request.ip);
      const attempt = await deps.sessions.beginAttempt(invitation.email, source, request.headers.cookie);
      if (attempt === null)
        return show(
          reply,
          request,
          invitation,
          429,
          new Error('Too many failed attempts. Wait ten minutes.'),
        );
      try {
        const { name = '', password } = request.body;
        const person = await deps.accounts.acceptInvitation(secret, { name, password }, originOf(request));
        await attempt.giveBack();
        return await proceedSignIn(
          { ...deps, people: deps.accounts.people, area: 'Virtual servers' },
          request,
          reply,
          person,
          '/client/',
        );
      } catch (error) {
        if (!(error instanceof CodedError) || error.code !== 'accounts.invalid') throw error;
        if (error.details.isGuess !== true) await attempt.giveBack();
        return show(reply, request, invitation, 422, error);
      }
    },
  );
}

function gone(reply: FastifyReply): FastifyReply {
  const content = banner({
    tone: 'warn',
    title: 'This invitation is not valid',
    text: 'It was used, revoked, or has expired. Ask the owner of the organization for a new one.',
    actions: link('/sign-in', 'Sign in', { kind: 'button' }),
  });
  return sendPage(reply, frame(content), 404);
}

function show(
  reply: FastifyReply,
  request: FastifyRequest,
  invitation: Invitation,
  status: number,
  fault?: Error,
): FastifyReply {
  const { email, organizationName } = invitation;
  const isPassword = fault instanceof CodedError && fault.details.field === 'password';
  const content = html`<h1>Join ${organizationName}</h1><p class="hint">You were invited as ${email}.</p>${form(
    {
      action: request.url.split('?')[0]!,
      csrfToken: null,
      submit: `Join ${organizationName}`,
      error: isPassword ? undefined : fault?.message,
    },
    [
      field({
        name: 'name',
        label: 'Your name',
        hint: 'Ignored if you already have an account.',
        maxLength: 120,
        autocomplete: 'name',
      }),
      html`<input type="hidden" name="username" autocomplete="username" value="${email}">`,
      field({
        kind: 'password',
        name: 'password',
        label: 'Password',
        hint: 'The password of your account. No account yet? Choose one of at least 12 characters.',
        required: true,
        autocomplete: 'current-password',
        error: isPassword ? fault.message : undefined,
      }),
    ],
  )}<p>${link('/reset-password', 'Forgot your password?')}</p>`;
  return sendPage(reply, frame(content), status);
}

const frame = (content: Html): Html => alonePage({ area: 'Virtual servers', title: 'Join' }, content);
