import type { Accounts } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { type AccountPagesDeps, registerAccountPages } from '#service-kit/sign-in/index.ts';
import { consoleFrame } from '../frame.ts';

/** `/console/account/`: one's own password and sessions. */
export function registerAccount(
  app: App,
  deps: AccountPagesDeps & {
    accounts: Accounts;
    requireSecondFactor: boolean;
  },
): void {
  registerAccountPages(app, {
    ...deps,
    people: deps.accounts.people,
    path: '/account',
    base: '/console/account',
    personOf: (request) => ({ ...request.staff!.person, csrfToken: request.staff!.csrfToken }),
    isFactorRequired: () => deps.requireSecondFactor,
    changePassword: (request, given) => deps.accounts.changePassword(request.staff!.actor, given),
    send: (request, reply, { title, content, toast: text, status }) => {
      const toast = text === undefined ? undefined : { tone: 'good' as const, text };
      const staff = request.staff!;
      const breadcrumb = [{ label: title }];
      return sendPage(
        reply,
        consoleFrame({ staff, title, current: 'account', breadcrumb, toast }, content),
        status,
      );
    },
  });
}
