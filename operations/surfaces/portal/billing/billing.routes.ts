/** `/client/billing/`: credit, cards and the ledger of one workspace. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts, Tenant } from '#operations/accounts/index.ts';
import { type Billing, formatQuanta, type LedgerFilter, parseMoney } from '#operations/billing/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage, type Tone, withQuery } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { billingPage } from './billing.page.ts';
import { labelOf } from './billing-ledger.ts';
import { cardReturnPage, gatewayPage } from './card-setup.page.ts';

export interface BillingRoutesDeps {
  accounts: Accounts;
  billing: Billing;
  metering: Metering;
  payments: Payments;
  servers: Servers;
  clock: Clock;
  /** Where customers reach us; null: as the request says. */
  publicUrl: string | null;
}

const Query = Type.Object({
  tenant: Type.Optional(Type.String()),
  source: Type.Optional(Type.String({ maxLength: 40 })),
  period: Type.Optional(Type.String({ pattern: '^(|[0-9]{4}-(0[1-9]|1[0-2]))$' })),
  before: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,14}$' })),
  done: Type.Optional(Type.String()),
});
const TenantForm = Type.Object({ tenant: Type.String() });
const CardForm = Type.Object({ tenant: Type.String(), card: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) });
const TestCardForm = Type.Object({ tenant: Type.String(), number: Type.String({ maxLength: 40 }) });
const CreditForm = Type.Object({
  tenant: Type.String(),
  amount: Type.String({ maxLength: 20 }),
  form_id: Type.String({ maxLength: 40 }),
});
const ReturnQuery = Type.Object({ tenant: Type.String(), setup: Type.String({ maxLength: 300 }) });

const pageSize = 50;
const csvMax = 100_000;
const chartDays = 30;

/** What the page says after something was done. */
const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  card: { tone: 'good', text: 'The card is saved and will be charged from now on.' },
  default: { tone: 'good', text: 'This card will be charged from now on.' },
  removed: { tone: 'good', text: 'The card is removed.' },
  credit: { tone: 'good', text: 'The credit is added.' },
  declined: { tone: 'bad', text: 'The card was declined; nothing was charged. Try another card.' },
  unconfirmed: {
    tone: 'warn',
    text: 'Payment result unknown. If it was charged, we void or refund it automatically. Wait before you try again.',
  },
};

export function registerBilling(app: App, deps: BillingRoutesDeps): void {
  app.get('/billing/', { schema: { querystring: Query } }, async (request, reply) => {
    const { done, ...query } = request.query;
    return show(deps, request.visitor!, reply, query, { toast: done ? outcomes[done] : undefined });
  });

  app.get('/billing/ledger.csv', { schema: { querystring: Query } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.query.tenant);
    const filter = filterOf(request.query);
    const entries = await deps.billing.listEntries(visitor.actor, tenant.id, { ...filter, limit: csvMax });
    const lines = entries.map((entry) =>
      [
        entry.id,
        entry.createdAt.toISOString(),
        entry.metadata.source,
        labelOf(entry.metadata.source),
        quote(entry.description),
        formatQuanta(entry.amountQuanta),
        tenant.currency,
      ].join(','),
    );
    const name = `ledger-${tenant.slug}${filter.period ? `-${filter.period}` : ''}.csv`;
    return reply
      .type('text/csv; charset=utf-8')
      .headers({ 'content-disposition': `attachment; filename="${name}"`, 'cache-control': 'no-store' })
      .send(`${['id,time,source,what_for,description,amount,currency', ...lines].join('\r\n')}\r\n`);
  });

  app.post(
    '/billing/cards/new',
    { config: { isSensitive: true }, schema: { body: TenantForm } },
    async (request, reply) => {
      const visitor = request.visitor!;
      const { tenant } = await choose(deps, visitor, request.body.tenant);
      const profile = await deps.accounts.billingProfileOf(tenant.id);
      const base = deps.publicUrl ?? `${request.protocol}://${request.host}`;
      const url = await deps.payments.startCardSetup(
        visitor.actor,
        { ...tenant, email: profile?.email ?? null },
        {
          returnUrl: `${base}/client/billing/cards/return?tenant=${tenant.id}`,
          cancelUrl: `${base}/client/billing/?tenant=${tenant.id}`,
        },
      );
      return sendPage(reply, gatewayPage(visitor, url));
    },
  );

  // The gateway sends the customer back here with a GET, which changes nothing: the card is saved by the form that this
  // page shows, with the session's token. Otherwise a link on another site could choose the card that is charged.
  app.get('/billing/cards/return', { schema: { querystring: ReturnQuery } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.query.tenant);
    return sendPage(reply, cardReturnPage(visitor, tenant, request.query.setup));
  });

  app.post('/billing/cards/return', { schema: { body: ReturnQuery } }, async (request, reply) => {
    const { tenant, setup } = request.body;
    return saveCard(deps, request, reply, tenant, setup);
  });

  app.post('/billing/cards/test', { schema: { body: TestCardForm } }, async (request, reply) => {
    if (deps.payments.gatewayName !== 'test') throw noSuchPage();
    return saveCard(deps, request, reply, request.body.tenant, request.body.number);
  });

  app.post(
    '/billing/cards/default',
    { config: { isSensitive: true }, schema: { body: CardForm } },
    async (request, reply) => {
      const visitor = request.visitor!;
      const { tenant } = await choose(deps, visitor, request.body.tenant);
      if (!(await deps.payments.makeCardDefault(visitor.actor, tenant.id, Number(request.body.card))))
        throw noSuchPage();
      return back(reply, tenant, 'default');
    },
  );

  app.post(
    '/billing/cards/remove',
    { config: { isSensitive: true }, schema: { body: CardForm } },
    async (request, reply) => {
      const visitor = request.visitor!;
      const { tenant } = await choose(deps, visitor, request.body.tenant);
      if (!(await deps.payments.removeCard(visitor.actor, tenant.id, Number(request.body.card))))
        throw noSuchPage();
      return back(reply, tenant, 'removed');
    },
  );

  app.post(
    '/billing/credit',
    { config: { isSensitive: true }, schema: { body: CreditForm } },
    async (request, reply) => {
      const visitor = request.visitor!;
      const { tenant } = await choose(deps, visitor, request.body.tenant);
      try {
        const outcome = await deps.payments.addCredit(visitor.actor, tenant.id, {
          amountQuanta: parseMoney(request.body.amount) ?? 0,
          formId: request.body.form_id,
        });
        return back(reply, tenant, outcome.kind === 'succeeded' ? 'credit' : outcome.kind);
      } catch (error) {
        if (!(error instanceof CodedError) || !error.code.startsWith('payments.')) throw error;
        return show(deps, visitor, reply, { tenant: String(tenant.id) }, { error: error.message }, 422);
      }
    },
  );
}

async function saveCard(
  deps: BillingRoutesDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  tenantText: string,
  setup: string,
): Promise<FastifyReply> {
  const visitor = request.visitor!;
  const { tenant } = await choose(deps, visitor, tenantText);
  try {
    await deps.payments.finishCardSetup(visitor.actor, tenant.id, setup);
    return back(reply, tenant, 'card');
  } catch (error) {
    if (!(error instanceof CodedError) || error.code !== 'payments.no_card') throw error;
    return show(deps, visitor, reply, { tenant: String(tenant.id) }, { error: error.message }, 422);
  }
}

function back(reply: FastifyReply, tenant: Tenant, done: string): FastifyReply {
  return reply.redirect(withQuery('/client/billing/', { tenant: tenant.id, done }), 303);
}

/** The workspace that is asked for, or the first; another's is a page that does not exist. */
async function choose(
  deps: BillingRoutesDeps,
  visitor: Visitor,
  asked: string | undefined,
): Promise<{ tenant: Tenant; tenants: Tenant[] }> {
  const tenants = await deps.accounts.findTenants(visitor.actor.tenantIds);
  const tenant = asked ? tenants.find((each) => String(each.id) === asked) : tenants[0];
  if (!tenant) throw noSuchPage();
  return { tenant, tenants };
}

interface ListQuery {
  tenant?: string;
  source?: string;
  period?: string;
  before?: string;
}

function filterOf(query: ListQuery): Omit<LedgerFilter, 'limit'> {
  return {
    ...(query.source ? { source: query.source } : {}),
    ...(query.period ? { period: query.period } : {}),
    ...(query.before ? { beforeId: Number(query.before) } : {}),
  };
}

async function show(
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
  const [balanceQuanta, month, days, entries, cards, charges, serverQuanta, usage] = await Promise.all([
    deps.billing.balanceOf(actor, tenant.id),
    deps.billing.sumMonth(actor, tenant.id),
    deps.billing.sumDays(actor, tenant.id, chartDays),
    deps.billing.listEntries(actor, tenant.id, { ...filter, limit: pageSize + 1 }),
    deps.payments.listCards(actor, tenant.id),
    deps.payments.listCharges(actor, tenant.id, 20),
    deps.servers.remainingCostOfMonth(actor, tenant.id),
    deps.metering.usageOf(actor, { tenantId: tenant.id, period: null }),
  ]);
  const overage = usage ? usage.projectedOverageQuanta - usage.overageQuanta : 0;
  const nowMs = deps.clock.nowMs();
  const page = billingPage({
    visitor,
    tenant,
    tenants,
    balanceQuanta,
    month,
    days,
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
    gatewayName: deps.payments.gatewayName,
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

/** A CSV cell; what a spreadsheet would take for a formula is told apart by an apostrophe. */
function quote(text: string): string {
  return `"${text.replace(/^[=+\-@]/, "'$&").replaceAll('"', '""')}"`;
}
