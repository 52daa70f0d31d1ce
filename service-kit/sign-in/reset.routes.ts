/**
 * `/reset-password` mails a link to the owner of an address; `/set-password/{secret}` is where such a link leads.
 *
 * The answer to a request is the same for every address, and so is its time: the look-up and the mail come after it.
 */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { type App, HttpError, originOf, sourceBucket } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { otherSiteFault } from '#service-kit/sessions/index.ts';
import type { SignInDeps } from './deps.ts';
import { passwordChangedMail } from './mails.ts';
import { requestReset, requestsPerSourceMax } from './request-reset.ts';
import { linkGonePage, resetPage, resetSentPage, setPasswordPage } from './reset.page.ts';

const ResetForm = Type.Object({ email: Type.String({ maxLength: 320 }) });
const PasswordForm = Type.Object({ password: Type.String({ maxLength: 1_000 }) });
const Params = Type.Object({ secret: Type.String({ maxLength: 100 }) });
const hidden = { hide: true } as object;

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
