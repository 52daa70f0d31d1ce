import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { bandwidthPage } from './bandwidth.page.ts';
import { findServerOf } from './guard-server.ts';

export interface BandwidthPagesDeps {
  accounts: Accounts;
  bandwidth: Bandwidth;
  servers: Servers;
  clock: Clock;
}

const Query = Type.Object({ by: Type.Optional(Type.String()) });

export function registerBandwidth(app: App, deps: BandwidthPagesDeps): void {
  app.get(
    '/servers/:id/bandwidth',
    { schema: { params: Type.Object({ id: Type.String() }), querystring: Query } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const { source, poolCounts } = deps.bandwidth;
      const granularity = request.query.by === 'month' ? 'month' : 'day';
      const tenant = await deps.accounts.findTenant(server.tenantId);
      if (tenant === null) throw noSuchPage();
      const account = { tenantId: tenant.id, openedAt: tenant.createdAt };
      const [history, pool] = await Promise.all([
        deps.bandwidth.readHistory(visitor.actor, server.tenantId, server.id, { granularity }),
        deps.bandwidth.readAccount(visitor.actor, account),
      ]);
      if (history === null) throw noSuchPage();
      const nowMs = deps.clock.nowMs();
      const page = { visitor, server, history, account: pool, source, poolCounts, nowMs };
      return sendPage(reply, bandwidthPage(page));
    },
  );
}
