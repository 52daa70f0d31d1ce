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
import {
  answerPath,
  askPath,
  assertionLengthMax,
  beginPath,
  isTargetPath,
  stateOf,
} from '#contracts/sign-on/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import { type App, sourceBucket } from '#service-kit/http/index.ts';
import { type Content, type Html, html, link, sendPage, withQuery } from '#service-kit/pages/index.ts';
import {
  alone,
  completeSignIn,
  proceedSignIn,
  type SignInDeps,
  type SignInPerson,
} from '#service-kit/sign-in/index.ts';
import type { Refusal } from './assertions.ts';
import type { SignOn } from './sign-on.ts';
import { clearedCookies, linkPath, readCookies, secretCookie, ticketCookie } from './sign-on-pages.routes.ts';
import type { Answer } from './store.ts';

interface SignOnRouteDeps<Actor extends AuditActor>
  extends Pick<SignInDeps, 'area' | 'people' | 'sessions' | 'factors' | 'post' | 'clock' | 'oidc'> {
  signOn: SignOn<Actor>;
  /** The console's first page. */
  home: string;
  /** The console requires a second factor. */
  requireSecondFactor: boolean;
}

const hidden = { hide: true } as object;
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
  expired: {
    status: 403,
    title: 'This sign-on has expired',
    text: `It is valid for one minute. ${again}`,
  },
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
  used_before: {
    status: 403,
    title: 'This sign-on was used before',
    text: `Each one works once. ${again}`,
  },
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
