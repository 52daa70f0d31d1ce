import type { FastifyRequest } from 'fastify';
import type { Tenant } from '#operations/accounts/index.ts';
import type { AdminToken } from '#operations/admin-projects/index.ts';
import {
  type AttentionFacts,
  type AttentionItem,
  describeItem,
  findAttentionItems,
  readAttentionFacts,
} from '#operations/attention/index.ts';
import type { Image, Location, Offer, Plan } from '#operations/catalog/index.ts';
import type { DayRoom, Node } from '#operations/clusters/index.ts';
import type { Features } from '#operations/features.ts';
import type { FleetUsage } from '#operations/metering/index.ts';
import { bytesOf, type UsageTotal } from '#operations/protect/index.ts';
import type { AttackRow } from '#operations/views/attack-list-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import { type Demo, demoBanner } from '#service-kit/demo/index.ts';
import { answerChart, chartUnit, exploreHref } from '#service-kit/explorer/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  agenda,
  type ChartData,
  type ChartUnit,
  type Column,
  type Content,
  cellColumn,
  chart,
  formatBytes,
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
  table,
} from '#service-kit/pages/index.ts';
import { readExplorerChart } from '../../parts/index.ts';
import { latestAttacks } from '../attacks/attacks.routes.ts';
import { roomChart } from '../clusters/clusters.routes.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { type MonitorLink, readMonitorLink, trafficPath } from '../links.ts';
import { place } from '../traffic/traffic.routes.ts';
import { type ListTraffic, readListTraffic, serverTrafficColumns } from '../traffic-columns.ts';

interface OverviewDeps extends Features {
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
  return consoleFrame({ staff, title: 'Overview', current: 'overview' }, [
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
  ]);
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
    return { tone: 'info', text: `${left} left to finish the setup. Next: ${lowerFirst(open[0]!.title)}.` };
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

/** What the page is made of; also what says which first steps are done. */
interface OverviewFacts extends AttentionFacts {
  locations: readonly Location[];
  plans: readonly Offer<Plan>[];
  images: readonly Offer<Image>[];
  days: readonly DayRoom[];
  customerCount: number;
  customers: { suspended: number; inDebt: number };
  usage: FleetUsage;
  /** Of the admin API, of all projects. */
  tokens: readonly AdminToken[];
}

interface Step {
  title: string;
  text: string;
  href: string;
  isDone: boolean;
}

/** What a new installation lacks before anything can be sold, in the order in which it is made. */
function firstSteps(facts: OverviewFacts): Step[] {
  const { clusters, locations, nodes, pools, plans, images, customerCount, tokens } = facts;
  const clusterId = clusters[0]?.id;
  const inCluster = (what: string) =>
    clusterId === undefined ? '/console/clusters/' : `/console/clusters/${clusterId}/${what}/new`;
  return [
    {
      title: 'Create a location',
      text: 'A data center that customers choose.',
      href: '/console/catalog/locations/new',
      isDone: locations.length > 0,
    },
    {
      title: 'Create a cluster',
      text: 'The hypervisors of a location and their driver.',
      href: '/console/clusters/new',
      isDone: clusters.length > 0,
    },
    {
      title: 'Add a node',
      text: 'A hypervisor host, and how much of its capacity may be allocated.',
      href: inCluster('nodes'),
      isDone: nodes.length > 0,
    },
    {
      title: 'Add addresses',
      text: 'The range from which new servers get addresses.',
      href: inCluster('pools'),
      isDone: pools.length > 0,
    },
    {
      title: 'Create a plan',
      text: 'A server size and its price.',
      href: '/console/catalog/plans/new',
      isDone: plans.some((plan) => plan.isOffered),
    },
    {
      title: 'Create an image',
      text: 'The operating system of a new server.',
      href: '/console/catalog/images/new',
      isDone: images.some((image) => image.isOffered && image.kind === 'system'),
    },
    {
      title: 'Create a customer',
      text: 'An organization with an owner who signs in.',
      href: '/console/customers/new',
      isDone: customerCount > 0,
    },
    {
      title: 'Connect the monitor',
      text: 'Create a project and a token. Customers then see the traffic of their own servers.',
      href: '/console/projects/',
      isDone: tokens.some((token) => token.isActive),
    },
  ];
}

function stepsSection(steps: readonly Step[], canChange: boolean): Html {
  const next = steps.find((step) => !step.isDone);
  return section(
    { title: 'First steps', description: 'Steps that are not done yet, in order.' },
    agenda(
      'First steps',
      steps.map((step) => ({
        tone: step.isDone ? ('good' as const) : step === next ? ('info' as const) : ('neutral' as const),
        state: step.isDone ? 'done' : step === next ? 'next' : 'to do',
        title: canChange && !step.isDone ? link(step.href, step.title) : step.title,
        text: step.text,
      })),
    ),
  );
}

/** Rows of the table. */
const talkersMax = 5;

interface TopTalkers {
  servers: readonly Server[];
  tenants: readonly Tenant[];
  traffic: ListTraffic;
}

/** Ids of the servers with the most bytes, most first. */
function mostTraffic(totals: ReadonlyMap<number, UsageTotal>): number[] {
  return [...totals.values()]
    .filter((total) => bytesOf(total) > 0)
    .sort((a, b) => bytesOf(b) - bytesOf(a))
    .slice(0, talkersMax)
    .map((total) => total.id!);
}

function talkersSection({ servers, tenants, traffic }: TopTalkers, nowMs: number): Html {
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const bytes = (key: 'inboundBytes' | 'outboundBytes', header: string): Column<Server> => ({
    key,
    header,
    kind: 'figure',
    cell: (server) => formatBytes(traffic.totals.get(server.id)?.[key]),
  });
  return section(
    {
      title: 'Most traffic in the last hour',
      id: 'top-talkers',
      actions: link(exploreHref(trafficPath, {}, { range: '1h' }), 'Explore traffic', { kind: 'button' }),
    },
    table<Server>({
      caption: 'Servers with the most traffic',
      card: { line: ['customer', 'in', 'out'] },
      columns: [
        cellColumn('server', 'Server', (server) => link(`/console/servers/${server.id}`, server.name)),
        cellColumn('customer', 'Customer', (server) =>
          link(`/console/customers/${server.tenantId}`, names.get(server.tenantId) ?? 'unknown'),
        ),
        bytes('inboundBytes', 'In, 24 h'),
        bytes('outboundBytes', 'Out, 24 h'),
        ...serverTrafficColumns<Server>(traffic, (server) => server.id, nowMs),
      ],
      rows: servers,
      empty: { title: 'No traffic', text: 'Servers with observed traffic appear here.' },
    }),
  );
}
