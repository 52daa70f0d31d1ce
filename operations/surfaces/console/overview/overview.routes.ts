import type { Clock } from '#common/clock/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { AdminProjects } from '#operations/admin-projects/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import type { ProtectIncidents, ProtectTraffic } from '#operations/protect/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { Webhooks } from '#operations/webhooks/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Limits } from '#service-kit/limits/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import type { Staff } from '../guard.ts';
import { readListTraffic } from '../traffic-columns.ts';
import { overviewPage } from './overview.page.ts';
import type { OverviewFacts } from './overview-facts.ts';
import { mostTraffic, type TopTalkers } from './top-talkers.ts';

export interface OverviewDeps {
  limits: Pick<Limits, 'findProblem'>;
  accounts: Accounts;
  addresses: Addresses;
  adminProjects: AdminProjects;
  billing: Billing;
  catalog: Catalog;
  clusters: Clusters;
  metering: Metering;
  payments: Payments;
  protectIncidents: ProtectIncidents;
  protectTraffic: ProtectTraffic;
  servers: Servers;
  webhooks: Webhooks;
  clock: Clock;
}

const chargesMax = 100;

/** `/console/`: where staff land. */
export function registerOverview(app: App, deps: OverviewDeps): void {
  app.get('/', async (request, reply) => {
    const staff = request.staff!;
    const nowMs = deps.clock.nowMs();
    const [facts, talkers] = await Promise.all([
      readFacts(deps, staff, nowMs),
      readTalkers(deps, staff, nowMs),
    ]);
    return sendPage(reply, overviewPage({ staff, facts, talkers, nowMs }));
  });
}

/** By the last hour, which is quick for many servers as well; those that still exist. */
async function readTalkers(
  { protectTraffic, servers, accounts }: OverviewDeps,
  { actor }: Staff,
  nowMs: number,
): Promise<TopTalkers | undefined> {
  const totals = await protectTraffic.readTotals(
    actor,
    { serverIds: null },
    { fromMs: nowMs - 3_600_000, toMs: nowMs },
  );
  const found = await Promise.all(mostTraffic(totals).map((id) => servers.findServer(actor, null, id)));
  const living = found.filter((server) => server !== null);
  if (living.length === 0) return undefined;
  const ids = living.map((server) => server.id);
  const [traffic, tenants] = await Promise.all([
    readListTraffic(protectTraffic, actor, { serverIds: ids }, nowMs),
    accounts.findTenants(living.map((server) => server.tenantId)),
  ]);
  return { servers: living, tenants, traffic };
}

async function readFacts(deps: OverviewDeps, { actor }: Staff, nowMs: number): Promise<OverviewFacts> {
  const { catalog, clusters, adminProjects } = deps;
  const [money, place, servers, webhooks, usage, projects, attacks] = await Promise.all([
    readMoney(deps, actor, nowMs),
    Promise.all([
      clusters.listClusters(),
      catalog.listAllLocations(),
      clusters.listNodes(actor, null),
      deps.addresses.listPools(actor, null),
      catalog.listAllPlans(actor),
      catalog.listAllImages(actor),
      clusters.listDayRoom(actor, 30),
    ]),
    deps.servers.countByStatus(actor, null),
    deps.webhooks.readQueueHealth(actor),
    deps.metering.fleetUsage(actor, null),
    adminProjects.list(actor),
    deps.protectIncidents.countOpen(actor),
  ]);
  const [allClusters, locations, nodes, pools, plans, images, days] = place;
  const tokens = await Promise.all(projects.map((project) => adminProjects.listTokens(actor, project.id)));
  return {
    ...money,
    servers,
    clusters: allClusters,
    locations,
    nodes,
    pools,
    plans,
    images,
    days,
    webhooks,
    attacks,
    limitsProblem: deps.limits.findProblem(),
    // The running month has begun.
    usage: usage!,
    tokens: tokens.flat(),
  };
}

async function readMoney(deps: OverviewDeps, actor: Staff['actor'], nowMs: number) {
  const [tenants, charges] = await Promise.all([
    deps.accounts.listTenants(actor),
    deps.payments.listReconciled(actor, chargesMax),
  ]);
  const access = await deps.billing.accessOf(tenants.map((tenant) => tenant.id));
  const waiting = charges.filter((charge) => charge.state === 'unconfirmed');
  const oldest = waiting[0]?.createdAt.getTime() ?? nowMs;
  return {
    customerCount: tenants.length,
    customers: {
      suspended: tenants.filter((tenant) => tenant.status === 'SUSPENDED').length,
      inDebt: [...access.values()].filter((each) => each.balanceQuanta < 0 && each.status !== 'CLOSED')
        .length,
    },
    waitingCharges: waiting.length,
    oldestChargeMs: nowMs - oldest,
  };
}
