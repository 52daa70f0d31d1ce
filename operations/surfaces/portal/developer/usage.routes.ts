/** `/client/developer/usage/`: counted requests of the workspaces that the person reaches. */
import { Type } from 'typebox';
import type { Tenant } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { AccountUsage } from '#operations/metering/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type ChartData,
  chart,
  csvLines,
  formatCount,
  formatMoney,
  formatMoneyAbout,
  formatMonth,
  formatTime,
  type Html,
  hiddenField,
  html,
  inputForm,
  link,
  pageHeader,
  section,
  sendPage,
  stat,
  stats,
  type Tone,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { noSuchPage, sendCsv } from '#service-kit/web/index.ts';
import { requestsByDayChart, requestsByKeyTable } from '../../parts/index.ts';
import { portalFrame, workspaceField } from '../frame.ts';
import type { Visitor } from '../guard.ts';

const UsageQuery = Type.Object({
  tenant: Type.Optional(Type.String({ maxLength: 16 })),
  period: Type.Optional(Type.String({ maxLength: 16 })),
});

export function registerUsage(app: App, deps: Features): void {
  app.get('/developer/usage/', { schema: { querystring: UsageQuery } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant, tenants, usage } = await find(deps, visitor, request.query);
    return sendPage(reply, usagePage({ visitor, tenant, tenants, usage }));
  });

  app.get('/developer/usage.csv', { schema: { querystring: UsageQuery } }, async (request, reply) => {
    const { tenant, usage } = await find(deps, request.visitor!, request.query);
    const name = `api-usage-${tenant.slug}-${usage.period}.csv`;
    return sendCsv(
      reply,
      name,
      csvLines([['date', 'requests'], ...usage.days.map((day) => [day.date, day.count])]),
    );
  });
}

/** The month that is asked for; the 404 of a page for another's workspace, a month to come and nonsense alike. */
async function find(
  deps: Features,
  { actor }: Visitor,
  query: { tenant?: string; period?: string },
): Promise<{ tenant: Tenant; tenants: Tenant[]; usage: AccountUsage }> {
  const tenants = await deps.accounts.findTenants(actor.tenantIds);
  const tenant = query.tenant ? tenants.find((one) => String(one.id) === query.tenant) : tenants[0];
  const period = query.period || null;
  if (!tenant || (period !== null && !/^20\d{2}-(0[1-9]|1[0-2])$/.test(period))) throw noSuchPage();
  const usage = await deps.metering.usageOf(actor, { tenantId: tenant.id, period });
  if (usage === null) throw noSuchPage();
  return { tenant, tenants, usage };
}

interface UsagePageOptions {
  visitor: Visitor;
  tenant: Tenant;
  /** All that the visitor may look at. */
  tenants: readonly Tenant[];
  usage: AccountUsage;
}

const usagePath = '/client/developer/usage/';

/** Keys and what they were used for are two pages of one place. */
export function developerTabs(current: 'keys' | 'usage' | 'webhooks' | 'ssh-keys'): Html {
  return tabs('API', [
    { label: 'Keys', href: '/client/developer/', current: current === 'keys' },
    { label: 'Usage', href: usagePath, current: current === 'usage' },
    { label: 'Webhooks', href: '/client/developer/webhooks/', current: current === 'webhooks' },
    { label: 'SSH keys', href: '/client/developer/ssh-keys/', current: current === 'ssh-keys' },
  ]);
}

/** `/client/developer/usage/`: a month's requests of one workspace, by day and by key, and what they cost. */
function usagePage(options: UsagePageOptions): Html {
  const { visitor, usage, tenant } = options;
  const here = withQuery(usagePath, { tenant: tenant.id, period: usage.period });
  return portalFrame(
    {
      visitor,
      title: 'API usage',
      current: 'developer',
      breadcrumb: [{ label: 'API keys', href: '/client/developer/' }, { label: 'Usage' }],
    },
    [
      pageHeader({ title: 'API usage', state: stateOf(usage, tenant.currency) }),
      developerTabs('usage'),
      choice(options),
      figures(options),
      requestsByDayChart(
        usage,
        'Requests by day',
        withQuery('/client/developer/usage.csv', { tenant: tenant.id, period: usage.period }),
      ),
      chart({
        id: 'requests-of-month',
        title: 'Requests this month and the free quota',
        unit: 'count',
        size: 'small',
        data: quotaData(usage),
      }),
      section(
        {
          title: 'By key',
          id: 'keys',
          description: 'All keys of the workspace share the free requests. Refused calls are not counted.',
        },
        keysTable(usage, here),
      ),
    ],
  );
}

const dayMs = 86_400_000;

/** The free requests are those of the whole month, also where its days are still to come. */
function quotaData(usage: AccountUsage): ChartData {
  const range = { fromMs: usage.startsAt.getTime(), toMs: usage.endsAt.getTime() };
  const days = Math.round((range.toMs - range.fromMs) / dayMs);
  const timesMs = Array.from({ length: days }, (_, day) => range.fromMs + day * dayMs);
  const counts = new Map(usage.days.map((day) => [Date.parse(day.date), day.count]));
  let sum = 0;
  const soFar = timesMs.map((at) => {
    const count = counts.get(at);
    sum += count ?? 0;
    return count === undefined ? null : sum;
  });
  const series = [
    { label: 'So far', values: soFar },
    { label: 'Free', values: timesMs.map(() => usage.includedCount), isExpected: true },
  ];
  return { timesMs, stepMs: dayMs, range, series };
}

function stateOf(usage: AccountUsage, currency: string): { tone: Tone; text: string } {
  const pace = usage.isOpen && usage.projection !== null && usage.projection.count > usage.includedCount;
  const used = `${formatCount(usage.count)} of ${formatCount(usage.includedCount)} free requests`;
  if (usage.overageCount === 0)
    return {
      tone: pace ? 'warn' : 'good',
      text: `${used} used in ${formatMonth(usage.period)}${
        pace ? `; at this pace ${formatCount(usage.projection!.count)} by its end.` : '.'
      }`,
    };
  return {
    tone: 'info',
    text: `${formatCount(usage.overageCount)} requests above the ${formatCount(usage.includedCount)} free requests in ${formatMonth(usage.period)}, ${formatMoney(usage.overageQuanta, currency)} so far. Requests are not blocked.`,
  };
}

function figures({ usage, tenant }: UsagePageOptions): Html {
  const { currency } = tenant;
  const { price, projection } = usage;
  const priced = `${formatMoney(price.rateQuanta, currency)} per ${formatCount(price.unitRequests)}`;
  return stats(
    stat({
      label: 'Requests',
      value: formatCount(usage.count),
      source: `in ${formatMonth(usage.period)}, UTC`,
    }),
    stat({
      label: 'Free requests left',
      value: formatCount(Math.max(0, usage.includedCount - usage.count)),
      source: `of ${formatCount(usage.includedCount)}`,
    }),
    stat({
      label: 'Above the free quota',
      value: formatMoney(usage.overageQuanta, currency),
      source: `${formatCount(usage.overageCount)} requests, ${formatCount(usage.chargedCount)} charged; ${priced}`,
    }),
    usage.isOpen
      ? stat({
          label: 'Projected this month',
          value: projection === null ? 'none yet' : formatMoneyAbout(projection.overageQuanta, currency),
          source:
            projection === null
              ? 'from the first hour on'
              : `${formatCount(projection.count)} requests at the rate of ${formatCount(projection.hours)} hours`,
        })
      : stat({
          label: 'Month',
          value: 'closed',
          source: `ended ${formatTime(usage.endsAt.getTime(), 'day')}`,
        }),
  );
}

function choice({ usage, tenant, tenants }: UsagePageOptions): Html {
  const at = (period: string) => withQuery(usagePath, { tenant: tenant.id, period });
  const pick =
    tenants.length > 1 &&
    inputForm({ action: usagePath, method: 'get', layout: 'inline', submit: 'Show', submitKind: 'button' }, [
      hiddenField('period', usage.period),
      workspaceField(tenants, String(tenant.id)),
    ]);
  const next = usage.isOpen ? '' : link(at(addMonths(usage.period, 1)), 'Next month →', { kind: 'button' });
  return html`<div class="actions">${link(at(addMonths(usage.period, -1)), '← Previous month', { kind: 'button' })}${next}${pick}</div>`;
}

/** `2025-12` and 1 make `2026-01`. */
function addMonths(period: string, months: number): string {
  const [year, month] = period.split('-').map(Number) as [number, number];
  return new Date(Date.UTC(year, month - 1 + months, 1)).toISOString().slice(0, 7);
}

function keysTable(usage: AccountUsage, url: string): Html {
  return requestsByKeyTable(usage, {
    url,
    empty: {
      title: 'No requests in this month',
      text: 'Requests appear here for each key.',
      action: { label: 'API keys', href: '/client/developer/' },
    },
  });
}
