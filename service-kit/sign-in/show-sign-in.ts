import type { FastifyReply, FastifyRequest } from 'fastify';
import { isLocalPath, sendPage, signInPage } from '#service-kit/pages/index.ts';
import { demoSignInForms } from './demo.routes.ts';
import type { SignInDeps } from './deps.ts';
import { passkeySignInForm, siteOf } from './passkey-button.ts';

export interface Shown {
  email?: string;
  next?: string | undefined;
  error?: string;
  done?: string | undefined;
}

/** The sign-in page. */
export function showSignIn(
  deps: SignInDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  shown: Shown,
): FastifyReply {
  const { email, error, done } = shown;
  const next = isLocalPath(shown.next) ? shown.next : undefined;
  const success = done === 'password' ? 'Your password is set. Sign in with it.' : undefined;
  const page = signInPage({
    area: deps.area,
    email,
    error,
    success,
    next,
    alternative: [siteOf(request, deps.publicUrl) && passkeySignInForm(next), demoSignInForms(deps)],
    resetHref: '/reset-password',
  });
  return sendPage(reply, page, status);
}
