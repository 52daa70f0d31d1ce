/** One's own account at `/console/account/`, and the audit trail of all changes. */

import type { FastifyRequest } from 'fastify';
import { keptText } from '#contracts/retention.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import { AuditQuery, auditTable, readAuditFilter } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type Oidc, oidcSection, registerOidcAccount } from '#service-kit/oidc/index.ts';
import { pageHeader, sendPage } from '#service-kit/pages/index.ts';
import {
  type AccountPagesDeps,
  type AccountPagesOptions,
  registerAccountPages,
} from '#service-kit/sign-in/index.ts';
import { consoleFrame } from '../frame.ts';

/** `/console/account/`: one's own password and sessions. */
export function registerAccount(
  app: App,
  deps: AccountPagesDeps & { accounts: Accounts; oidc: Oidc; requireSecondFactor: boolean },
): void {
  const at = { path: '/account', base: '/console/account' };
  const send: AccountPagesOptions['send'] = (request, reply, { title, content, toast: text, status }) => {
    const toast = text === undefined ? undefined : { tone: 'good' as const, text };
    const staff = request.staff!;
    return sendPage(reply, consoleFrame({ staff, title, current: 'account', toast }, content), status);
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

const auditPath = '/console/audit/';

/** `/console/audit/`: who changed what, on every surface. Operators and support read it; nothing here changes anything. */
export function registerAudit(app: App, deps: Features): void {
  app.get('/audit/', { schema: { querystring: AuditQuery } }, async (request, reply) => {
    const { query } = request;
    const asked = readAuditFilter(query);
    // A key is found by its person's address too, which its entries do not hold.
    const person = asked.who?.includes('@') ? await deps.accounts.findPersonByEmail(asked.who) : null;
    const filter = { ...asked, whoPersonId: person?.id };
    if (query.format) return deps.auditTrail.sendFile(reply, filter, query.format);
    const found = await deps.auditTrail.page(filter, query);
    const text = `Every change by a person, an API key, a token, a command or a job. Kept for ${keptText('audit')}.`;
    const emptyText = 'The first change by a person, an API key, a command or a job appears here.';
    return sendPage(
      reply,
      consoleFrame({ staff: request.staff!, title: 'Audit trail', current: 'audit' }, [
        pageHeader({ title: 'Audit trail', state: { tone: 'info', text } }),
        auditTable({ path: auditPath, query, ...found, emptyText }),
      ]),
    );
  });
}
