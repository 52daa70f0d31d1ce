/** `/client/developer/usage/`: counted requests of the workspaces that the person reaches. */
import { Type } from 'typebox';
import type { Accounts, Tenant } from '#operations/accounts/index.ts';
import type { AccountUsage, Metering } from '#operations/metering/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { csvLines, sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage, sendCsv } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { usagePage } from './usage.page.ts';

interface UsageDeps {
  accounts: Accounts;
  metering: Metering;
}

const UsageQuery = Type.Object({
  tenant: Type.Optional(Type.String({ maxLength: 16 })),
  period: Type.Optional(Type.String({ maxLength: 16 })),
});

export function registerUsage(app: App, deps: UsageDeps): void {
  app.get('/developer/usage/', { schema: { querystring: UsageQuery } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant, tenants, usage } = await find(deps, visitor, request.query);
    return sendPage(reply, usagePage({ visitor, tenant, tenants, usage }));
  });

  app.get('/developer/usage.csv', { schema: { querystring: UsageQuery } }, async (request, reply) => {
    const { tenant, usage } = await find(deps, request.visitor!, request.query);
    const name = `api-usage-${tenant.slug}-${usage.period}.csv`;
    return sendCsv(
      reply,
      name,
      csvLines([['date', 'requests'], ...usage.days.map((day) => [day.date, day.count])]),
    );
  });
}

/** The month that is asked for; the 404 of a page for another's workspace, a month to come and nonsense alike. */
async function find(
  deps: UsageDeps,
  { actor }: Visitor,
  query: { tenant?: string; period?: string },
): Promise<{ tenant: Tenant; tenants: Tenant[]; usage: AccountUsage }> {
  const tenants = await deps.accounts.findTenants(actor.tenantIds);
  const tenant = query.tenant ? tenants.find((one) => String(one.id) === query.tenant) : tenants[0];
  const period = query.period || null;
  if (!tenant || (period !== null && !/^20\d{2}-(0[1-9]|1[0-2])$/.test(period))) throw noSuchPage();
  const usage = await deps.metering.usageOf(actor, { tenantId: tenant.id, period });
  if (usage === null) throw noSuchPage();
  return { tenant, tenants, usage };
}
