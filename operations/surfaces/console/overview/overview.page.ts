/** `/console/`: attention items first, then the key figures. */
import { type AttentionItem, describeItem, findAttentionItems } from '#operations/attention/index.ts';
import type { Node } from '#operations/clusters/index.ts';
import type { AttackRow } from '#operations/protect/index.ts';
import { exploreHref } from '#service-kit/explorer/index.ts';
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
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import { latestAttacks } from '../attacks/attacks.page.ts';
import { roomChart } from '../clusters/clusters.page.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import type { MonitorLink } from '../monitor-link.ts';
import { trafficPath } from '../traffic/traffic-link.ts';
import { firstSteps, type Step, stepsSection } from './first-steps.ts';
import type { OverviewFacts } from './overview-facts.ts';
import { type TopTalkers, talkersSection } from './top-talkers.ts';

export interface OverviewOptions {
  staff: Staff;
  /** Absent while no traffic was observed. */
  talkers: TopTalkers | undefined;
  /** Null while none was observed. */
  traffic: OverviewTraffic | null;
  /** The newest first. */
  attacks: readonly AttackRow[];
  inMonitor: MonitorLink;
  facts: OverviewFacts;
  nowMs: number;
}

export interface OverviewTraffic {
  unit: ChartUnit;
  data: ChartData;
}

export function overviewPage(options: OverviewOptions): Html {
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
