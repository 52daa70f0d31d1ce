import type { FastifyRequest } from 'fastify';
import type { Clock } from '#common/clock/index.ts';
import type { Accounts, Actor } from '#operations/accounts/index.ts';
import type { AdminProjects } from '#operations/admin-projects/index.ts';
import { type ReadFactsDeps, readAttentionFacts } from '#operations/attention/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { ProtectFindings, ProtectIncidents, ProtectTraffic } from '#operations/protect/index.ts';
import type { ServerHistory } from '#operations/server-history/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import { answerChart, chartUnit } from '#service-kit/explorer/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';
import { readExplorerChart } from '../../parts/index.ts';
import type { Staff } from '../guard.ts';
import { readMonitorLink } from '../monitor-link.ts';
import { place } from '../traffic/traffic.routes.ts';
import { readListTraffic } from '../traffic-columns.ts';
import { type OverviewTraffic, overviewPage } from './overview.page.ts';
import type { OverviewFacts } from './overview-facts.ts';
import { mostTraffic, type TopTalkers } from './top-talkers.ts';

export interface OverviewDeps extends ReadFactsDeps {
  accounts: Accounts;
  adminProjects: AdminProjects;
  billing: Billing;
  catalog: Catalog;
  clusters: Clusters;
  metering: Metering;
  protectFindings: Pick<ProtectFindings, 'totalAll'>;
  protectIncidents: ProtectIncidents;
  protectTraffic: ProtectTraffic;
  serverHistory: ServerHistory;
  servers: Servers;
  signOn: SignOn<Actor>;
  clock: Clock;
}

/** `/console/`: where staff land. */
export function registerOverview(app: App, deps: OverviewDeps): void {
  app.get('/', async (request, reply) => {
    const staff = request.staff!;
    const nowMs = deps.clock.nowMs();
    const [facts, talkers, traffic, attacks, inMonitor] = await Promise.all([
      readFacts(deps, staff, nowMs),
      readTalkers(deps, staff, nowMs),
      readTraffic(deps, request),
      deps.protectIncidents.listAll(staff.actor, { severity: 'attack', limit: attacksShown }),
      readMonitorLink(deps.signOn),
    ]);
    return sendPage(reply, overviewPage({ staff, facts, talkers, traffic, attacks, inMonitor, nowMs }));
  });
}

const attacksShown = 5;

/** All traffic of the last 24 hours by customer; null where nothing was observed. */
async function readTraffic(deps: OverviewDeps, request: FastifyRequest): Promise<OverviewTraffic | null> {
  const { view, chart, flags } = await readExplorerChart(deps, place, request, { by: 'customer' });
  const { answer, reasons } = chart;
  if (answer.rows.length === 0) return null;
  return { unit: chartUnit(answer), data: answerChart(view, answer, { reasons, flags: flags.flags }) };
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
  const [attention, customers, findings, locations, plans, images, days, usage, projects] = await Promise.all(
    [
      readAttentionFacts(deps, actor, nowMs),
      readCustomers(deps, actor),
      deps.protectFindings.totalAll(actor, {}),
      catalog.listAllLocations(),
      catalog.listAllPlans(actor),
      catalog.listAllImages(actor),
      clusters.listDayRoom(actor, 30),
      deps.metering.fleetUsage(actor, null),
      adminProjects.list(actor),
    ],
  );
  const tokens = await Promise.all(projects.map((project) => adminProjects.listTokens(actor, project.id)));
  return {
    ...attention,
    ...customers,
    criticalFindings: findings.critical,
    ...{ locations, plans, images, days },
    // The running month has begun.
    usage: usage!,
    tokens: tokens.flat(),
  };
}

async function readCustomers(deps: OverviewDeps, actor: Staff['actor']) {
  const tenants = await deps.accounts.listTenants(actor);
  const access = await deps.billing.accessOf(tenants.map((tenant) => tenant.id));
  return {
    customerCount: tenants.length,
    customers: {
      suspended: tenants.filter((tenant) => tenant.status === 'SUSPENDED').length,
      inDebt: [...access.values()].filter((each) => each.balanceQuanta < 0 && each.status !== 'CLOSED')
        .length,
    },
  };
}
