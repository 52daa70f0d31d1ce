import type { Accounts } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { type AccountPagesDeps, registerAccountPages } from '#service-kit/sign-in/index.ts';
import { portalFrame } from '../frame.ts';

/** `/client/account/`: one's own password and sessions. */
export function registerAccount(
  app: App,
  deps: AccountPagesDeps & {
    accounts: Accounts;
  },
): void {
  registerAccountPages(app, {
    ...deps,
    people: deps.accounts.people,
    path: '/account',
    base: '/client/account',
    personOf: (request) => ({ ...request.visitor!.person, csrfToken: request.visitor!.csrfToken }),
    isFactorRequired: () => false,
    changePassword: (request, given) => deps.accounts.changePassword(request.visitor!.actor, given),
    send: (request, reply, { title, content, toast: text, status }) => {
      const toast = text === undefined ? undefined : { tone: 'good' as const, text };
      const visitor = request.visitor!;
      const breadcrumb = [{ label: title }];
      return sendPage(
        reply,
        portalFrame({ visitor, title, current: 'account', breadcrumb, toast }, content),
        status,
      );
    },
  });
}
