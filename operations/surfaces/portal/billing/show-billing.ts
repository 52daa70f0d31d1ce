/** The page of a workspace's billing, which several routes answer with. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { Clock } from '#common/clock/index.ts';
import type { Accounts, Tenant } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import type { Billing, LedgerFilter } from '#operations/billing/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import { sendPage, type Tone, withQuery } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { billingPage } from './billing.page.ts';

export interface BillingRoutesDeps {
  accounts: Accounts;
  bandwidth: Bandwidth;
  billing: Billing;
  metering: Metering;
  payments: Payments;
  servers: Servers;
  clock: Clock;
  /** Where customers reach us; null: as the request says. */
  publicUrl: string | null;
}

const pageSize = 50;
const chartDays = 30;

/** Back to the page, which says what was done. */
export function back(reply: FastifyReply, tenant: Tenant, done: string): FastifyReply {
  return reply.redirect(withQuery('/client/billing/', { tenant: tenant.id, done }), 303);
}

/** The workspace that is asked for, or the first; another's is a page that does not exist. */
export async function choose(
  deps: BillingRoutesDeps,
  visitor: Visitor,
  asked: string | undefined,
): Promise<{ tenant: Tenant; tenants: Tenant[] }> {
  const tenants = await deps.accounts.findTenants(visitor.actor.tenantIds);
  const tenant = asked ? tenants.find((each) => String(each.id) === asked) : tenants[0];
  if (!tenant) throw noSuchPage();
  return { tenant, tenants };
}

export interface ListQuery {
  tenant?: string;
  source?: string;
  period?: string;
  before?: string;
}

export function filterOf(query: ListQuery): Omit<LedgerFilter, 'limit'> {
  return {
    ...(query.source ? { source: query.source } : {}),
    ...(query.period ? { period: query.period } : {}),
    ...(query.before ? { beforeId: Number(query.before) } : {}),
  };
}

export async function showBilling(
  deps: BillingRoutesDeps,
  visitor: Visitor,
  reply: FastifyReply,
  query: ListQuery,
  said: { toast?: { tone: Tone; text: string } | undefined; error?: string },
  status = 200,
): Promise<FastifyReply> {
  const { tenant, tenants } = await choose(deps, visitor, query.tenant);
  const { actor } = visitor;
  const filter = filterOf(query);
  const [balanceQuanta, month, days, entries, cards, charges, serverQuanta, usage, traffic] =
    await Promise.all([
      deps.billing.balanceOf(actor, tenant.id),
      deps.billing.sumMonth(actor, tenant.id),
      deps.billing.sumDays(actor, tenant.id, chartDays),
      deps.billing.listEntries(actor, tenant.id, { ...filter, limit: pageSize + 1 }),
      deps.payments.listCards(actor, tenant.id),
      deps.payments.listCharges(actor, tenant.id, 20),
      deps.servers.remainingCostOfMonth(actor, tenant.id),
      deps.metering.usageOf(actor, { tenantId: tenant.id, period: null }),
      deps.bandwidth.readAccount(actor, { tenantId: tenant.id, openedAt: tenant.createdAt }),
    ]);
  const overage = usage?.projection ? usage.projection.overageQuanta - usage.overageQuanta : 0;
  const nowMs = deps.clock.nowMs();
  const page = billingPage({
    visitor,
    tenant,
    tenants,
    balanceQuanta,
    month,
    days,
    traffic,
    ahead: { serverQuanta, overageQuanta: Math.max(0, overage) },
    entries: entries.slice(0, pageSize),
    filter: {
      source: query.source ?? '',
      period: query.period ?? '',
      beforeId: filter.beforeId,
      nextBeforeId: entries.length > pageSize ? entries[pageSize - 1]!.id : undefined,
    },
    periods: periodsSince(tenant.createdAt, nowMs),
    cards,
    waiting: charges.filter((charge) => ['intended', 'prepared', 'unconfirmed'].includes(charge.state)),
    cardEntry: deps.payments.cardEntry,
    formId: randomUUID(),
    nowMs,
    ...said,
  });
  return sendPage(reply, page, status);
}

/** The months of an account, the newest first, at most three years of them. */
function periodsSince(since: Date, nowMs: number): string[] {
  const periods: string[] = [];
  const now = new Date(nowMs);
  for (let back = 0; back < 36; back += 1) {
    const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1));
    periods.push(month.toISOString().slice(0, 7));
    if (month <= since) break;
  }
  return periods;
}
