import type { App } from '#service-kit/http/index.ts';
import { toast as toastOf } from '#service-kit/pages/index.ts';
import { registerAccountPages } from '#service-kit/sign-in/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';

/** `/account/`: the signed-in person's own password and sessions. */
export function registerAccount(app: App, deps: ConsoleDeps): void {
  registerAccountPages(app, {
    ...deps,
    people: deps.operators.people,
    path: '/account',
    base: '/account',
    personOf: (request) => {
      const { operator, csrfToken } = viewerOf(request);
      return { ...operator, csrfToken };
    },
    isFactorRequired: () => deps.requireSecondFactor,
    changePassword: (request, given) => {
      const { actor, operator } = viewerOf(request);
      return deps.operators.changeOwnPassword(actor, operator.id, given);
    },
    send: (request, reply, { title, content, toast, status }) => {
      const options = toast === undefined ? {} : { toast: toastOf('good', toast) };
      return sendConsolePage(request, reply, { title, status, ...options }, content);
    },
  });
}
