import { schemas } from '#contracts/customer-api/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import { preferredType } from '#service-kit/http/index.ts';
import type { Handler } from '../call.ts';
import { compileValidator, convertQuery, invalidFields } from '../validate-input.ts';
import { showUsage, writeUsageCsv } from './usage-views.ts';

const checkQuery = compileValidator(schemas.UsageQuery);

/** Counted requests of the selected account. */
export function usageHandlers(deps: { metering: Metering }): { readUsage: Handler } {
  return {
    async readUsage(call, request, reply) {
      const { tenant: _, ...rest } = request.query as Record<string, unknown>;
      const query = convertQuery(schemas.UsageQuery, rest);
      checkQuery(query);
      const { period = null, group_by: groupBy = null } = query as schemas.UsageQuery;
      // The number that this call leaves with is the count that it shows.
      await call.counted;
      const usage = await deps.metering.usageOf(call.actor, {
        tenantId: call.tenant.id,
        period,
      });
      if (usage === null) {
        const message = 'This month has not begun yet.';
        throw invalidFields([{ path: 'period', code: 'future', message }]);
      }
      if (preferredType(request.headers.accept, ['application/json', 'text/csv']) === 'text/csv') {
        reply.type('text/csv; charset=utf-8');
        return writeUsageCsv(usage, groupBy ?? 'day');
      }
      return showUsage(usage, call.tenant.currency, groupBy);
    },
  };
}
