import type { FastifyRequest } from 'fastify';
import type { Accounts } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type Oidc, oidcSection, registerOidcAccount } from '#service-kit/oidc/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import {
  type AccountPagesDeps,
  type AccountPagesOptions,
  registerAccountPages,
} from '#service-kit/sign-in/index.ts';
import { consoleFrame } from '../frame.ts';

/** `/console/account/`: one's own password and sessions. */
export function registerAccount(
  app: App,
  deps: AccountPagesDeps & {
    accounts: Accounts;
    oidc: Oidc;
    requireSecondFactor: boolean;
  },
): void {
  const at = { path: '/account', base: '/console/account' };
  const send: AccountPagesOptions['send'] = (request, reply, { title, content, toast: text, status }) => {
    const toast = text === undefined ? undefined : { tone: 'good' as const, text };
    const staff = request.staff!;
    const breadcrumb = [{ label: title }];
    return sendPage(
      reply,
      consoleFrame({ staff, title, current: 'account', breadcrumb, toast }, content),
      status,
    );
  };
  const personOf = (request: FastifyRequest) => {
    const { person, csrfToken } = request.staff!;
    return { ...person, csrfToken };
  };
  registerAccountPages(app, {
    ...{ ...deps, ...at, send, personOf, people: deps.accounts.people },
    isFactorRequired: () => deps.requireSecondFactor,
    changePassword: (request, given) => deps.accounts.changePassword(request.staff!.actor, given),
    providerSection: (request) => oidcSection(deps.oidc, at.base, personOf(request)),
  });
  registerOidcAccount(app, {
    ...deps,
    ...at,
    send,
    area: 'Operations',
    visitorOf: (request) => request.staff!,
  });
}
