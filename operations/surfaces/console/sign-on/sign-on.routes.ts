/** Single sign-on with the monitor: its settings, and the pages of a sign-on for staff. */
import type { FastifyRequest } from 'fastify';
import type { Clock } from '#common/clock/index.ts';
import type { Accounts, Actor } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import { registerSignOnPages, registerSignOnSettings, type SignOn } from '#service-kit/sign-on/index.ts';
import { consoleFrame } from '../frame.ts';

interface SignOnConsoleDeps {
  accounts: Accounts;
  signOn: SignOn<Actor>;
  sessions: Sessions;
  post: Post;
  clock: Clock;
}

/** `/console/sign-on/`. */
export function registerSignOnConsole(app: App, { accounts, signOn, clock }: SignOnConsoleDeps): void {
  registerSignOnSettings<Actor>(app, {
    ...{ path: '/sign-on', base: '/console/sign-on', other: 'the monitor', signOn, clock, visitorOf },
    async listOperators(actor) {
      return (await accounts.listStaff(actor)).filter(({ isActive }) => isActive);
    },
    send(request, reply, { title, content, toast: text, status }) {
      const toast = text === undefined ? undefined : { tone: 'good' as const, text };
      const frame = { staff: request.staff!, title, breadcrumb: [{ label: title }], toast };
      return sendPage(reply, consoleFrame({ ...frame, current: 'sign-on' }, content), status);
    },
  });
}

/** `/sign-on/ask` and `/sign-on/link`, in a scope that the console's guard watches over. */
export function registerStaffSignOn(app: App, { signOn, sessions, post }: SignOnConsoleDeps): void {
  registerSignOnPages<Actor>(app, {
    ...{ area: 'Operations', home: '/console/', signOn, sessions, post, visitorOf },
  });
}

function visitorOf(request: FastifyRequest) {
  const { actor, person, csrfToken, canChange } = request.staff!;
  return { actor, person, csrfToken, canChange };
}
