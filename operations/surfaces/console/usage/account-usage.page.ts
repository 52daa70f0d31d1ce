import type { Tenant } from '#operations/accounts/index.ts';
import type { AccountUsage, MonthSum } from '#operations/metering/index.ts';
import {
  formatCount,
  formatMoney,
  type Html,
  link,
  pageHeader,
  section,
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import { requestsByKeyTable } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { accountUsagePath, fleetUsagePath, monthLinks, monthsChart, requestsChart } from './usage.page.ts';

export interface AccountUsageOptions {
  staff: Staff;
  tenant: Tenant;
  usage: AccountUsage;
  months: readonly MonthSum[];
}

/** `/console/billing/usage/api/accounts/{id}`: one account's month, by day and by key. */
export function accountUsagePage({ staff, tenant, usage, months }: AccountUsageOptions): Html {
  const { currency } = tenant;
  return consoleFrame(
    {
      staff,
      title: `API meter of ${tenant.name}`,
      current: 'usage',
      breadcrumb: [{ label: 'API meter', href: fleetUsagePath }, { label: tenant.name }],
    },
    [
      pageHeader({
        title: `API meter of ${tenant.name}`,
        state: stateOf(usage, currency),
        actions: [
          monthLinks(usage, accountUsagePath(tenant.id)),
          link(`/console/customers/${tenant.id}`, 'The customer', { kind: 'button' }),
        ],
      }),
      stats(
        stat({ label: 'Requests', value: formatCount(usage.count), source: `in ${usage.period}, UTC` }),
        stat({
          label: 'Free',
          value: formatCount(usage.includedCount),
          source: usage.isOpen ? 'current price' : 'price when the month closed',
        }),
        stat({
          label: 'Overage',
          value: formatMoney(usage.overageQuanta, currency),
          source: `${formatCount(usage.overageCount)} requests at ${formatMoney(usage.price.rateQuanta, currency)} per ${formatCount(usage.price.unitRequests)}`,
        }),
        stat({
          label: 'Charged requests',
          value: formatCount(usage.chargedCount),
          source: 'so far, above the free quota',
        }),
      ),
      requestsChart(usage),
      monthsChart(months),
      section(
        { title: 'By key' },
        requestsByKeyTable(usage, {
          empty: { title: 'No requests in this month', text: 'Keys that called the API appear here.' },
        }),
      ),
    ],
  );
}

function stateOf(usage: AccountUsage, currency: string): { tone: Tone; text: string } {
  const made = `${formatCount(usage.count)} requests in ${usage.period}`;
  if (usage.overageCount > 0)
    return {
      tone: 'info',
      text: `${made}, ${formatCount(usage.overageCount)} above the free quota: ${formatMoney(usage.overageQuanta, currency)}.`,
    };
  if (usage.count === 0) return { tone: 'neutral', text: `It has not called the API in ${usage.period}.` };
  return { tone: 'good', text: `${made}, all of them free.` };
}
