/**
 * `/sign-in/passkey`: signing in by a passkey alone, also as the second step. Failures of others do not block it,
 * because a passkey cannot be guessed.
 */
import { Type } from 'typebox';
import { type App, HttpError, sourceBucket } from '#service-kit/http/index.ts';
import { otherSiteFault } from '#service-kit/sessions/index.ts';
import { completeSignIn } from './complete-sign-in.ts';
import type { SignInDeps } from './deps.ts';
import { passkeyOptionsPath, siteOf } from './passkey-button.ts';
import { showSignIn } from './show-sign-in.ts';

const PasskeyForm = Type.Object({
  passkey: Type.String({ maxLength: 20_000 }),
  next: Type.Optional(Type.String({ maxLength: 2_000 })),
});
const hidden = { hide: true } as object;
/** Challenges for one source in ten minutes; each is a row for five. */
const challengesMax = 100;

export function registerPasskeySignIn(app: App, deps: SignInDeps): void {
  app.post(passkeyOptionsPath, { schema: hidden }, async (request, reply) => {
    const site = siteOf(request, deps.publicUrl);
    if (otherSiteFault(request) !== null || site === null)
      throw new HttpError(403, { code: 'forbidden', message: 'Passkeys work on our own pages only.' });
    if (!(await deps.sessions.countUse(`passkey:${sourceBucket(request.ip)}`, challengesMax)))
      throw new HttpError(429, { code: 'rate_limited', message: 'Too many attempts. Wait ten minutes.' });
    return reply.send(await deps.factors.beginPasskeySignIn(site));
  });

  app.post('/sign-in/passkey', { schema: { ...hidden, body: PasskeyForm } }, async (request, reply) => {
    const { passkey, next } = request.body;
    const site = siteOf(request, deps.publicUrl);
    const isOurs = otherSiteFault(request) === null && site !== null;
    const personId = isOurs ? await deps.factors.takePasskey(site, passkey) : null;
    const person = personId === null ? null : await deps.people.find(personId);
    if (person !== null) return completeSignIn(deps, request, reply, person, next, { hasSecondFactor: true });
    const error = 'This passkey was not accepted. Try again, or sign in with your password.';
    return showSignIn(deps, request, reply, 401, { next, error });
  });
}
