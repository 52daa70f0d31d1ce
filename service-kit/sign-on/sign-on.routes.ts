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
import { link, sendPage, withQuery } from '#service-kit/pages/index.ts';
import {
  completeSignIn,
  proceedSignIn,
  type SignInDeps,
  type SignInPerson,
} from '#service-kit/sign-in/index.ts';
import type { Refusal } from './accept-assertion.ts';
import { clearedCookies, readCookies, secretCookie, ticketCookie } from './cookies.ts';
import { refusalPage, statusOf } from './refusal.page.ts';
import type { SignOn } from './sign-on.ts';
import { linkPath } from './sign-on-pages.routes.ts';
import type { Answer } from './store.ts';

interface SignOnRouteDeps<Actor extends AuditActor>
  extends Pick<SignInDeps, 'area' | 'people' | 'sessions' | 'factors' | 'post' | 'clock'> {
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
