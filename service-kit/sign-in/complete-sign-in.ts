import type { FastifyReply, FastifyRequest } from 'fastify';
import { originOf } from '#service-kit/http/index.ts';
import { html, isLocalPath, link, sendPage } from '#service-kit/pages/index.ts';
import { browserName, type SessionProof } from '#service-kit/sessions/index.ts';
import type { SignInDeps } from './index.ts';
import { newBrowserMail } from './mails.ts';
import type { SignInPerson } from './people.ts';
import { alone } from './reset.routes.ts';

/** What was proved, and what the audit trail says of it beside the session's start. */
export interface SignInProof extends SessionProof {
  noted?: object;
}

/** Starts a session for a person who has proved who they are, and mails them when the browser is new. */
export async function completeSignIn(
  deps: Omit<SignInDeps, 'db' | 'factors' | 'publicUrl'>,
  request: FastifyRequest,
  reply: FastifyReply,
  person: SignInPerson,
  next: string | undefined,
  proof: SignInProof,
): Promise<FastifyReply> {
  if (proof.identityId === undefined && (await deps.oidc.governs(person.id)))
    return sendPage(reply, providerOnlyPage(deps), 403);
  const { cookie, 'user-agent': userAgent = null } = request.headers;
  // The session that this browser had ends here, so that one person never inherits another's.
  await deps.sessions.end(cookie);
  const device = await deps.sessions.knowDevice(person.email, cookie);
  const session = await deps.sessions.start(person.id, { source: request.ip, userAgent }, proof);
  await deps.people.noteOwn(person.id, 'session.start', originOf(request), proof.noted);
  // Beside cookies that the caller has set.
  for (const each of device === null ? [session] : [session, device]) reply.header('set-cookie', each);
  if (device !== null) {
    const from = { browser: browserName(userAgent), source: request.ip, atMs: deps.clock.nowMs() };
    deps.post.sendLater(async () => newBrowserMail(person, from, deps.post.linkTo('/reset-password')));
  }
  return reply.redirect(isLocalPath(next) ? next : await deps.people.landingOf(person.id), 303);
}

/** A person whom the provider made is let in by it alone: what its groups give must end there too. */
const providerOnlyPage = ({ area, oidc }: Pick<SignInDeps, 'area' | 'oidc'>) =>
  alone(area, 'Sign in at your provider', [
    html`<p>This account was made by ${oidc.label}, and is signed in there only.</p>`,
    html`<div class="form-buttons">${link('/sign-in/oidc', `Sign in at ${oidc.label}`, { kind: 'primary' })}</div>`,
  ]);
