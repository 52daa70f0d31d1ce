import { Type } from 'typebox';
import type { Metering } from '#operations/metering/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from './guard.ts';
import { fleetUsagePage } from './usage.page.ts';

const FleetQuery = Type.Object({ period: Type.Optional(Type.String({ maxLength: 16 })) });

/** `/console/billing/usage/api/`: the fleet's API meter. It has nothing to change, so support sees the same page. */
export function registerUsage(app: App, deps: { metering: Metering }): void {
  app.get('/billing/usage/api/', { schema: { querystring: FleetQuery } }, async (request, reply) => {
    const staff = request.staff!;
    const period = request.query.period || null;
    if (period !== null && !/^20\d{2}-(0[1-9]|1[0-2])$/.test(period)) throw noSuchPage();
    const usage = await deps.metering.fleetUsage(staff.actor, period);
    if (usage === null) throw noSuchPage();
    return sendPage(reply, fleetUsagePage({ staff, usage, price: deps.metering.price }));
  });
}
