import type { FastifyRequest } from 'fastify';
import type { Clock } from '#common/clock/index.ts';
import type { Accounts, Actor } from '#operations/accounts/index.ts';
import type { AdminProjects } from '#operations/admin-projects/index.ts';
import {
  type AttentionItem,
  describeItem,
  findAttentionItems,
  type ReadFactsDeps,
  readAttentionFacts,
} from '#operations/attention/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Clusters, Node } from '#operations/clusters/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { ProtectFindings, ProtectIncidents, ProtectTraffic } from '#operations/protect/index.ts';
import type { ServerHistory } from '#operations/server-history/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { AttackRow } from '#operations/views/index.ts';
import { type Demo, demoBanner } from '#service-kit/demo/index.ts';
import { answerChart, chartUnit, exploreHref } from '#service-kit/explorer/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  agenda,
  type ChartData,
  type ChartUnit,
  type Content,
  chart,
  formatCount,
  formatMoney,
  formatPercent,
  type Html,
  html,
  link,
  pageHeader,
  refreshing,
  section,
  sendPage,
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';
import { readExplorerChart } from '../../parts/index.ts';
import { latestAttacks } from '../attacks/attacks.routes.ts';
import { roomChart } from '../clusters/clusters.page.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { type MonitorLink, readMonitorLink } from '../monitor-link.ts';
import { place } from '../traffic/traffic.routes.ts';
import { trafficPath } from '../traffic/traffic-link.ts';
import { readListTraffic } from '../traffic-columns.ts';
import { firstSteps, type Step, stepsSection } from './first-steps.ts';
import type { OverviewFacts } from './overview-facts.ts';
import { mostTraffic, type TopTalkers, talkersSection } from './top-talkers.ts';

interface OverviewDeps extends ReadFactsDeps {
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
  demo: Demo | null;
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
    return sendPage(
      reply,
      overviewPage({
        ...{ staff, facts, talkers, traffic, attacks, inMonitor, nowMs },
        isDemo: deps.demo !== null,
      }),
    );
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

interface OverviewOptions {
  staff: Staff;
  /** Absent while no traffic was observed. */
  talkers: TopTalkers | undefined;
  /** Null while none was observed. */
  traffic: OverviewTraffic | null;
  /** The newest first. */
  attacks: readonly AttackRow[];
  inMonitor: MonitorLink;
  facts: OverviewFacts;
  isDemo: boolean;
  nowMs: number;
}

interface OverviewTraffic {
  unit: ChartUnit;
  data: ChartData;
}

/** `/console/`: attention items first, then the key figures. */
function overviewPage(options: OverviewOptions): Html {
  const { staff, facts, talkers, traffic, attacks, nowMs } = options;
  const items = findAttentionItems(facts, nowMs);
  const steps = firstSteps(facts);
  const next = steps.find((step) => !step.isDone);
  const hasGuests = facts.days.some((day) => day.memoryMb > 0);
  return consoleFrame(
    { staff, title: 'Overview', current: 'overview', breadcrumb: [{ label: 'Overview' }] },
    [
      refreshing({ id: 'now', url: '/console/', everySeconds: 30 }, [
        pageHeader({
          title: 'Overview',
          state: stateOf(facts, items, steps),
          actions: staff.canChange && next && link(next.href, next.title, { kind: 'primary' }),
        }),
        options.isDemo &&
          demoBanner('See which customer, server and application uses how much.', [
            { href: trafficPath, label: 'Explore traffic' },
            { href: '/console/attacks/', label: 'Attacks' },
          ]),
        items.length > 0 && attentionSection(items),
        (facts.customerCount > 0 || facts.nodes.length > 0) && figures(facts),
        attacks.length > 0 && latestAttacks(attacks, options.inMonitor, nowMs),
      ]),
      traffic && trafficChart(traffic),
      talkers &&
        refreshing({ id: 'talkers', url: '/console/', everySeconds: 30 }, talkersSection(talkers, nowMs)),
      next && stepsSection(steps, staff.canChange),
      hasGuests && roomChart(facts),
    ],
  );
}

function trafficChart({ unit, data }: OverviewTraffic): Html {
  return chart({
    id: 'traffic',
    title: 'All traffic of the last 24 hours by customer',
    ...{ unit, data },
    dataUrl: exploreHref(`${trafficPath}chart.json`, {}, { by: 'customer' }),
    refreshSeconds: 60,
    source: link(trafficPath, 'Explore traffic'),
  });
}

const toneOf = ({ urgency }: AttentionItem): 'bad' | 'warn' => (urgency === 'now' ? 'bad' : 'warn');

/** Each item with a link to the page that resolves it. */
function attentionSection(items: readonly AttentionItem[]): Html {
  return section(
    { title: 'Needs attention' },
    agenda(
      'Needs attention',
      items.map((item) => {
        const { title, text, href } = describeItem(item);
        return { tone: toneOf(item), state: item.urgency, title: link(href, title), text };
      }),
    ),
  );
}

const runningOf = (facts: OverviewFacts) => facts.servers.get('running') ?? 0;
const serversOf = (facts: OverviewFacts) =>
  [...facts.servers.values()].reduce((sum, count) => sum + count, 0);

function stateOf(
  facts: OverviewFacts,
  items: readonly AttentionItem[],
  steps: readonly Step[],
): { tone: Tone; text: string } {
  const running = `${formatCount(runningOf(facts))} of ${formatCount(serversOf(facts))} servers running`;
  if (items.length > 0) {
    const count = items.length === 1 ? 'One item needs' : `${formatCount(items.length)} items need`;
    return { tone: toneOf(items[0]!), text: `${count} attention; ${running}.` };
  }
  const open = steps.filter((step) => !step.isDone);
  if (open.length > 0) {
    const left = open.length === 1 ? 'One step is' : `${formatCount(open.length)} steps are`;
    return {
      tone: 'info',
      text: `${left} left to finish the setup. Next: ${lowerFirst(open[0]!.title)}.`,
    };
  }
  return { tone: 'good', text: `All clear; ${running}.` };
}

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

function figures(facts: OverviewFacts): Content {
  const { usage, customers, nodes } = facts;
  const sum = (of: (node: Node) => number) => nodes.reduce((total, node) => total + of(node), 0);
  const capacity = sum((node) => node.capacity.memoryMb);
  const given = sum((node) => node.used.memoryMb);
  return html`${stats(
    stat({
      label: 'Customers',
      href: '/console/customers/',
      value: formatCount(facts.customerCount),
      source: `${formatCount(customers.suspended)} suspended, ${formatCount(customers.inDebt)} in debt`,
    }),
    stat({
      label: 'Servers running',
      href: '/console/servers/',
      value: formatCount(runningOf(facts)),
      source: `of ${formatCount(serversOf(facts))}`,
    }),
    stat({
      label: 'Memory allocated',
      href: '/console/clusters/',
      value: capacity === 0 ? 'no capacity' : formatPercent(given / capacity),
      source: `${formatCount(Math.floor(Math.max(0, capacity - given) / 1024))} GiB free on ${formatCount(nodes.length)} ${nodes.length === 1 ? 'node' : 'nodes'}`,
    }),
    stat({
      label: 'API requests this month',
      href: '/console/billing/usage/api/',
      value: formatCount(usage.count),
      source: `${formatMoney(usage.overageQuanta)} above the free quota`,
    }),
  )}`;
}
