import type { FastifyReply } from 'fastify';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type AuditQuery, auditRowsShown } from './audit.page.ts';
import type { StoredEntry } from './entry.ts';
import { exportEntries } from './export-entries.ts';
import { readEntries, streamEntries } from './read-entries.ts';
import type { AuditFilter } from './store.ts';

/** The trail as a surface reads it: pages, and files of everything that fits. */
export type AuditTrail = ReturnType<typeof createAuditTrail>;

export function createAuditTrail(deps: { db: () => Queryable }) {
  return {
    page: (filter: AuditFilter, query: AuditQuery) =>
      readEntries(deps.db(), filter, {
        before: query.before ? Number(query.before) : null,
        limit: auditRowsShown,
      }),
    /** Answers with a file, streamed; `change` is applied to every entry first. */
    sendFile(
      reply: FastifyReply,
      filter: AuditFilter,
      format: 'csv' | 'json',
      change: (entry: StoredEntry) => StoredEntry = (entry) => entry,
    ): FastifyReply {
      async function* changed() {
        for await (const batch of streamEntries(deps.db(), filter)) yield batch.map(change);
      }
      return reply
        .type(format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8')
        .headers({
          'content-disposition': `attachment; filename="audit-trail.${format}"`,
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
        })
        .send(exportEntries(changed(), format));
    },
  };
}
