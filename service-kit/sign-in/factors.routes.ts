/** Setting up and removing one's own second factors, below the page "Your account". */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { encode } from 'uqr';
import { type App, HttpError, originOf } from '#service-kit/http/index.ts';
import {
  actionButton,
  actionsColumn,
  age,
  askButton,
  badge,
  banner,
  type Content,
  cellColumn,
  code,
  codeBlock,
  field,
  form,
  type Html,
  html,
  link,
  pageHeader,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { FactorState, PasskeySummary } from '#service-kit/second-factors/index.ts';
import { browserName } from '#service-kit/sessions/index.ts';
import { timeColumn } from '#service-kit/web/index.ts';
import type { AccountPagesOptions } from './account.routes.ts';
import { codeForm, passkeyButton, siteOf } from './factor-forms.ts';
import { factorsChangedMail } from './mails.ts';
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
function endOtherSessions({ sessions }: AccountPagesOptions, request: FastifyRequest, person: SignInPerson) {
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

interface FactorView {
  base: string;
  csrfToken: string;
  state: FactorState;
  passkeys: readonly PasskeySummary[];
  /** False on a bare address, where browsers allow no passkeys. */
  canAddPasskey: boolean;
  nowMs: number;
  /** Everyone of this kind must have a second factor. */
  isRequired: boolean;
}

/** The section about second factors. */
export function factorSection(view: FactorView): Html {
  const { state, isRequired } = view;
  return section(
    {
      title: 'Second factor',
      id: 'factors',
      description:
        'An extra step when you sign in and before sensitive changes. Adding one ends your sessions in other browsers.',
    },
    [
      isRequired &&
        !state.hasAny &&
        banner({
          tone: 'warn',
          title: 'Set up a second factor to go on',
          text: 'It is required here. The other pages open when it is set up.',
        }),
      passkeyPart(view),
      appPart(view),
      state.hasAny && recoveryPart(view),
    ],
  );
}

function passkeyPart({ base, csrfToken, passkeys, canAddPasskey, nowMs }: FactorView): Content {
  const add = canAddPasskey
    ? actionButton({ action: `${base}/passkeys/new`, csrfToken, label: 'Add a passkey', kind: 'primary' })
    : html`<p class="hint">Passkeys need a host name. Open this page at its name instead of its address.</p>`;
  if (passkeys.length === 0)
    return html`<div class="form-buttons"><p>Passkeys: ${badge('neutral', 'none')}</p>${add}</div>`;
  return [
    table<PasskeySummary>({
      caption: 'Passkeys',
      card: { line: ['used', 'added'] },
      captionVisible: true,
      columns: [
        cellColumn('name', 'Passkey', (passkey) => passkey.name),
        timeColumn('added', 'Added', (passkey) => passkey.createdAt.getTime()),
        cellColumn('used', 'Last used', (passkey) =>
          passkey.lastUsedAt === null ? 'never' : age(passkey.lastUsedAt.getTime(), nowMs),
        ),
        actionsColumn('remove', (passkey) =>
          askButton(
            {
              id: `remove-passkey-${passkeys.indexOf(passkey)}`,
              label: 'Remove',
              title: `Remove the passkey ${passkey.name}?`,
              action: `${base}/passkeys/remove`,
              csrfToken,
              fields: { passkey: passkey.id },
            },
            'You can no longer sign in with it. Delete it on your device too.',
          ),
        ),
      ],
      rows: passkeys,
      empty: { title: 'None', text: 'Your passkeys appear here.' },
    }),
    html`<div class="form-buttons">${add}</div>`,
  ];
}

/** Where a passkey is made: the one page that needs a script. */
function newPasskeyPage(options: {
  base: string;
  csrfToken: string;
  json: string;
  name: string;
  error?: string | undefined;
}): Content {
  const { base, csrfToken, json, name, error } = options;
  return [
    pageHeader({
      title: 'Add a passkey',
      state: {
        tone: 'info',
        text: 'Your browser asks for your finger, your face or a PIN, and keeps the key.',
      },
    }),
    html`<noscript>${banner({ tone: 'warn', title: 'Passkeys need JavaScript', text: 'Without it, set up an authenticator app.' })}</noscript>`,
    form({ action: `${base}/passkeys`, csrfToken, error }, [
      field({ name: 'name', label: 'Name', value: name, required: true, maxLength: 80 }),
      passkeyButton({ label: 'Create passkey', field: 'passkey', source: 'create', json }),
    ]),
    html`<p>${link(`${base}/`, 'Cancel')}</p>`,
  ];
}

function appPart({ base, csrfToken, state }: FactorView): Content {
  if (!state.hasTotp)
    return html`<div class="form-buttons"><p>Authenticator app: ${badge('neutral', 'not set up')}</p>${actionButton(
      { action: `${base}/app/new`, csrfToken, label: 'Set up an authenticator app', kind: 'primary' },
    )}</div>`;
  return html`<div class="form-buttons"><p>Authenticator app: ${badge('good', 'in use')}</p>${askButton(
    {
      id: 'remove-app',
      label: 'Remove',
      title: 'Remove the authenticator app?',
      action: `${base}/app/remove`,
      csrfToken,
    },
    'Its codes are no longer accepted.',
  )}</div>`;
}

function recoveryPart({ base, csrfToken, state }: FactorView): Content {
  const left = state.recoveryCodesLeft;
  return html`<div class="form-buttons"><p>Recovery codes: ${badge(left < 3 ? 'warn' : 'good', `${left} left`)}</p>${askButton(
    {
      id: 'new-recovery-codes',
      label: 'New recovery codes',
      title: 'Make new recovery codes?',
      openKind: 'button',
      action: `${base}/recovery`,
      csrfToken,
    },
    'Your current codes stop working. The new codes are shown once, on the next page.',
  )}</div>`;
}

/** Where an authenticator app is set up: the QR code, the same as text, and the first code. */
function newAppPage(options: {
  base: string;
  csrfToken: string;
  secret: string;
  uri: string;
  error?: string | undefined;
}): Content {
  const { base, csrfToken, secret, uri, error } = options;
  return [
    pageHeader({
      title: 'Set up an authenticator app',
      state: { tone: 'info', text: 'Scan the code with your app, then type the six digits that it shows.' },
    }),
    qrCode(uri),
    html`<p>Or type this key into the app: ${code(secret.replace(/(.{4})(?=.)/g, '$1 '))}</p>`,
    codeForm({
      action: `${base}/app/confirm`,
      csrfToken,
      submit: 'Confirm',
      hint: 'The six digits that the app shows now.',
      error,
    }),
    html`<p>${link(`${base}/`, 'Cancel')}</p>`,
  ];
}

/** Recovery codes, on the one page that ever shows them. */
function recoveryCodesPage(options: { base: string; codes: readonly string[] }): Content {
  return [
    pageHeader({
      title: 'Your recovery codes',
      state: {
        tone: 'warn',
        text: 'Store them where you can find them without your phone. They are shown only now.',
      },
    }),
    html`<p>Each code works once, in place of your second factor.</p>`,
    codeBlock({ label: 'Recovery codes', code: options.codes.join('\n') }),
    html`<p>${link(`${options.base}/`, 'I have stored them', { kind: 'primary' })}</p>`,
  ];
}

/** A QR code as one path of SVG: dark on light in both themes, because scanners expect it so. */
function qrCode(text: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: 2 });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('');
  return html`<svg class="qr-code" role="img" aria-label="QR code for your authenticator app" viewBox="0 0 ${size} ${size}"><rect width="${size}" height="${size}" fill="#fff"></rect><path d="${path}" fill="#000"></path></svg>`;
}
