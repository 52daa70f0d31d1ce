import { keptText } from '#contracts/retention.ts';
import type { Features } from '#operations/features.ts';
import { AuditQuery, auditTable, readAuditFilter, type StoredEntry } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { pageHeader, sendPage } from '#service-kit/pages/index.ts';
import { registerAccountPages } from '#service-kit/sign-in/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';

/** `/client/account/`: one's own password and sessions. */
export function registerAccount(app: App, deps: Features): void {
  registerAccountPages(app, {
    ...deps,
    people: deps.accounts.people,
    publicUrl: deps.settings.publicUrl,
    path: '/account',
    base: '/client/account',
    personOf: (request) => ({ ...request.visitor!.person, csrfToken: request.visitor!.csrfToken }),
    isFactorRequired: () => false,
    changePassword: (request, given) => deps.accounts.changePassword(request.visitor!.actor, given),
    send: (request, reply, { title, content, toast: text, status }) => {
      const toast = text === undefined ? undefined : { tone: 'good' as const, text };
      const visitor = request.visitor!;
      return sendPage(reply, portalFrame({ visitor, title, current: 'account', toast }, content), status);
    },
  });
}

const path = '/client/activity/';

/** `/client/activity/`: the audit trail of the customer's own organization. */
export function registerActivity(app: App, deps: Features): void {
  app.get('/activity/', { schema: { querystring: AuditQuery } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { query } = request;
    const filter = { ...readAuditFilter(query), scope: scopeOf(visitor) };
    if (query.format) return deps.auditTrail.sendFile(reply, filter, query.format, withoutStaff);
    const { entries, nextBefore } = await deps.auditTrail.page(filter, query);
    const text = `Changes to your servers, keys, cards and people. Kept for ${keptText('audit')}.`;
    const emptyText = 'Changes by your people, your API keys and our operators appear here.';
    const shown = entries.map(withoutStaff);
    return sendPage(
      reply,
      portalFrame({ visitor, title: 'Activity', current: 'activity' }, [
        pageHeader({ title: 'Activity', state: { tone: 'info', text } }),
        auditTable({ path, query, entries: shown, nextBefore, emptyText }),
      ]),
    );
  });
}

/** What concerns the organization itself, such as its members and keys, is its owner's to read. */
function scopeOf({ actor: { ownedOrganizationIds, tenantIds, personId } }: Visitor) {
  return { organizationIds: ownedOrganizationIds, tenantIds, personId };
}

/** The newest entries that the visitor may read. */
export async function readLatestActivity(
  { auditTrail }: Features,
  visitor: Visitor,
): Promise<readonly StoredEntry[]> {
  const { entries } = await auditTrail.page({ scope: scopeOf(visitor) }, {});
  return entries.map(withoutStaff);
}

/** That an operator did it is for customers to know; which of them, and from which address, is not. */
function withoutStaff(entry: StoredEntry): StoredEntry {
  if (entry.actorKind !== 'staff') return entry;
  return { ...entry, actorId: null, actorName: null, personId: null, sourceAddress: null };
}
