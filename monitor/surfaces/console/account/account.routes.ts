import type { FastifyRequest } from 'fastify';
import { keptText } from '#contracts/retention.ts';
import { AuditQuery, auditTable, readAuditFilter } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { oidcSection, registerOidcAccount } from '#service-kit/oidc/index.ts';
import { pageHeader, toast as toastOf } from '#service-kit/pages/index.ts';
import { type AccountPagesOptions, registerAccountPages } from '#service-kit/sign-in/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';

/** `/account/`: the signed-in person's own password and sessions. */
export function registerAccount(app: App, deps: ConsoleDeps): void {
  const at = { path: '/account', base: '/account' };
  const send: AccountPagesOptions['send'] = (_request, reply, { title, content, toast, status }) => {
    const options = toast === undefined ? {} : { toast: toastOf('good', toast) };
    return sendConsolePage(reply, { title, status, ...options }, content);
  };
  const personOf = (request: FastifyRequest) => {
    const { operator, csrfToken } = viewerOf(request);
    return { ...operator, csrfToken };
  };
  registerAccountPages(app, {
    ...{ ...deps, ...at, send, personOf, people: deps.operators.people },
    isFactorRequired: () => deps.requireSecondFactor,
    changePassword: (request, given) => {
      const { actor, operator } = viewerOf(request);
      return deps.operators.changeOwnPassword(actor, operator.id, given);
    },
    providerSection: (request) => oidcSection(deps.oidc, at.base, personOf(request)),
  });
  registerOidcAccount(app, {
    ...{ ...deps, ...at, send, area: 'Monitor' },
    visitorOf: (request) => ({ ...viewerOf(request), person: viewerOf(request).operator }),
  });
}

// `/audit`: changes in the monitor, and who made them. Viewers can read it; nothing can be changed here.

const path = '/audit';

export function registerAudit(app: App, deps: ConsoleDeps): void {
  app.get(path, { schema: { querystring: AuditQuery } }, async (request, reply) => {
    const { query } = request;
    const filter = readAuditFilter(query);
    if (query.format) return deps.auditTrail.sendFile(reply, filter, query.format);
    const found = await deps.auditTrail.page(filter, query);
    const text = `Every change by an operator, a sensor or a command. Kept for ${keptText('audit')}.`;
    const emptyText = 'The first change by an operator, a sensor or a command appears here.';
    return sendConsolePage(reply, { title: 'Audit trail' }, [
      pageHeader({ title: 'Audit trail', state: { tone: 'info', text } }),
      auditTable({ path, query, ...found, emptyText }),
    ]);
  });
}
