/** `/console/audit/`: who changed what, on every surface. Operators and support read it; nothing here changes anything. */
import { keptText } from '#contracts/retention.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import { AuditQuery, type AuditTrail, auditTable, readAuditFilter } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { pageHeader, sendPage } from '#service-kit/pages/index.ts';
import { consoleFrame } from '../frame.ts';

const path = '/console/audit/';

export function registerAudit(
  app: App,
  deps: {
    accounts: Accounts;
    auditTrail: AuditTrail;
  },
): void {
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
      consoleFrame(
        {
          staff: request.staff!,
          title: 'Audit trail',
          current: 'audit',
          breadcrumb: [{ label: 'Audit trail' }],
        },
        [
          pageHeader({ title: 'Audit trail', state: { tone: 'info', text } }),
          auditTable({ path, query, ...found, emptyText }),
        ],
      ),
    );
  });
}
