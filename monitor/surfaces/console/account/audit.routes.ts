/** `/audit`: changes in the monitor, and who made them. Viewers can read it; nothing can be changed here. */
import { keptText } from '#contracts/retention.ts';
import { AuditQuery, auditTable, readAuditFilter } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { pageHeader } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';

const path = '/audit';

export function registerAudit(app: App, deps: ConsoleDeps): void {
  app.get(path, { schema: { querystring: AuditQuery } }, async (request, reply) => {
    const { query } = request;
    const filter = readAuditFilter(query);
    if (query.format) return deps.auditTrail.sendFile(reply, filter, query.format);
    const found = await deps.auditTrail.page(filter, query);
    const text = `Every change by an operator, a sensor or a command. Kept for ${keptText('audit')}.`;
    const emptyText = 'The first change by an operator, a sensor or a command appears here.';
    return sendConsolePage(request, reply, { title: 'Audit trail' }, [
      pageHeader({ title: 'Audit trail', state: { tone: 'info', text } }),
      auditTable({ path, query, ...found, emptyText }),
    ]);
  });
}
