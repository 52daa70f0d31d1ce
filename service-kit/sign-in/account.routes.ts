/**
 * One's own account: password and sessions. Each console and the portal registers these routes below its own guard, so
 * every form here carries the session's token, and read-only people may use them too.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { type App, HttpError, originOf, sourceBucket } from '#service-kit/http/index.ts';
import { accountSections } from './account.page.ts';
import type { AccountPagesOptions } from './account-options.ts';
import { factorSection } from './factor-pages.ts';
import { registerFactors } from './factors.routes.ts';
import { passwordChangedMail } from './mails.ts';
import { siteOf } from './passkey-button.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route changes only what belongs to the person who asks, such as their password; read-only people may. */
    isOwn?: boolean;
  }
}

const PasswordForm = Type.Object({
  current: Type.String({ maxLength: 1_000 }),
  next: Type.String({ maxLength: 1_000 }),
});
const SessionForm = Type.Object({ session: Type.String({ pattern: '^[0-9a-f-]{36}$' }) });
const Query = Type.Object({ done: Type.Optional(Type.String()) });

const outcomes: Readonly<Record<string, string>> = {
  password: 'Your password is changed; your other sessions are ended.',
  session: 'The session is ended.',
  sessions: 'Your other sessions are ended.',
  app: 'The authenticator app is in use.',
  passkey: 'The passkey is added.',
  passkey_removed: 'The passkey is removed.',
  app_removed: 'The authenticator app is removed.',
};

interface Shown {
  done?: string | undefined;
  passwordFault?: { field: string; message: string };
}

export function registerAccountPages(app: App, options: AccountPagesOptions): void {
  const { path, base, sessions } = options;
  const config = { isOwn: true };

  app.get(`${path}/`, { schema: { querystring: Query } }, (request, reply) =>
    show(options, request, reply, { done: request.query.done }),
  );

  app.post(`${path}/password`, { config, schema: { body: PasswordForm } }, (request, reply) =>
    changePassword(options, request, reply, request.body),
  );

  app.post(`${path}/sessions/end`, { config, schema: { body: SessionForm } }, async (request, reply) => {
    const person = options.personOf(request);
    if (!(await sessions.endOne(person.id, request.body.session)))
      throw new HttpError(404, { code: 'not_found', message: 'This session has ended already.' });
    await options.people.noteOwn(person.id, 'session.end_one', originOf(request));
    return reply.redirect(`${base}/?done=session`, 303);
  });

  app.post(`${path}/sessions/end-others`, { config }, async (request, reply) => {
    const person = options.personOf(request);
    await sessions.endOthers(person.id, request.headers.cookie);
    await options.people.noteOwn(person.id, 'session.end_others', originOf(request));
    return reply.redirect(`${base}/?done=sessions`, 303);
  });

  registerFactors(app, options);
}

/** Guesses count as failed sign-ins: a borrowed session must not find out the password. */
async function changePassword(
  options: AccountPagesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  given: { current: string; next: string },
): Promise<FastifyReply> {
  const { sessions, post, clock } = options;
  const person = options.personOf(request);
  const { cookie } = request.headers;
  const attempt = await sessions.beginAttempt(person.email, sourceBucket(request.ip), cookie);
  if (attempt === null) {
    const message = 'Too many failed attempts. Wait ten minutes, then try again.';
    return show(options, request, reply, { passwordFault: { field: 'current', message } }, 429);
  }
  try {
    await options.changePassword(request, given);
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    const isGuess = error.details.field === 'current';
    if (!isGuess) await attempt.giveBack();
    const passwordFault = { field: isGuess ? 'current' : 'next', message: error.message };
    return show(options, request, reply, { passwordFault }, 422);
  }
  await attempt.giveBack();
  await sessions.endOthers(person.id, cookie);
  const nowMs = clock.nowMs();
  post.sendLater(async () => passwordChangedMail(person, post.linkTo('/reset-password'), nowMs));
  return reply.redirect(`${options.base}/?done=password`, 303);
}

async function show(
  options: AccountPagesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: Shown,
  status = 200,
): Promise<FastifyReply> {
  const person = options.personOf(request);
  const [sessions, state, passkeys] = await Promise.all([
    options.sessions.list(person.id, request.headers.cookie),
    options.factors.stateOf(person.id),
    options.factors.listPasskeys(person.id),
  ]);
  const content = accountSections({
    base: options.base,
    person,
    sessions,
    factors: factorSection({
      base: options.base,
      csrfToken: person.csrfToken,
      state,
      passkeys,
      canAddPasskey: siteOf(request, options.publicUrl) !== null,
      nowMs: options.clock.nowMs(),
      isRequired: options.isFactorRequired(request),
    }),
    nowMs: options.clock.nowMs(),
    passwordFault: shown.passwordFault,
  });
  const text = outcomes[shown.done ?? ''];
  const outcome = text === undefined ? {} : { toast: text };
  return options.send(request, reply, { title: 'Your account', content, status, ...outcome });
}
