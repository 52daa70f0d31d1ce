import { schemas } from '#contracts/customer-api/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import { type Billing, formatQuanta, judgeDeployment } from '#operations/billing/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { Networks } from '#operations/networks/index.ts';
import type { Ordering } from '#operations/ordering/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { Call, Handler } from '../call.ts';
import { idOf } from '../request-parts.ts';
import { notFound } from '../select-tenant.ts';
import { compileValidator, convertQuery } from '../validate-input.ts';
import { showBandwidthRow, showPool } from './account-views.ts';
import { showUsage } from './usage-views.ts';

interface AccountHandlerDeps {
  apiKeys: ApiKeys;
  bandwidth: Bandwidth;
  billing: Billing;
  metering: Metering;
  networks: Networks;
  ordering: Ordering;
  servers: Servers;
}

const checkQuery = compileValidator(schemas.BandwidthQuery);

/** The account payload, and one server's bandwidth. */
export function accountHandlers(deps: AccountHandlerDeps): {
  readAccount: Handler;
  readServerBandwidth: Handler;
} {
  return {
    readAccount: (call) => showAccount(deps, call),

    async readServerBandwidth(call, request) {
      const id = idOf(request);
      const { tenant: _, ...rest } = request.query as Record<string, unknown>;
      const query = convertQuery(schemas.BandwidthQuery, rest);
      // A missing resource is a 404 before the body is validated.
      if ((await deps.servers.findServer(call.actor, call.tenant.id, id)) === null) throw notFound();
      checkQuery(query);
      const { from, to, granularity = 'month' } = query as schemas.BandwidthQuery;
      const wanted = { from, to, granularity };
      const history = await deps.bandwidth.readHistory(call.actor, call.tenant.id, id, wanted);
      if (history === null) throw notFound();
      return {
        server_id: id,
        granularity,
        source: deps.bandwidth.source,
        current: showBandwidthRow(history.current),
        history: history.rows.map(showBandwidthRow),
        attribution_only: true,
      } satisfies schemas.ServerBandwidth;
    },
  };
}

async function showAccount(deps: AccountHandlerDeps, call: Call): Promise<schemas.Account> {
  const { actor, tenant } = call;
  // The number that this call leaves with is the count that it shows.
  await call.counted;
  const [access, balance, bandwidth, usage, networks, keys, deploys, servers] = await Promise.all([
    deps.billing.accessOf([tenant.id]),
    deps.billing.balanceOf(actor, tenant.id),
    deps.bandwidth.readAccount(actor, { tenantId: tenant.id, openedAt: new Date(tenant.createdAt) }),
    deps.metering.usageOf(actor, { tenantId: tenant.id, period: null }),
    deps.networks.countOfTenants([tenant.id]),
    deps.apiKeys.countActive(actor.personId),
    deps.ordering.deploysOf(actor, tenant.id),
    deps.servers.countOfTenants([tenant.id]),
  ]);
  const facts = access.get(tenant.id);
  if (facts === undefined || usage === null) throw notFound();
  const refusal = judgeDeployment(facts);
  return {
    id: tenant.id,
    name: tenant.name,
    status: tenant.status.toLowerCase() as schemas.Account['status'],
    currency: tenant.currency,
    credit_balance: formatQuanta(balance),
    hourly_billing: { eligible: refusal === null, reason: refusal?.reason ?? null },
    limits: {
      servers: { max: null, used: servers.get(tenant.id) ?? 0 },
      networks: { max: deps.networks.networksMax, used: networks.get(tenant.id) ?? 0 },
      keys: keys,
      deploys_per_hour: { max: deploys.limit, used: deploys.used },
    },
    api_usage: showUsage(usage, tenant.currency),
    ...showPool(bandwidth, deps.bandwidth),
    as_of: usage.asOf.toISOString(),
  };
}
