/**
 * `/join/{secret}`: where an invitation leads. Whoever is new sets a password, whoever is known gives theirs, and both
 * are signed in. The link itself is what is secret, so no page of it is kept or named to another site.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts, OpenInvitation } from '#operations/accounts/index.ts';
import { type App, HttpError, originOf, sourceBucket } from '#service-kit/http/index.ts';
import {
  bareDocument,
  brand,
  field,
  form,
  type Html,
  html,
  link,
  notice,
  sendPage,
} from '#service-kit/pages/index.ts';
import { otherSiteFault, type Sessions } from '#service-kit/sessions/index.ts';

export interface JoinDeps {
  accounts: Accounts;
  sessions: Sessions;
}

const Params = Type.Object({ secret: Type.String({ maxLength: 100 }) });
const JoinForm = Type.Object({
  name: Type.Optional(Type.String({ maxLength: 200 })),
  password: Type.String({ maxLength: 1_000 }),
});
const hidden = { hide: true } as object;

export function registerJoin(app: App, deps: JoinDeps): void {
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
        return show(reply, request, invitation, 429, 'Too many failed attempts. Wait ten minutes.');
      try {
        const { name = '', password } = request.body;
        const person = await deps.accounts.acceptInvitation(secret, { name, password }, originOf(request));
        await attempt.giveBack();
        await deps.sessions.end(request.headers.cookie);
        reply.header('set-cookie', await deps.sessions.start(person.id));
        return reply.redirect('/client/', 303);
      } catch (error) {
        if (!(error instanceof CodedError) || error.code !== 'accounts.invalid') throw error;
        // Only whoever has a password can have theirs guessed.
        if (!invitation.isKnownPerson) await attempt.giveBack();
        return show(reply, request, invitation, 422, error.message);
      }
    },
  );
}

function gone(reply: FastifyReply): FastifyReply {
  const content = notice({
    tone: 'warn',
    title: 'This invitation does not work any more',
    text: 'It was used, taken back, or is older than seven days. Ask the owner of the organization for a new one.',
    actions: link('/sign-in', 'Sign in', { kind: 'button' }),
  });
  return sendPage(reply, frame(content), 404);
}

function show(
  reply: FastifyReply,
  request: FastifyRequest,
  invitation: OpenInvitation,
  status: number,
  error?: string,
): FastifyReply {
  const { isKnownPerson, email, organizationName } = invitation;
  const content = html`<h1>Join ${organizationName}</h1><p class="hint">${
    isKnownPerson
      ? `${email} has an account already. Give its password to join.`
      : `You were invited as ${email}. Set a password of at least ten characters.`
  }</p>${form(
    { action: request.url.split('?')[0]!, csrfToken: null, submit: `Join ${organizationName}`, error },
    [
      !isKnownPerson &&
        field({ name: 'name', label: 'Your name', required: true, maxLength: 120, autocomplete: 'name' }),
      field({
        kind: 'password',
        name: 'password',
        label: isKnownPerson ? 'Password' : 'New password',
        required: true,
        autocomplete: isKnownPerson ? 'current-password' : 'new-password',
      }),
    ],
  )}`;
  return sendPage(reply, frame(content), status);
}

function frame(content: Html): Html {
  return bareDocument(
    { title: 'Join · Virtual servers' },
    html`<main class="alone">${brand('Virtual servers', '/')}<div class="card">${content}</div></main>`,
  );
}
