/**
 * The receiver's steps of a sign-on, which need no session: `/sign-on` begins one, `/sign-on/answer` takes the assertion,
 * `/sign-on/finish` starts the session.
 *
 * The assertion is posted by a page of another site, with which browsers send no cookie of ours. So the answer only checks
 * it and gives a ticket; the redirect to the last step carries the cookies, of which one was given before the sign-on left
 * this browser. Without that one no session starts: no stranger can sign a person in to the stranger's account.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import {
  answerPath,
  askPath,
  assertionLengthMax,
  beginPath,
  isStateText,
  isTargetPath,
  stateOf,
} from '#contracts/sign-on/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import { type App, hidden, sourceBucket } from '#service-kit/http/index.ts';
import type { Mail, Post } from '#service-kit/mail/index.ts';
import {
  assetUrl,
  banner,
  CONTENT_SECURITY_POLICY,
  type Content,
  form,
  type Html,
  hiddenField,
  html,
  link,
  PAGE_HEADERS,
  sendPage,
  withQuery,
} from '#service-kit/pages/index.ts';
import { readCookie, type Sessions } from '#service-kit/sessions/index.ts';
import {
  alone,
  completeSignIn,
  proceedSignIn,
  type SignInDeps,
  type SignInPerson,
} from '#service-kit/sign-in/index.ts';
import { type Refusal, type SignOn, ticketMinutes } from './sign-on.ts';
import type { Answer } from './store.ts';

interface SignOnRouteDeps<Actor extends AuditActor>
  extends Pick<SignInDeps, 'area' | 'people' | 'sessions' | 'factors' | 'post' | 'clock' | 'oidc'> {
  signOn: SignOn<Actor>;
  /** The console's first page. */
  home: string;
  /** The console requires a second factor. */
  requireSecondFactor: boolean;
}

const finishPath = '/sign-on/finish';
/** Answers of one source in ten minutes. */
const answersMax = 100;

export function registerSignOn<Actor extends AuditActor>(app: App, deps: SignOnRouteDeps<Actor>): void {
  const { signOn, sessions } = deps;
  const Begin = Type.Object({ to: Type.Optional(Type.String()) });
  app.get(beginPath, { schema: { ...hidden, querystring: Begin } }, async (request, reply) => {
    const { to = deps.home } = request.query;
    if (!isTargetPath(to)) return refuse(deps, reply, 'bad_path');
    if ((await visitorOf(deps, request)) !== null) return reply.redirect(to, 303);
    const ask = await signOn.askAddress();
    if (ask === null) return reply.redirect(withQuery('/sign-in', { next: to }), 303);
    // Another tab may be on its way with the same secret.
    const secret =
      readCookies(sessions, request.headers.cookie).secret ?? randomBytes(32).toString('base64url');
    reply.header('set-cookie', secretCookie(sessions, secret));
    const asked = { audience: ask.audience, state: stateOf(secret, to), to };
    return reply.redirect(withQuery(`${ask.address}${askPath}`, asked), 303);
  });

  const Form = Type.Object({ assertion: Type.String({ maxLength: assertionLengthMax }) });
  app.post(answerPath, { schema: { ...hidden, body: Form } }, async (request, reply) => {
    if (!(await sessions.countUse(`sign-on:${sourceBucket(request.ip)}`, answersMax)))
      return refuse(deps, reply, 'too_many');
    const accepted = await signOn.accept(request.body.assertion);
    if ('refused' in accepted) return refuse(deps, reply, accepted.refused);
    reply.header('set-cookie', ticketCookie(sessions, accepted.ticket));
    return reply.redirect(finishPath, 303);
  });

  app.get(finishPath, { schema: hidden }, async (request, reply) => {
    const { secret, ticket } = readCookies(sessions, request.headers.cookie);
    const answer = await signOn.findAnswer(secret, ticket);
    const visitor = await visitorOf(deps, request);
    if (answer === null)
      return visitor === null ? refuse(deps, reply, 'other_browser') : reply.redirect(deps.home, 303);
    const person = await signOn.findLinked(answer);
    if (person === 'not_linked') return askToLink(deps, reply, visitor);
    if (person === 'no_access') return refuse(deps, reply, person);
    return signIn(deps, request, reply, person, answer, ticket!);
  });
}

/** As far as a password would: who owes a second factor is asked for it, unless it was shown at the other program. */
async function signIn<Actor extends AuditActor>(
  deps: SignOnRouteDeps<Actor>,
  request: FastifyRequest,
  reply: FastifyReply,
  person: SignInPerson,
  answer: Answer,
  ticket: string,
): Promise<FastifyReply> {
  const { hasSecondFactor, authenticatedAtMs } = answer;
  const state = await deps.factors.stateOf(person.id);
  if (!hasSecondFactor && !state.hasAny && deps.requireSecondFactor)
    return refuse(deps, reply, 'no_second_factor');
  if (!(await deps.signOn.take(ticket, answer))) return refuse(deps, reply, 'used_before');
  for (const cookie of clearedCookies(deps.sessions)) reply.header('set-cookie', cookie);
  if (!hasSecondFactor && state.hasAny) return proceedSignIn(deps, request, reply, person, answer.path);
  const noted = {
    signOn: {
      subjectId: answer.subjectId,
      subjectEmail: answer.subjectEmail,
      nonce: answer.nonce.toString('base64url'),
      hasSecondFactor,
    },
  };
  const proof = { hasSecondFactor, authenticatedAtMs, noted };
  return completeSignIn(deps, request, reply, person, answer.path, proof);
}

/** The operator of this browser's session; null without one. */
async function visitorOf<Actor extends AuditActor>(
  { sessions, signOn }: SignOnRouteDeps<Actor>,
  request: FastifyRequest,
): Promise<SignInPerson | null> {
  const session = await sessions.read(request.headers.cookie);
  return session && signOn.findOperator(session.personId);
}

function askToLink<Actor extends AuditActor>(
  { area }: SignOnRouteDeps<Actor>,
  reply: FastifyReply,
  visitor: SignInPerson | null,
): FastifyReply {
  const way =
    visitor === null
      ? link(withQuery('/sign-in', { next: linkPath }), 'Sign in and link', { kind: 'primary' })
      : link(linkPath, 'Link the accounts', { kind: 'primary' });
  return sendPage(reply, refusalPage(area, 'not_linked', way), statusOf('not_linked'));
}

function refuse<Actor extends AuditActor>(
  { area }: SignOnRouteDeps<Actor>,
  reply: FastifyReply,
  refusal: Refusal,
): FastifyReply {
  return sendPage(reply, refusalPage(area, refusal), statusOf(refusal));
}

interface RefusalText {
  status: number;
  title: string;
  text: string;
}

/** What a person reads who was not signed in: why, and what to do now. */
const again = 'Follow the link in the other console again, or sign in here with your password.';

const refusals: Readonly<Record<Refusal, RefusalText>> = {
  not_genuine: {
    status: 403,
    title: 'This sign-on is not valid',
    text: `It was not signed by the console that this one trusts, or it was changed on the way. ${again} If it happens again, an operator has to compare the keys under Single sign-on.`,
  },
  wrong_audience: {
    status: 403,
    title: 'This sign-on is for another program',
    text: `It was made for a console with another key. ${again}`,
  },
  expired: { status: 403, title: 'This sign-on has expired', text: `It is valid for one minute. ${again}` },
  not_yet_valid: {
    status: 403,
    title: 'The clocks differ',
    text: 'The clock of the other console is more than 30 seconds ahead of the clock of this one. Sign in here with your password, and tell an operator.',
  },
  bad_path: {
    status: 400,
    title: 'This link leads nowhere',
    text: 'A link from the other console must lead to a page of this one. Nothing was opened.',
  },
  not_accepted: {
    status: 403,
    title: 'Single sign-on is off',
    text: 'This console does not accept sign-ons from another one. Sign in here with your password.',
  },
  used_before: { status: 403, title: 'This sign-on was used before', text: `Each one works once. ${again}` },
  other_browser: {
    status: 403,
    title: 'This sign-on was not begun in this browser',
    text: `A sign-on must begin and end in the same browser, within ten minutes. ${again}`,
  },
  not_linked: {
    status: 403,
    title: 'Your accounts are not linked yet',
    text: 'Sign in here once with your password, then link your two accounts. From then on the links between the consoles need no password.',
  },
  no_access: {
    status: 403,
    title: 'Your account here has no access',
    text: 'The account that yours is linked with was deactivated, or is no account of an operator any more. Ask another operator of this console.',
  },
  no_second_factor: {
    status: 403,
    title: 'A second factor is required',
    text: 'This console requires a second factor, and you signed in to the other console without one. Sign in here with your password and set one up, or sign in to the other console with one.',
  },
  too_many: {
    status: 429,
    title: 'Too many sign-ons',
    text: 'Wait ten minutes, then try again, or sign in here with your password.',
  },
};

const statusOf = (refusal: Refusal): number => refusals[refusal].status;

/** `actions`: other ways on than signing in. */
function refusalPage(area: string, refusal: Refusal, actions?: Content): Html {
  const { title, text } = refusals[refusal];
  const signIn = link('/sign-in', 'Sign in with a password', { kind: 'primary' });
  return alone(area, title, [
    html`<p>${text}</p>`,
    html`<div class="form-buttons">${actions ?? signIn}</div>`,
  ]);
}

// Pages of a sign-on for people who are signed in; each console registers them below its guard. `/sign-on/ask` vouches for
// them to the other program, `/sign-on/link` links an account of the other program with theirs.

const linkPath = '/sign-on/link';
/** Assertions about one person in ten minutes. */
const issuesMax = 60;

export interface SignOnPagesOptions<Actor extends AuditActor> {
  /** As pages call this program. */
  area: string;
  /** The console's first page. */
  home: string;
  signOn: SignOn<Actor>;
  sessions: Sessions;
  post: Post;
  /** The person whom the guard let in. */
  visitorOf: (request: FastifyRequest) => { actor: Actor; person: SignInPerson; csrfToken: string };
}

export function registerSignOnPages<Actor extends AuditActor>(
  scope: App,
  options: SignOnPagesOptions<Actor>,
): void {
  const Ask = Type.Object({ audience: Type.String(), state: Type.String(), to: Type.String() });
  scope.get(askPath, { schema: { querystring: Ask } }, async (request, reply) => {
    const { signOn, sessions, visitorOf } = options;
    const { actor, person } = visitorOf(request);
    const { audience, state, to: path } = request.query;
    const session = await sessions.read(request.headers.cookie);
    if (!isStateText(state) || !isTargetPath(path) || session === null)
      return showRefusal(
        options,
        reply,
        400,
        'The link to this page is incomplete. Follow it again from its start.',
      );
    if (!(await sessions.countUse(`issue:${person.id}`, issuesMax)))
      return showRefusal(options, reply, 429, 'Too many sign-ons. Wait ten minutes, then try again.');
    const issued = await signOn.issue(actor, person, session, { audience, state, path });
    if (issued === null) {
      const text =
        'This console does not sign operators in to the program that asked for it. An operator sets that under Single sign-on.';
      return showRefusal(options, reply, 403, text);
    }
    const page = continuePage(options, person, issued);
    const policy = CONTENT_SECURITY_POLICY.replace("form-action 'self'", `form-action ${issued.address}`);
    return reply
      .headers({ ...PAGE_HEADERS, 'content-security-policy': policy })
      .type('text/html; charset=utf-8')
      .send(String(page));
  });

  scope.get(linkPath, async (request, reply) => {
    const { answer } = await answerOf(options, request);
    return answer === null ? nothingToLink(options, reply) : showLink(options, request, reply, answer, 200);
  });

  // One's own account: also for people who only read.
  const config = { isOwn: true };
  scope.post(linkPath, { config }, async (request, reply) => {
    const { answer, ticket } = await answerOf(options, request);
    if (answer === null) return nothingToLink(options, reply);
    const { actor, person } = options.visitorOf(request);
    try {
      await options.signOn.linkOwn(actor, person, answer);
    } catch (error) {
      if (!(error instanceof CodedError) || error.code !== 'sign_on.invalid') throw error;
      return showLink(options, request, reply, answer, 409, error.message);
    }
    await options.signOn.take(ticket!, answer);
    for (const cookie of clearedCookies(options.sessions)) reply.header('set-cookie', cookie);
    const { post } = options;
    post.sendLater(async () =>
      accountLinkedMail(person, answer.subjectEmail, post.linkTo('/reset-password')),
    );
    return reply.redirect(answer.path, 303);
  });
}

async function answerOf<Actor extends AuditActor>(
  { signOn, sessions }: SignOnPagesOptions<Actor>,
  request: FastifyRequest,
): Promise<{ answer: Answer | null; ticket: string | null }> {
  const { secret, ticket } = readCookies(sessions, request.headers.cookie);
  return { answer: await signOn.findAnswer(secret, ticket), ticket };
}

/** Sends itself; without JavaScript by its button. */
function continuePage<Actor extends AuditActor>(
  { area }: SignOnPagesOptions<Actor>,
  person: SignInPerson,
  { address, assertion }: { address: string; assertion: string },
): Html {
  const action = `${address}${answerPath}`;
  return alone(area, 'Continue to the other console', [
    html`<p>You are signed in here as ${person.email}. ${new URL(address).host} is told so, and signs you in.</p>`,
    html`<div data-submit-at-once>${form({ action, csrfToken: null, submit: 'Continue' }, hiddenField('assertion', assertion))}</div>`,
    html`<script type="module" src="${assetUrl('sign-on.js')}"></script>`,
  ]);
}

function showLink<Actor extends AuditActor>(
  { area, home, visitorOf }: SignOnPagesOptions<Actor>,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Answer,
  status: number,
  error?: string,
): FastifyReply {
  const { person, csrfToken } = visitorOf(request);
  const content: Content = [
    error !== undefined && banner({ tone: 'bad', title: 'The accounts were not linked', text: error }),
    html`<p>In the other console you are <b>${answer.subjectEmail}</b>, and here <b>${person.email}</b>.</p>`,
    html`<p class="hint">Once they are linked, who is signed in there as ${answer.subjectEmail} is signed in here as you. Link only accounts that are both yours.</p>`,
    form(
      {
        action: linkPath,
        csrfToken,
        submit: 'Link the accounts',
        cancel: link(home, 'Cancel', { kind: 'button' }),
      },
      '',
    ),
  ];
  return sendPage(reply, alone(area, 'Link your accounts', content), status);
}

function nothingToLink<Actor extends AuditActor>(options: SignOnPagesOptions<Actor>, reply: FastifyReply) {
  const text =
    'No sign-on of this browser waits to be linked, or it is older than ten minutes. Follow the link in the other console again.';
  return showRefusal(options, reply, 410, text);
}

function showRefusal<Actor extends AuditActor>(
  { area, home }: SignOnPagesOptions<Actor>,
  reply: FastifyReply,
  status: number,
  text: string,
): FastifyReply {
  const content = [
    html`<p>${text}</p>`,
    html`<div class="form-buttons">${link(home, 'To the console', { kind: 'primary' })}</div>`,
  ];
  return sendPage(reply, alone(area, 'You were not signed in', content), status);
}

type Named = Pick<Sessions, 'cookieName'>;

/** The secret of a browser that has begun, to which its assertion is bound. */
const secretName = ({ cookieName }: Named) => `${cookieName}_sign_on`;
/** The ticket of the browser that brought an assertion. */
const ticketName = ({ cookieName }: Named) => `${cookieName}_ticket`;

/** The two cookies of a sign-on at the receiver; neither is known to the other program. */
function readCookies(sessions: Named, header: string | undefined) {
  return {
    secret: readCookie(header, secretName(sessions)),
    ticket: readCookie(header, ticketName(sessions)),
  };
}

const secretCookie = (sessions: Named, secret: string) => cookie(secretName(sessions), secret);
const ticketCookie = (sessions: Named, ticket: string) => cookie(ticketName(sessions), ticket);

/** Values of `Set-Cookie` that clear both. */
const clearedCookies = (sessions: Named): string[] => [
  cookie(secretName(sessions), null),
  cookie(ticketName(sessions), null),
];

// Lax: a browser sends them when it follows the redirect after the form that came from the other site.
function cookie(name: string, value: string | null): string {
  const secure = name.startsWith('__Host-') ? '; Secure' : '';
  const seconds = value === null ? 0 : ticketMinutes * 60;
  return `${name}=${value ?? ''}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${seconds}`;
}

/** For a person whose account can from now on be used from the other console. */
function accountLinkedMail(reader: { email: string; name: string }, other: string, resetUrl: string): Mail {
  // An address of the other program: a line break in it would be a paragraph of its own.
  const account = oneLine(other);
  const paragraphs = [
    `Hello ${oneLine(reader.name)},`,
    `your account was linked with the account ${account} of the other console. Who is signed in there as ${account} is signed in here as you.`,
    'If this was not you, set a new password now and ask an operator to remove the link:',
    resetUrl,
  ];
  return { to: reader.email, subject: 'Your account was linked', text: `${paragraphs.join('\n\n')}\n` };
}
