/**
 * One's own account: password and sessions. Each console and the portal registers these routes below its own guard, so
 * every form here carries the session's token, and read-only people may use them too.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { type App, HttpError, originOf, sourceBucket } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import {
  actionsColumn,
  age,
  askButton,
  badge,
  type Content,
  cellColumn,
  chosenOf,
  codeColumn,
  definitionList,
  type Html,
  html,
  inputForm,
  pageHeader,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import { browserName, type SessionSummary, type Sessions } from '#service-kit/sessions/index.ts';
import { timeColumn } from '#service-kit/web/index.ts';
import { siteOf } from './factor-forms.ts';
import { factorSection, registerFactors } from './factors.routes.ts';
import { passwordChangedMail } from './mails.ts';
import type { SignInPeople, SignInPerson } from './people.ts';
import { passwordHint } from './reset.routes.ts';

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
  linked: 'The accounts are linked. You can sign in at the provider from now on.',
  not_linked: 'Nothing was changed: this account, or the one at the provider, is linked already.',
  unlinked: 'The accounts are no longer linked.',
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
    provider: await options.providerSection?.(request),
    nowMs: options.clock.nowMs(),
    passwordFault: shown.passwordFault,
  });
  const text = chosenOf(outcomes, shown.done);
  const outcome = text === undefined ? {} : { toast: text };
  return options.send(request, reply, { title: 'Your account', content, status, ...outcome });
}

/** What every program's account pages need. */
export interface AccountPagesDeps {
  sessions: Sessions;
  factors: SecondFactors;
  post: Post;
  clock: Clock;
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
}

export interface AccountPagesOptions extends AccountPagesDeps {
  /** The path of the pages below the scope's prefix, such as `/account`. */
  path: string;
  /** The whole path, such as `/console/account`. */
  base: string;
  people: SignInPeople;
  /** The person that the guard let in. */
  personOf: (request: FastifyRequest) => SignInPerson & { csrfToken: string };
  /** True where the person of this request must have a second factor. */
  isFactorRequired: (request: FastifyRequest) => boolean;
  /** Changes the password of the person of this request. Throws a `CodedError` with `details.field`. */
  changePassword: (request: FastifyRequest, given: { current: string; next: string }) => Promise<void>;
  /** Another way to sign in of this person, below the second factors. */
  providerSection?: (request: FastifyRequest) => Promise<Content>;
  /** Sends a page in the frame of its surface. */
  send: (
    request: FastifyRequest,
    reply: FastifyReply,
    page: { title: string; content: Content; toast?: string; status: number },
  ) => FastifyReply;
}

interface AccountView {
  base: string;
  person: SignInPerson & { csrfToken: string };
  sessions: readonly SessionSummary[];
  /** The section about second factors. */
  factors: Html;
  provider: Content;
  nowMs: number;
  passwordFault?: { field: string; message: string } | undefined;
}

/** The content of the page "Your account". */
function accountSections(view: AccountView): Content {
  const { person, sessions } = view;
  const others = sessions.length - 1;
  return [
    pageHeader({
      title: 'Your account',
      state: {
        tone: 'good',
        text:
          others <= 0
            ? 'You are signed in in this browser only.'
            : `You are signed in in ${others === 1 ? 'one other browser' : `${others} other browsers`}.`,
      },
    }),
    definitionList([
      { term: 'Name', value: person.name },
      { term: 'Email', value: person.email },
    ]),
    passwordSection(view),
    view.factors,
    view.provider,
    sessionsSection(view),
  ];
}

function passwordSection({ base, person, passwordFault }: AccountView): Html {
  return section(
    { title: 'Password', id: 'password', description: 'Changing it ends your sessions in other browsers.' },
    inputForm(
      {
        action: `${base}/password`,
        csrfToken: person.csrfToken,
        submit: 'Change password',
        submitKind: 'button',
      },
      [
        // Password managers look for whose password this is.
        html`<input type="hidden" name="username" autocomplete="username" value="${person.email}">`,
        {
          kind: 'password',
          name: 'current',
          label: 'Current password',
          required: true,
          autocomplete: 'current-password',
        },
        {
          kind: 'password',
          name: 'next',
          label: 'New password',
          hint: passwordHint,
          required: true,
          autocomplete: 'new-password',
        },
      ],
      { fault: passwordFault },
    ),
  );
}

function sessionsSection({ base, person, sessions, nowMs }: AccountView): Html {
  const { csrfToken } = person;
  const others = sessions.filter((session) => !session.isCurrent).length;
  return section(
    {
      title: 'Sessions',
      id: 'sessions',
      description:
        'Browsers that are signed in to your account. End sessions that you do not recognize, then change your password.',
      actions:
        others > 0 &&
        askButton(
          {
            id: 'end-others',
            label: others === 1 ? 'End the other session' : `End the ${others} other sessions`,
            title: 'End all other sessions?',
            action: `${base}/sessions/end-others`,
            csrfToken,
          },
          'Who uses them has to sign in again. This browser stays signed in.',
        ),
    },
    table<SessionSummary>({
      caption: 'Sessions',
      card: { line: ['seen', 'source'] },
      columns: [
        cellColumn('browser', 'Browser', (session) => [
          browserName(session.userAgent),
          session.isCurrent && html` ${badge('good', 'this one')}`,
        ]),
        codeColumn('source', 'Address', (session) => session.source ?? 'unknown'),
        timeColumn('started', 'Signed in', (session) => session.startedAt.getTime()),
        cellColumn('seen', 'Last used', (session) => age(session.lastSeenAt.getTime(), nowMs)),
        actionsColumn('end', (session) =>
          session.isCurrent
            ? ''
            : askButton(
                {
                  ...{ id: `end-${session.id}`, label: 'End', title: 'End this session?' },
                  ...{ action: `${base}/sessions/end`, csrfToken, fields: { session: session.id } },
                },
                'Who uses it has to sign in again.',
              ),
        ),
      ],
      rows: sessions,
      empty: { title: 'None', text: 'Your sessions appear here.' },
    }),
  );
}
