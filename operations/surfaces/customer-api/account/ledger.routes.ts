import { schemas } from '#contracts/customer-api/index.ts';
import { type Billing, formatQuanta } from '#operations/billing/index.ts';
import type { Handler } from '../call.ts';
import { cursorsOf, linkNextPage } from '../request-parts.ts';
import { compileValidator, convertQuery } from '../validate-input.ts';

const checkQuery = compileValidator(schemas.ListLedgerQuery);
const cursors = cursorsOf('ledger');

/** Every movement of the credit. */
export function ledgerHandlers({ billing }: { billing: Billing }): { listLedger: Handler } {
  return {
    async listLedger(call, request, reply) {
      const { tenant: _, ...rest } = request.query as Record<string, unknown>;
      const query = convertQuery(schemas.ListLedgerQuery, rest);
      checkQuery(query);
      const { limit = 50, cursor, ...filter } = query as schemas.ListLedgerQuery;
      const { actor, tenant } = call;
      const before = cursor === undefined ? {} : { beforeId: cursors.read(cursor) };
      const [found, total] = await Promise.all([
        billing.listEntries(actor, tenant.id, { ...filter, ...before, limit: limit + 1 }),
        billing.countEntries(actor, tenant.id, filter),
      ]);
      const page = found.slice(0, limit);
      const next = found.length > limit ? cursors.write(page.at(-1)!.id) : null;
      if (next !== null) linkNextPage(request, reply, next);
      return {
        entries: page.map(
          (entry): schemas.LedgerEntry => ({
            id: entry.id,
            tenant_id: tenant.id,
            amount: formatQuanta(entry.amountQuanta),
            currency: tenant.currency,
            source: entry.metadata.source,
            description: entry.description,
            created_at: entry.createdAt.toISOString(),
          }),
        ),
        pagination: { limit, total, has_more: next !== null, next_cursor: next },
      };
    },
  };
}
