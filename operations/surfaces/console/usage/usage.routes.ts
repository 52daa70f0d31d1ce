/** The API meter of the fleet and of one account. It has nothing to change, so support sees the same pages. */
import { Type } from 'typebox';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { accountUsagePage } from './account-usage.page.ts';
import { fleetUsagePage } from './usage.page.ts';

const text = Type.Optional(Type.String({ maxLength: 16 }));
const FleetQuery = Type.Object({ period: text, by: text, page: text });
const Id = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
const monthsShown = 12;

export function registerUsage(
  app: App,
  deps: {
    accounts: Accounts;
    metering: Metering;
  },
): void {
  const { metering } = deps;
  app.get('/billing/usage/api/', { schema: { querystring: FleetQuery } }, async (request, reply) => {
    const staff = request.staff!;
    const page = Math.max(1, Math.floor(Number(request.query.page)) || 1);
    const isByKey = request.query.by === 'key';
    const period = readPeriod(request.query.period);
    const usage = await metering.fleetUsage(staff.actor, period, isByKey ? 1 : page);
    if (usage === null) throw noSuchPage();
    const [keys, months] = await Promise.all([
      isByKey ? metering.fleetKeys(staff.actor, usage.period, page) : null,
      metering.lastMonths(staff.actor, null, monthsShown),
    ]);
    return sendPage(reply, fleetUsagePage({ staff, usage, keys, months, price: metering.price, page }));
  });

  app.get(
    '/billing/usage/api/accounts/:id',
    { schema: { params: Id, querystring: Type.Object({ period: text }) } },
    async (request, reply) => {
      const staff = request.staff!;
      const tenantId = request.params.id;
      const period = readPeriod(request.query.period);
      const tenant = await deps.accounts.findTenant(tenantId);
      const usage = tenant && (await metering.usageOf(staff.actor, { tenantId, period }));
      if (!tenant || !usage) throw noSuchPage();
      const months = await metering.lastMonths(staff.actor, tenantId, monthsShown);
      return sendPage(reply, accountUsagePage({ staff, tenant, usage, months }));
    },
  );
}

/** `2025-11`, or null for the running month. */
function readPeriod(given: string | undefined): string | null {
  const period = given || null;
  if (period !== null && !/^20\d{2}-(0[1-9]|1[0-2])$/.test(period)) throw noSuchPage();
  return period;
}
