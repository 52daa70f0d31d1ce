import type { FleetUsage, OveragePrice } from '#operations/metering/index.ts';
import {
  chart,
  formatCount,
  formatMoney,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  section,
  shareBar,
  stat,
  stats,
  type Tone,
  table,
  withQuery,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from './frame.ts';
import type { Staff } from './guard.ts';

export interface FleetUsageOptions {
  staff: Staff;
  usage: FleetUsage;
  price: OveragePrice;
}

export const fleetUsagePath = '/console/billing/usage/api/';
const dayMs = 86_400_000;

/** `/console/billing/usage/api/`: the requests of all accounts in a month, and who makes them. */
export function fleetUsagePage({ staff, usage, price }: FleetUsageOptions): Html {
  return consoleFrame({ staff, title: 'API meter', current: 'usage', breadcrumb: [{ label: 'API meter' }] }, [
    pageHeader({
      title: 'API meter',
      state: stateOf(usage),
      actions: link('/console/billing/usage/api/docs/', 'API reference', { kind: 'button' }),
    }),
    months(usage),
    stats(
      stat({ label: 'Requests', value: formatCount(usage.count), source: `in ${usage.period}, UTC` }),
      stat({
        label: 'Accounts that called',
        value: formatCount(usage.accountCount),
        source: `${formatCount(usage.overAccountCount)} beyond their free requests`,
      }),
      stat({
        label: 'Overage',
        value: formatMoney(usage.overageQuanta),
        source: `${formatMoney(price.rateQuanta)} per ${formatCount(price.unitRequests)} requests`,
      }),
      stat({
        label: 'Charged',
        value: formatMoney(usage.chargedQuanta),
        source: 'the rest with the next maintenance, or once it makes a whole $0.0001',
      }),
    ),
    requestsChart(usage, 'normal'),
    section(
      { title: 'Accounts', id: 'accounts', description: 'The fifty with the most requests.' },
      accountsTable(usage),
    ),
  ]);
}

/** A month's days; also drawn small on the overview. */
export function requestsChart(
  usage: Pick<FleetUsage, 'days' | 'startsAt' | 'endsAt' | 'asOf'>,
  size: 'normal' | 'small',
): Html {
  return chart({
    id: 'requests-by-day',
    title: 'API requests by day',
    unit: 'count',
    size,
    source: `UTC days, counted up to ${formatTime(usage.asOf.getTime())}`,
    data: {
      timesMs: usage.days.map((day) => Date.parse(day.date)),
      stepMs: dayMs,
      range: { fromMs: usage.startsAt.getTime(), toMs: usage.endsAt.getTime() },
      series: [{ label: 'Requests', values: usage.days.map((day) => day.count) }],
    },
    emptyText: 'No request was counted in this month.',
  });
}

function stateOf(usage: FleetUsage): { tone: Tone; text: string } {
  if (usage.count === 0) return { tone: 'neutral', text: `Nobody has called the API in ${usage.period}.` };
  const over =
    usage.overAccountCount === 0
      ? 'none beyond their free requests'
      : `${formatCount(usage.overAccountCount)} beyond their free requests`;
  const callers = usage.accountCount === 1 ? 'One account' : `${formatCount(usage.accountCount)} accounts`;
  return {
    tone: 'good',
    text: `${callers} made ${formatCount(usage.count)} requests in ${usage.period}, ${over}.`,
  };
}

function months(usage: FleetUsage): Html {
  const at = (date: Date) => withQuery(fleetUsagePath, { period: date.toISOString().slice(0, 7) });
  const previous = link(at(new Date(usage.startsAt.getTime() - dayMs)), '← Previous month', {
    kind: 'button',
  });
  const next = usage.isOpen ? '' : link(at(usage.endsAt), 'Next month →', { kind: 'button' });
  return html`<div class="actions">${previous}${next}</div>`;
}

function accountsTable(usage: FleetUsage): Html {
  return table({
    caption: 'Accounts by requests',
    columns: [
      {
        key: 'name',
        header: 'Account',
        cell: (account) => link(`/console/servers/?tenant=${account.tenantId}`, account.name),
      },
      { key: 'count', header: 'Requests', kind: 'figure', cell: (account) => formatCount(account.count) },
      {
        key: 'share',
        header: 'Share',
        kind: 'figure',
        cell: (account) => shareBar(account.count / Math.max(1, usage.count)),
      },
      { key: 'free', header: 'Free', kind: 'figure', cell: (account) => formatCount(account.includedCount) },
      { key: 'over', header: 'Beyond', kind: 'figure', cell: (account) => formatCount(account.overageCount) },
      {
        key: 'cost',
        header: 'Overage',
        kind: 'figure',
        cell: (account) => formatMoney(account.overageQuanta, account.currency),
      },
      {
        key: 'charged',
        header: 'Charged requests',
        kind: 'figure',
        cell: (account) => formatCount(account.chargedCount),
      },
    ],
    rows: usage.accounts,
    empty: {
      title: 'No requests in this month',
      text: 'Accounts will stand here as soon as one of their keys calls the API.',
    },
  });
}
