/** Keys and counted requests as the contract shows them. */
import type { schemas } from '#contracts/customer-api/index.ts';
import type { KeyFacts, Principal } from '#operations/api-keys/index.ts';
import { formatQuanta } from '#operations/billing/index.ts';
import type { AccountUsage, OveragePrice } from '#operations/metering/index.ts';

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

export function showUsage(usage: AccountUsage, currency: string, price: OveragePrice): schemas.Usage {
  return {
    tenant_id: usage.tenantId,
    period: usage.period,
    state: usage.isOpen ? 'open' : 'closed',
    count: usage.count,
    included_count: usage.includedCount,
    overage_count: usage.overageCount,
    overage_charged_count: usage.chargedCount,
    overage_amount: formatQuanta(usage.overageQuanta),
    projected_count: usage.projectedCount,
    projected_overage_amount: formatQuanta(usage.projectedOverageQuanta),
    currency,
    price: { per_requests: price.unitRequests, amount: formatQuanta(price.rateQuanta) },
    resets_at: usage.endsAt.toISOString(),
    as_of: usage.asOf.toISOString(),
    keys: usage.keys.map((key) => ({ key_id: key.keyId, name: key.name, count: key.count })),
    days: usage.days,
  };
}
