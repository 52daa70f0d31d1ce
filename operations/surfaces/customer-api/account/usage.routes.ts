import { schemas } from '#contracts/customer-api/index.ts';
import type { KeyFacts, Principal } from '#operations/api-keys/index.ts';
import { formatQuanta } from '#operations/billing/index.ts';
import type { Features } from '#operations/features.ts';
import type { AccountUsage } from '#operations/metering/index.ts';
import { preferredType } from '#service-kit/http/index.ts';
import { csvLines } from '#service-kit/pages/index.ts';
import type { Handlers } from '../call.ts';
import { queryReader } from '../request-parts.ts';
import { invalidFields } from '../validate-input.ts';

const readQuery = queryReader(schemas.UsageQuery);

/** Counted requests of the selected account. */
export function usageHandlers(deps: Features) {
  return {
    async readUsage(call, request, reply) {
      const { period = null, group_by: groupBy = null } = readQuery(request);
      // The number that this call leaves with is the count that it shows.
      await call.counted;
      const usage = await deps.metering.usageOf(call.actor, { tenantId: call.tenant.id, period });
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
  } satisfies Handlers;
}

/** Keys and counted requests as the contract shows them. */
export function showKey(
  principal: Principal,
  facts: KeyFacts,
  budget: { limit: number; remaining: number },
): schemas.Key {
  return {
    key_id: principal.keyId,
    name: facts.name,
    prefix: `svc_${principal.keyId.slice(0, 4)}`,
    scope: principal.scope,
    tenant_access: facts.tenantAccess,
    tenants: principal.tenants.map((tenant) => tenant.id),
    default_tenant_id: principal.tenants[0]!.id,
    organization_id: principal.organizationId,
    created_at: facts.createdAt.toISOString(),
    expires_at: facts.expiresAt?.toISOString() ?? null,
    last_used_at: facts.lastUsedAt?.toISOString() ?? null,
    rate_limit: { limit: budget.limit, window_s: 60, remaining: budget.remaining },
  };
}

/** What `groups` and the lines of the CSV count by. */
type UsageGrouping = NonNullable<schemas.UsageQuery['group_by']>;

export function showUsage(
  usage: AccountUsage,
  currency: string,
  groupBy: UsageGrouping | null = null,
): schemas.Usage {
  return {
    tenant_id: usage.tenantId,
    period: usage.period,
    state: usage.isOpen ? 'open' : 'closed',
    count: usage.count,
    included_count: usage.includedCount,
    overage_count: usage.overageCount,
    overage_charged_count: usage.chargedCount,
    overage_amount: formatQuanta(usage.overageQuanta),
    projected_count: usage.projection?.count ?? null,
    projected_overage_amount: usage.projection && formatQuanta(usage.projection.overageQuanta),
    projection_hours: usage.projection?.hours ?? null,
    currency,
    price: { per_requests: usage.price.unitRequests, amount: formatQuanta(usage.price.rateQuanta) },
    resets_at: usage.endsAt.toISOString(),
    as_of: usage.asOf.toISOString(),
    keys: usage.keys.map((key) => ({ key_id: key.keyId, name: key.name, count: key.count })),
    days: usage.days,
    group_by: groupBy,
    groups: groupBy === null ? null : groupUsage(usage, groupBy),
  };
}

function groupUsage(usage: AccountUsage, groupBy: UsageGrouping): NonNullable<schemas.Usage['groups']> {
  if (groupBy === 'day') return usage.days.map(({ date, count }) => ({ group: date, name: null, count }));
  return usage.keys.map(({ keyId, name, count }) => ({ group: keyId, name, count }));
}

/** A line for each day or key, below the names of its columns (RFC 4180). */
function writeUsageCsv(usage: AccountUsage, groupBy: UsageGrouping): string {
  return csvLines(
    groupBy === 'day'
      ? [['date', 'count'], ...usage.days.map(({ date, count }) => [date, count])]
      : [['key_id', 'name', 'count'], ...usage.keys.map(({ keyId, name, count }) => [keyId, name, count])],
  );
}
