/**
 * Step-up: a sensitive route (`step-up.ts`) asks a person to prove who they are again, unless they did so in the last
 * fifteen minutes. A borrowed browser alone moves no money and makes no operators.
 *
 * The page that asks carries the whole refused form with it, so that nothing typed is lost and no script is needed.
 * People with a second factor prove it or give a recovery code; the password serves only people without one. A stolen
 * password and a borrowed browser together change nothing of theirs, on a bare address either.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HttpError, sourceBucket } from '#service-kit/http/index.ts';
import { type Content, field, form, hiddenField, html, sendPage } from '#service-kit/pages/index.ts';
import type { PasskeySite } from '#service-kit/second-factors/index.ts';
import type { Session } from '#service-kit/sessions/index.ts';
import { codeForm, passkeyButton, passkeyOptionsPath, siteOf } from './factor-forms.ts';
import type { SignInDeps } from './index.ts';
import type { SignInPerson } from './people.ts';
import { alone } from './reset.routes.ts';
import { mailRecoveryUse } from './second-step.routes.ts';
import { stepUpOf } from './step-up.ts';

const answerFields = ['confirm_password', 'confirm_code', 'confirm_passkey'] as const;

export type ConfirmDeps = Pick<SignInDeps, 'sessions' | 'people' | 'factors' | 'post' | 'publicUrl' | 'oidc'>;

/**
 * For guards, after the form's token was checked: true when the request may go on. Otherwise the answer has been sent,
 * and the guard returns the reply. When the form carried the right proof the session gets a new secret, in the reply and
 * in the request's own headers.
 */
export async function confirmIdentity(
  deps: ConfirmDeps,
  area: string,
  request: FastifyRequest,
  reply: FastifyReply,
  person: SignInPerson,
  session: Session,
): Promise<boolean> {
  const stepUp = stepUpOf.get(request.routeOptions.url ?? '');
  if (!session.isCheckDue && (stepUp === 'never' || session.isConfirmed)) return true;
  const body = (request.body ?? {}) as Record<string, unknown>;
  if (session.identityId !== null) return askProvider(deps, area, request, reply, session);
  const state = await deps.factors.stateOf(person.id);
  if (stepUp === 'with_factor' && !state.hasAny) return true;
  const kind = state.hasAny ? 'code' : 'password';
  const site = state.passkeys > 0 ? siteOf(request, deps.publicUrl) : null;
  const passkey = site !== null && typeof body.confirm_passkey === 'string' ? body.confirm_passkey : '';
  const fault =
    site !== null && passkey !== ''
      ? await judgePasskey(deps, site, person, passkey)
      : await judgeAnswer(deps, request, person, kind, body[`confirm_${kind}`]);
  if (fault === null) {
    const cookie = await deps.sessions.confirm(request.headers.cookie, kind === 'code' || passkey !== '');
    if (cookie !== null) {
      reply.header('set-cookie', cookie);
      request.headers.cookie = withCookie(request.headers.cookie ?? '', cookie.split(';')[0]!);
    }
    for (const name of answerFields) delete body[name];
    return true;
  }
  if (request.url.startsWith('/api/'))
    throw new HttpError(403, {
      code: 'confirmation_required',
      message: `${fault.error ?? 'This session is older than 15 minutes.'} Sign in again, or send confirm_${kind} beside the other fields.`,
    });
  const fields = [carriedFields(body), site && passkeyField()];
  const options = { action: request.url, csrfToken: session.csrfToken, submit: 'Confirm', fields, ...fault };
  const content =
    kind === 'code'
      ? codeForm({ ...options, name: 'confirm_code', hasTotp: state.hasTotp })
      : passwordForm(person, options);
  sendPage(reply, alone(area, 'Confirm that it is you', content), fault.error === undefined ? 403 : 401);
  return false;
}

/** The proof is given in another tab, where the session is confirmed; this page keeps what was typed. */
function askProvider(
  { oidc }: ConfirmDeps,
  area: string,
  request: FastifyRequest,
  reply: FastifyReply,
  { csrfToken }: Session,
): false {
  const provider = oidc.label ?? 'the provider';
  if (request.url.startsWith('/api/'))
    throw new HttpError(403, {
      code: 'confirmation_required',
      message: `Confirm that it is you at ${provider}: open /sign-in/oidc/confirm in this browser, then send this again.`,
    });
  const body = (request.body ?? {}) as Record<string, unknown>;
  const content = [
    html`<p>Sensitive changes ask for a sign-in that is younger than 15 minutes. Nothing was changed yet.</p>`,
    html`<p><a class="button primary" href="/sign-in/oidc/confirm" target="_blank" rel="noopener">Confirm at ${provider} in a new tab</a></p>`,
    form({ action: request.url, csrfToken, submit: 'I have confirmed: continue', submitKind: 'button' }, [
      carriedFields(body),
    ]),
  ];
  sendPage(reply, alone(area, 'Confirm that it is you', content), 403);
  return false;
}

async function judgePasskey(
  { factors }: ConfirmDeps,
  site: PasskeySite,
  person: SignInPerson,
  answer: string,
): Promise<{ error?: string } | null> {
  if ((await factors.takePasskey(site, answer)) === person.id) return null;
  return { error: 'This passkey was not accepted. Try again, or use the field.' };
}

const passkeyField = () =>
  passkeyButton({ label: 'Use a passkey', field: 'confirm_passkey', source: passkeyOptionsPath });

/** Null when the answer is right; `error` is absent when there was none yet. */
async function judgeAnswer(
  deps: ConfirmDeps,
  request: FastifyRequest,
  person: SignInPerson,
  kind: 'code' | 'password',
  answer: unknown,
): Promise<{ error?: string } | null> {
  if (typeof answer !== 'string') return {};
  const { cookie } = request.headers;
  const attempt =
    kind === 'code'
      ? await deps.sessions.beginCode(person.email, cookie)
      : await deps.sessions.beginAttempt(person.email, sourceBucket(request.ip), cookie);
  if (attempt === null) return { error: 'Too many failed attempts. Wait ten minutes, then try again.' };
  const isRight =
    kind === 'code' ? await isCode(deps, person, answer) : await isPassword(deps, person, answer);
  if (!isRight)
    return {
      error: kind === 'code' ? 'This code is wrong or was used before.' : 'This is not your password.',
    };
  await attempt.giveBack();
  return null;
}

async function isPassword(deps: ConfirmDeps, person: SignInPerson, answer: string): Promise<boolean> {
  return (await deps.people.checkPassword(person.email, answer))?.id === person.id;
}

async function isCode(deps: ConfirmDeps, person: SignInPerson, answer: string): Promise<boolean> {
  const kind = await deps.factors.takeCode(person.id, answer);
  if (kind === 'recovery') await mailRecoveryUse(deps, person);
  return kind !== null;
}

/** The fields of the refused form, but for its token, which the new form has by itself, and earlier answers. */
function carriedFields(body: Record<string, unknown>): Content {
  return Object.entries(body)
    .filter(([name]) => name !== 'csrf_token' && !answerFields.includes(name as 'confirm_code'))
    .flatMap(([name, value]) => [value].flat().map((each) => hiddenField(name, String(each))));
}

function passwordForm(
  person: SignInPerson,
  options: { action: string; csrfToken: string; submit: string; fields: Content; error?: string },
) {
  const { action, csrfToken, submit, fields, error } = options;
  return form({ action, csrfToken, submit }, [
    fields,
    field({
      kind: 'password',
      name: 'confirm_password',
      label: `Password of ${person.email}`,
      hint: 'Sensitive changes ask for it when you last gave it more than 15 minutes ago.',
      required: true,
      autocomplete: 'current-password',
      autofocus: true,
      error,
    }),
  ]);
}

/** The `Cookie` header with one cookie replaced. */
function withCookie(header: string, pair: string): string {
  const name = pair.slice(0, pair.indexOf('=') + 1);
  const others = header.split(';').map((part) => part.trim());
  return [...others.filter((part) => part !== '' && !part.startsWith(name)), pair].join('; ');
}
