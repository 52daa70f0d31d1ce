import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { Handler } from '../call.ts';
import { notFound } from '../select-tenant.ts';
import { showKey } from './usage-views.ts';

/** The key that calls, and nothing about any other. */
export function keyHandlers(deps: { apiKeys: ApiKeys; requestsPerMinute: number }): { readKey: Handler } {
  return {
    async readKey(call) {
      const facts = await deps.apiKeys.factsOf(call.principal);
      if (facts === null) throw notFound();
      return showKey(call.principal, facts, {
        limit: deps.requestsPerMinute,
        remaining: call.budgetRemaining,
      });
    },
  };
}
