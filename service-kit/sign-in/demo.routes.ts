/**
 * `/sign-in/demo`: one click signs a visitor of the demo in as one of its people.
 *
 * There is no such route unless the demo world is on and the program listens on this machine alone, and then it answers
 * no one who comes from elsewhere or under a name that others could give to this machine.
 */
import { Type } from 'typebox';
import { isLocalDemo, requireLocal } from '#service-kit/demo/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { type Content, form, hiddenField, html } from '#service-kit/pages/index.ts';
import type { SignInDeps } from './index.ts';
import { proceedSignIn } from './second-step.routes.ts';

const Body = Type.Object({ email: Type.String({ maxLength: 320 }) });

export interface DemoRole {
  /** Such as `Customer`. */
  label: string;
  email: string;
}

/** The roles of a demo that only this machine reaches; none of any other program. */
export function demoRolesOf(
  program: { isDemo: boolean; host: string },
  roles: readonly DemoRole[],
): readonly DemoRole[] {
  return isLocalDemo(program) ? roles : [];
}

export function registerDemoSignIn(app: App, deps: SignInDeps): void {
  const { demoRoles = [], people } = deps;
  if (demoRoles.length === 0) return;
  const schema = { hide: true, body: Body } as const;
  app.post('/sign-in/demo', { schema }, async (request, reply) => {
    requireLocal(request, 'The demo signs in on this machine only.');
    const role = demoRoles.find(({ email }) => email === request.body.email);
    const person = role && (await people.findByEmail(role.email));
    if (!person) throw new HttpError(404, { code: 'not_found', message: 'The demo has no such person.' });
    return proceedSignIn(deps, request, reply, person);
  });
}

/** A button for each role; nothing outside of a demo. */
export function demoSignInForms({ demoRoles = [] }: Pick<SignInDeps, 'demoRoles'>): Content {
  if (demoRoles.length === 0) return '';
  return html`<section class="demo-roles" aria-label="Demo"><p class="hint">Demo: sign in with one click</p><div class="actions">${demoRoles.map(
    ({ label, email }) =>
      form(
        { action: '/sign-in/demo', csrfToken: null, submit: label, submitKind: 'button', layout: 'inline' },
        hiddenField('email', email),
      ),
  )}</div></section>`;
}
