import type { Clock } from '#common/clock/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import { registerAccountPages } from '#service-kit/sign-in/index.ts';
import { portalFrame } from '../frame.ts';

export interface AccountDeps {
  accounts: Accounts;
  sessions: Sessions;
  post: Post;
  factors: SecondFactors;
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
  clock: Clock;
}

/** `/client/account/`: one's own password and sessions. */
export function registerAccount(app: App, deps: AccountDeps): void {
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
