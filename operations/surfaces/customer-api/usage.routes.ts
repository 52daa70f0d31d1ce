import { schemas } from '#contracts/customer-api/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { Handler } from './call.ts';
import { showUsage } from './usage-views.ts';
import { compileValidator, convertQuery, invalidFields } from './validate-input.ts';

const checkQuery = compileValidator(schemas.UsageQuery);

/** Counted requests of the selected account. */
export function usageHandlers(deps: { metering: Metering }): { readUsage: Handler } {
  return {
    async readUsage(call, request) {
      const { tenant: _, ...rest } = request.query as Record<string, unknown>;
      const query = convertQuery(schemas.UsageQuery, rest);
      checkQuery(query);
      // The number that this call leaves with is the count that it shows.
      await call.counted;
      const usage = await deps.metering.usageOf(call.actor, {
        tenantId: call.tenant.id,
        period: (query as schemas.UsageQuery).period ?? null,
      });
      if (usage !== null) return showUsage(usage, call.tenant.currency, deps.metering.price);
      const message = 'This month has not begun yet.';
      throw invalidFields([{ path: 'period', code: 'future', message }]);
    },
  };
}
