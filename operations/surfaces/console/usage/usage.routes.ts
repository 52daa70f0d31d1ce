/** The API meter of the fleet and of one account. It has nothing to change, so support sees the same pages. */

import { Type } from 'typebox';
import type { Tenant } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import {
  type AccountUsage,
  type FleetUsage,
  type MonthSum,
  type OveragePrice,
  rowsPerPage,
} from '#operations/metering/index.ts';
import type { FleetKey } from '#operations/views/usage-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  cellColumn,
  chart,
  code,
  codeColumn,
  formatCount,
  formatMoney,
  type Html,
  html,
  link,
  pageHeader,
  section,
  sendPage,
  stat,
  stats,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { countColumn, linkColumn, noSuchPage } from '#service-kit/web/index.ts';
import { requestShareColumn, requestsByDayChart, requestsByKeyTable } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import { Id, type Staff } from '../guard.ts';

const text = Type.Optional(Type.String({ maxLength: 16 }));
const FleetQuery = Type.Object({ period: text, by: text, page: text });
const monthsShown = 12;

export function registerUsage(app: App, deps: Features): void {
  const { metering } = deps;
  app.get('/billing/usage/api/', { schema: { querystring: FleetQuery } }, async (request, reply) => {
    const staff = request.staff!;
    const page = Math.max(1, Math.floor(Number(request.query.page)) || 1);
    const isByKey = request.query.by === 'key';
    const period = readPeriod(request.query.period);
    const usage = await metering.fleetUsage(staff.actor, period, isByKey ? 1 : page);
    if (usage === null) throw noSuchPage();
    const [keys, months] = await Promise.all([
      isByKey ? metering.fleetKeys(staff.actor, usage.period, page) : null,
      metering.lastMonths(staff.actor, null, monthsShown),
    ]);
    return sendPage(reply, fleetUsagePage({ staff, usage, keys, months, price: metering.price, page }));
  });

  app.get(
    '/billing/usage/api/accounts/:id',
    { schema: { params: Id, querystring: Type.Object({ period: text }) } },
    async (request, reply) => {
      const staff = request.staff!;
      const tenantId = request.params.id;
      const period = readPeriod(request.query.period);
      const tenant = await deps.accounts.findTenant(tenantId);
      const usage = tenant && (await metering.usageOf(staff.actor, { tenantId, period }));
      if (!tenant || !usage) throw noSuchPage();
      const months = await metering.lastMonths(staff.actor, tenantId, monthsShown);
      return sendPage(reply, accountUsagePage({ staff, tenant, usage, months }));
    },
  );
}

/** `2025-11`, or null for the running month. */
function readPeriod(given: string | undefined): string | null {
  const period = given || null;
  if (period !== null && !/^20\d{2}-(0[1-9]|1[0-2])$/.test(period)) throw noSuchPage();
  return period;
}

interface FleetUsageOptions {
  staff: Staff;
  usage: FleetUsage;
  /** Given where the keys are looked at instead of the accounts. */
  keys: { keys: readonly FleetKey[]; keyCount: number } | null;
  months: readonly MonthSum[];
  price: OveragePrice;
  page: number;
}

const fleetUsagePath = '/console/billing/usage/api/';
const dayMs = 86_400_000;

/** `/console/billing/usage/api/`: the requests of all accounts in a month, who makes them and by which key. */
function fleetUsagePage(options: FleetUsageOptions): Html {
  const { staff, usage, price, keys } = options;
  const here = withQuery(fleetUsagePath, { period: usage.period });
  return consoleFrame({ staff, title: 'API meter', current: 'usage' }, [
    pageHeader({
      title: 'API meter',
      state: stateOf(usage),
      actions: [
        monthLinks(usage, fleetUsagePath),
        link('/console/billing/usage/api/docs/', 'API reference', { kind: 'button' }),
      ],
    }),
    stats(
      stat({ label: 'Requests', value: formatCount(usage.count), source: `in ${usage.period}, UTC` }),
      stat({
        label: 'Accounts that called',
        value: formatCount(usage.accountCount),
        source: `${formatCount(usage.overAccountCount)} above their free quota`,
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
    requestsByDayChart(usage, 'API requests by day'),
    monthsChart(options.months),
    section({ title: 'Who calls', id: 'who' }, [
      tabs('Requests by', [
        { label: 'By account', href: `${here}#who`, current: keys === null, count: usage.accountCount },
        {
          label: 'By key',
          href: `${withQuery(here, { by: 'key' })}#who`,
          current: keys !== null,
          count: keys?.keyCount,
        },
      ]),
      keys === null ? accountsTable(options) : keysTable(options, keys),
    ]),
  ]);
}

function monthsChart(months: readonly MonthSum[]): Html {
  const isQuiet = months.every((month) => month.count === 0);
  return chart({
    id: 'requests-by-month',
    title: 'API requests by month, the last year',
    unit: 'count',
    size: 'small',
    source: 'UTC months; the running one so far',
    data: {
      timesMs: months.map((month) => month.startsAt.getTime()),
      shape: 'bars',
      series: isQuiet ? [] : [{ label: 'Requests', values: months.map((month) => month.count) }],
    },
    emptyText: 'No request was counted in the last year.',
  });
}

function stateOf(usage: FleetUsage): { tone: Tone; text: string } {
  if (usage.count === 0) return { tone: 'neutral', text: `No API requests in ${usage.period}.` };
  const over =
    usage.overAccountCount === 0
      ? 'none above their free quota'
      : `${formatCount(usage.overAccountCount)} above their free quota`;
  const callers = usage.accountCount === 1 ? 'One account' : `${formatCount(usage.accountCount)} accounts`;
  return {
    tone: 'good',
    text: `${callers} made ${formatCount(usage.count)} requests in ${usage.period}, ${over}.`,
  };
}

/** The ways to the months beside this one. */
function monthLinks(usage: { startsAt: Date; endsAt: Date; isOpen: boolean }, path: string): Html {
  const at = (date: Date) => withQuery(path, { period: date.toISOString().slice(0, 7) });
  const previous = link(at(new Date(usage.startsAt.getTime() - dayMs)), '← Previous month', {
    kind: 'button',
  });
  const next = usage.isOpen ? '' : link(at(usage.endsAt), 'Next month →', { kind: 'button' });
  return html`${previous}${next}`;
}

function pagesOf(shown: number, total: number, page: number, here: string) {
  if (total <= rowsPerPage) return undefined;
  return {
    label: `${formatCount(shown)} of ${formatCount(total)}`,
    previousHref: page > 1 ? withQuery(here, { page: page === 2 ? undefined : page - 1 }) : undefined,
    nextHref: page * rowsPerPage < total ? withQuery(here, { page: page + 1 }) : undefined,
  };
}

export const accountUsagePath = (tenantId: number) => `${fleetUsagePath}accounts/${tenantId}`;

function accountsTable({ usage, page }: FleetUsageOptions): Html {
  const here = withQuery(fleetUsagePath, { period: usage.period });
  return table<FleetUsage['accounts'][number]>({
    caption: 'Accounts by requests',
    card: { line: ['count', 'share', 'charged'] },
    refreshSeconds: 60,
    columns: [
      linkColumn('name', 'Account', (account) => [
        account.name,
        withQuery(accountUsagePath(account.tenantId), { period: usage.period }),
      ]),
      countColumn('count', 'Requests', (account) => account.count),
      requestShareColumn(usage.count),
      countColumn('free', 'Free', (account) => account.includedCount),
      countColumn('over', 'Beyond', (account) => account.overageCount),
      {
        key: 'cost',
        header: 'Overage',
        kind: 'figure',
        cell: (account) => formatMoney(account.overageQuanta, account.currency),
      },
      countColumn('charged', 'Charged requests', (account) => account.chargedCount),
    ],
    rows: usage.accounts,
    pages: pagesOf(usage.accounts.length, usage.accountCount, page, here),
    empty: { title: 'No requests in this month', text: 'Workspaces whose keys called the API appear here.' },
  });
}

function keysTable(
  { usage, page }: FleetUsageOptions,
  { keys, keyCount }: NonNullable<FleetUsageOptions['keys']>,
): Html {
  const here = withQuery(fleetUsagePath, { period: usage.period, by: 'key' });
  return table<FleetKey>({
    caption: 'Keys by requests',
    card: { line: ['account', 'count', 'state'] },
    refreshSeconds: 60,
    columns: [
      codeColumn('id', 'Key', (key) => code(`svc_${key.keyId}_…`)),
      cellColumn('name', 'Name', (key) => key.name),
      linkColumn('account', 'Account', (key) => [
        key.tenantName,
        withQuery(accountUsagePath(key.tenantId), { period: usage.period }),
      ]),
      cellColumn('state', 'State', (key) =>
        badge(key.isActive ? 'good' : 'neutral', key.isActive ? 'active' : 'revoked'),
      ),
      countColumn('count', 'Requests', (key) => key.count),
      requestShareColumn(usage.count),
    ],
    rows: keys,
    pages: pagesOf(keys.length, keyCount, page, here),
    empty: { title: 'No requests in this month', text: 'Keys that called the API appear here.' },
  });
}

interface AccountUsageOptions {
  staff: Staff;
  tenant: Tenant;
  usage: AccountUsage;
  months: readonly MonthSum[];
}

/** `/console/billing/usage/api/accounts/{id}`: one account's month, by day and by key. */
function accountUsagePage({ staff, tenant, usage, months }: AccountUsageOptions): Html {
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
        state: accountState(usage, currency),
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
      requestsByDayChart(usage, 'API requests by day'),
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

function accountState(usage: AccountUsage, currency: string): { tone: Tone; text: string } {
  const made = `${formatCount(usage.count)} requests in ${usage.period}`;
  if (usage.overageCount > 0)
    return {
      tone: 'info',
      text: `${made}, ${formatCount(usage.overageCount)} above the free quota: ${formatMoney(usage.overageQuanta, currency)}.`,
    };
  if (usage.count === 0) return { tone: 'neutral', text: `It has not called the API in ${usage.period}.` };
  return { tone: 'good', text: `${made}, all of them free.` };
}
