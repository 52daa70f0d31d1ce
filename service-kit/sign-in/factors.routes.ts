/** Setting up and removing one's own second factors, below the page "Your account". */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type App, HttpError, originOf } from '#service-kit/http/index.ts';
import type { Content } from '#service-kit/pages/index.ts';
import { browserName } from '#service-kit/sessions/index.ts';
import type { AccountPagesOptions } from './account-options.ts';
import { newAppPage, newPasskeyPage, recoveryCodesPage } from './factor-pages.ts';
import { factorsChangedMail } from './mails.ts';
import { siteOf } from './passkey-button.ts';
import type { OwnOperation, SignInPerson } from './people.ts';

const CodeForm = Type.Object({ code: Type.String({ maxLength: 100 }) });
const PasskeyForm = Type.Object({
  name: Type.String({ maxLength: 80 }),
  passkey: Type.String({ maxLength: 20_000 }),
});
const RemoveForm = Type.Object({ passkey: Type.String({ maxLength: 2_000 }) });
const config = { isOwn: true };

export function registerFactors(app: App, options: AccountPagesOptions): void {
  const { path, base, factors } = options;
  const send = (
    request: FastifyRequest,
    reply: FastifyReply,
    title: string,
    content: Content,
    status = 200,
  ) => options.send(request, reply, { title, content, status });

  app.post(`${path}/app/new`, { config }, async (request, reply) => {
    const person = options.personOf(request);
    const made = await factors.beginTotp(person.id, person.email);
    if (made === null) throw conflict('You have an authenticator app already. Remove it first.');
    return send(
      request,
      reply,
      'Authenticator app',
      newAppPage({ base, csrfToken: person.csrfToken, ...made }),
    );
  });

  app.post(`${path}/app/confirm`, { config, schema: { body: CodeForm } }, (request, reply) =>
    confirmApp(options, request, reply, request.body.code),
  );

  app.post(`${path}/app/remove`, { config }, async (request, reply) => {
    const person = options.personOf(request);
    const state = await factors.stateOf(person.id);
    if (options.isFactorRequired(request) && state.passkeys === 0)
      throw conflict('A second factor is required here. Add another one before you remove this one.');
    if (!(await factors.removeTotp(person.id))) throw conflict('You have no authenticator app.');
    await tell(options, request, person, 'second_factor.remove_app', 'The authenticator app was removed');
    return reply.redirect(`${base}/?done=app_removed`, 303);
  });

  app.post(`${path}/passkeys/new`, { config }, (request, reply) => showNewPasskey(options, request, reply));

  app.post(`${path}/passkeys`, { config, schema: { body: PasskeyForm } }, (request, reply) =>
    addPasskey(options, request, reply, request.body),
  );

  app.post(`${path}/passkeys/remove`, { config, schema: { body: RemoveForm } }, async (request, reply) => {
    const person = options.personOf(request);
    const state = await factors.stateOf(person.id);
    if (options.isFactorRequired(request) && !state.hasTotp && state.passkeys === 1)
      throw conflict('A second factor is required here. Add another one before you remove this one.');
    if (!(await factors.removePasskey(person.id, request.body.passkey)))
      throw conflict('You have no such passkey.');
    await tell(options, request, person, 'second_factor.remove_passkey', 'A passkey was removed');
    return reply.redirect(`${base}/?done=passkey_removed`, 303);
  });

  app.post(`${path}/recovery`, { config }, async (request, reply) => {
    const person = options.personOf(request);
    if (!(await factors.stateOf(person.id)).hasAny) throw conflict('Set up a second factor first.');
    const codes = await factors.renewRecoveryCodes(person.id);
    const operation = 'second_factor.renew_recovery_codes';
    await tell(
      options,
      request,
      person,
      operation,
      'New recovery codes were made; the old ones stopped working',
    );
    return send(request, reply, 'Recovery codes', recoveryCodesPage({ base, codes }));
  });
}

async function showNewPasskey(
  options: AccountPagesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  error?: string,
): Promise<FastifyReply> {
  const { base, factors } = options;
  const person = options.personOf(request);
  const site = siteOf(request, options.publicUrl);
  if (site === null) throw conflict('Passkeys need a host name. Open this page at its name.');
  const json = JSON.stringify(await factors.beginPasskey(site, person));
  const name = browserName(request.headers['user-agent'] ?? null);
  const content = newPasskeyPage({ base, csrfToken: person.csrfToken, json, name, error });
  return options.send(request, reply, { title: 'Passkey', content, status: error === undefined ? 200 : 422 });
}

async function addPasskey(
  options: AccountPagesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  given: { name: string; passkey: string },
): Promise<FastifyReply> {
  const { base, factors } = options;
  const person = options.personOf(request);
  const site = siteOf(request, options.publicUrl);
  const name = given.name.trim() || 'Passkey';
  const added = site && (await factors.addPasskey(site, person.id, name, given.passkey));
  if (added === null)
    return showNewPasskey(options, request, reply, 'This passkey was not accepted. Try again.');
  await endOtherSessions(options, request, person);
  await tell(options, request, person, 'second_factor.add_passkey', 'A passkey was added');
  if (added.codes === null) return reply.redirect(`${base}/?done=passkey`, 303);
  const content = recoveryCodesPage({ base, codes: added.codes });
  return options.send(request, reply, { title: 'Recovery codes', content, status: 200 });
}

async function confirmApp(
  options: AccountPagesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  code: string,
): Promise<FastifyReply> {
  const { base, factors } = options;
  const person = options.personOf(request);
  const pending = await factors.pendingTotp(person.id, person.email);
  if (pending === null) throw conflict('Set up the authenticator app again.');
  const confirmed = await factors.confirmTotp(person.id, code);
  if (confirmed === null) {
    const error = 'This code is wrong. Check the clock of your phone and type the newest code.';
    const content = newAppPage({ base, csrfToken: person.csrfToken, ...pending, error });
    return options.send(request, reply, { title: 'Authenticator app', content, status: 422 });
  }
  await endOtherSessions(options, request, person);
  await tell(options, request, person, 'second_factor.add_app', 'An authenticator app was added');
  if (confirmed.codes === null) return reply.redirect(`${base}/?done=app`, 303);
  const content = recoveryCodesPage({ base, codes: confirmed.codes });
  return options.send(request, reply, { title: 'Recovery codes', content, status: 200 });
}

/** A session that the password alone has opened, in another browser, would go on without the factor. */
function endOtherSessions(
  { sessions }: AccountPagesOptions,
  request: FastifyRequest,
  person: SignInPerson,
): Promise<void> {
  return sessions.endOthers(person.id, request.headers.cookie);
}

async function tell(
  { people, post }: AccountPagesOptions,
  request: FastifyRequest,
  person: SignInPerson,
  operation: OwnOperation,
  what: string,
): Promise<void> {
  await people.noteOwn(person.id, operation, originOf(request));
  post.sendLater(async () => factorsChangedMail(person, what, post.linkTo('/reset-password')));
}

function conflict(message: string): HttpError {
  return new HttpError(409, { code: 'conflict', message });
}
