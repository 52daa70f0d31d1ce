/** Single sign-on with operations: its settings, and the pages of a sign-on for operators. */
import type { FastifyRequest } from 'fastify';
import type { Actor } from '#monitor/operators/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { toast as toastOf } from '#service-kit/pages/index.ts';
import { registerSignOnPages, registerSignOnSettings } from '#service-kit/sign-on/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';

/** `/settings/sign-on/`, `/sign-on/ask` and `/sign-on/link`. */
export function registerSignOnConsole(app: App, { operators, ...deps }: ConsoleDeps): void {
  registerSignOnSettings<Actor>(app, {
    ...{ ...deps, path: '/settings/sign-on', base: '/settings/sign-on', other: 'operations', visitorOf },
    listOperators: async () => (await operators.list()).filter(({ disabledAtMs }) => disabledAtMs === null),
    send: (request, reply, { title, content, toast, status }) => {
      const options = toast === undefined ? {} : { toast: toastOf('good', toast) };
      return sendConsolePage(request, reply, { title, status, ...options }, content);
    },
  });
  registerSignOnPages<Actor>(app, { ...deps, area: 'Monitor', home: '/', visitorOf });
}

function visitorOf(request: FastifyRequest) {
  const { operator: person, actor, csrfToken, canChange } = viewerOf(request);
  return { actor, person, csrfToken, canChange };
}
