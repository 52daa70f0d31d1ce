/** `/console/customers/{id}`: one customer's account, whole, and what an operator may do to it. */
import type { BillingProfile, Membership, Tenant } from '#operations/accounts/index.ts';
import {
  describeRefusal,
  judgeAccess,
  judgeDeployment,
  type LedgerEntry,
} from '#operations/billing/index.ts';
import type { Charge, ChargeState, SavedCard } from '#operations/payments/index.ts';
import { statusOf } from '#operations/servers/index.ts';
import type { AccessFacts, DaySpending, KeySummary, Server } from '#operations/views/index.ts';
import type { Delivery } from '#service-kit/mail/index.ts';
import {
  age,
  badge,
  banner,
  type Content,
  code,
  confirm,
  definitionList,
  formatCount,
  formatMoney,
  formatMoneyAbout,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  section,
  stat,
  stats,
  type Tone,
  table,
  utcTime,
} from '#service-kit/pages/index.ts';
import { linkDelivery } from '#service-kit/sign-in/index.ts';
import { spendingChart } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import type { MonitorLink } from '../monitor-link.ts';
import { toneOf } from '../servers/servers.routes.ts';
import { customerTrafficHref } from '../traffic/traffic-link.ts';
import { accountUsagePath } from '../usage/usage.page.ts';
import { accountActions, membersSection } from './customer-forms.ts';
import { ledgerOf } from './ledger.page.ts';

export interface CustomerPageOptions {
  staff: Staff;
  tenant: Tenant;
  access: AccessFacts;
  profile: BillingProfile | null;
  entries: readonly LedgerEntry[];
  days: readonly DaySpending[];
  charges: readonly Charge[];
  cards: readonly SavedCard[];
  members: readonly Membership[];
  servers: readonly Server[];
  keys: readonly KeySummary[];
  /** Names the adjustment's form: sent twice, it is entered once. */
  formId: string;
  inMonitor: MonitorLink;
  nowMs: number;
  toast?: { tone: Tone; text: string } | undefined;
  error?: string | undefined;
  closeError?: string | undefined;
  /** How a link that sets a password reached its reader. */
  delivery?: Delivery | undefined;
}

export const chargeTones: Record<ChargeState, Tone> = {
  intended: 'info',
  prepared: 'info',
  succeeded: 'good',
  declined: 'neutral',
  unconfirmed: 'warn',
  voided: 'neutral',
  refunded: 'neutral',
};

export function customerPage(options: CustomerPageOptions): Html {
  const { staff, tenant, error } = options;
  return consoleFrame(
    {
      staff,
      title: tenant.name,
      current: 'customers',
      breadcrumb: [{ label: 'Customers', href: '/console/customers/' }, { label: tenant.name }],
      toast: options.toast,
    },
    [
      pageHeader({
        title: tenant.name,
        state: stateOf(options),
        actions: [
          options.inMonitor({ kind: 'customer', accountId: tenant.id }),
          staff.canChange && accountActions(options),
        ],
      }),
      error && banner({ tone: 'bad', title: 'Nothing was changed', text: error }),
      options.delivery && linkDelivery(options.delivery),
      figures(options),
      facts(options),
      spendingChart(options.days, 'Charged each day, last 30 days'),
      serversTable(options),
      ledgerSection(options),
      cardsTable(options),
      chargesTable(options),
      membersSection(options),
      keysTable(options),
      staff.canChange && tenant.status !== 'CLOSED' && closing(options),
    ],
  );
}

function stateOf({ tenant, access }: CustomerPageOptions): { tone: Tone; text: string } {
  const refusal = judgeAccess(access);
  if (refusal !== null)
    return {
      tone: tenant.status === 'CLOSED' ? 'neutral' : 'warn',
      text: `API locked (${refusal.status} ${refusal.reason}): ${describeRefusal(refusal)}`,
    };
  const deployment = judgeDeployment(access);
  return deployment === null
    ? { tone: 'good', text: 'Active. The API is available and new servers can be ordered.' }
    : { tone: 'info', text: `Active. The API is available. New servers are refused: ${deployment.reason}.` };
}

function figures({ tenant, access, servers, cards, keys }: CustomerPageOptions): Html {
  const defaultCard = cards.find((card) => card.isDefault && !card.isExpired);
  return stats(
    stat({
      label: 'Credit',
      value: formatMoneyAbout(access.balanceQuanta, tenant.currency),
      tone: access.balanceQuanta < 0 ? 'bad' : 'neutral',
      source: 'current ledger balance',
    }),
    stat({
      label: 'Card',
      value: defaultCard ? `${defaultCard.brand} ···· ${defaultCard.last4}` : 'No card',
    }),
    stat({ label: 'Servers', value: formatCount(servers.length) }),
    stat({ label: 'Active keys', value: formatCount(keys.filter((key) => key.isActive).length) }),
  );
}

function facts({ tenant, profile }: CustomerPageOptions): Html {
  return definitionList([
    { term: 'Organization', value: `${tenant.organizationName} (${tenant.organizationId})` },
    { term: 'Name in the API', value: code(tenant.slug) },
    {
      term: 'Invoiced to',
      value: profile
        ? `${profile.legalName}, ${profile.email}, ${profile.country}`
        : badge('warn', 'billing profile missing'),
    },
    { term: 'Since', value: formatTime(tenant.createdAt.getTime()) },
  ]);
}

function serversTable({ servers, tenant, nowMs }: CustomerPageOptions): Html {
  return section(
    {
      title: 'Servers',
      actions: servers.length > 0 && [
        link(customerTrafficHref(tenant.id), 'Explore traffic', { kind: 'button' }),
        link(`/console/servers/?tenant=${tenant.id}`, 'All servers', { kind: 'button' }),
      ],
    },
    table<Server>({
      caption: 'Servers',
      card: { line: ['status', 'plan'] },
      columns: [
        {
          key: 'name',
          header: 'Server',
          cell: (server) => link(`/console/servers/${server.id}`, server.name),
        },
        { key: 'status', header: 'Status', cell: (server) => badge(toneOf(server), statusOf(server)) },
        { key: 'plan', header: 'Plan', cell: (server) => server.planName },
        { key: 'location', header: 'Location', cell: (server) => server.locationName },
        { key: 'age', header: 'Created', cell: (server) => age(server.createdAt.getTime(), nowMs) },
      ],
      rows: servers,
      empty: { title: 'No servers', text: 'Servers of this workspace appear here.' },
    }),
  );
}

const ledgerRows = 15;

function ledgerSection({ entries, tenant }: CustomerPageOptions): Html {
  return section(
    {
      title: 'Ledger',
      description: 'The newest entries.',
      actions:
        entries.length > ledgerRows &&
        link(`/console/customers/${tenant.id}/ledger`, 'Whole ledger', { kind: 'button' }),
    },
    table<LedgerEntry>({ ...ledgerOf(tenant), rows: entries.slice(0, ledgerRows) }),
  );
}

function cardsTable({ cards, nowMs }: CustomerPageOptions): Content {
  if (cards.length === 0) return '';
  return section(
    { title: 'Saved cards' },
    table<SavedCard>({
      caption: 'Saved cards',
      card: { line: ['state', 'expires'] },
      columns: [
        { key: 'card', header: 'Card', cell: (card) => `${card.brand} ···· ${card.last4}` },
        {
          key: 'state',
          header: 'State',
          cell: (card) =>
            card.isExpired
              ? badge('warn', 'expired')
              : badge(card.isDefault ? 'good' : 'neutral', card.isDefault ? 'charged' : 'kept'),
        },
        {
          key: 'expires',
          header: 'Expires',
          cell: (card) => `${card.expiresYear}-${String(card.expiresMonth).padStart(2, '0')}`,
        },
        { key: 'saved', header: 'Saved', cell: (card) => age(card.createdAt.getTime(), nowMs) },
      ],
      rows: cards,
      empty: { title: 'None', text: 'Cards that the customer saves appear here.' },
    }),
  );
}

function chargesTable({ charges, tenant }: CustomerPageOptions): Content {
  if (charges.length === 0) return '';
  return section(
    { title: 'Card charges', description: 'Payment attempts, the newest first.' },
    table<Charge>({
      caption: 'Card charges',
      card: { line: ['state', 'amount', 'at'] },
      columns: [
        { key: 'id', header: 'Attempt', kind: 'figure', cell: (charge) => String(charge.id) },
        { key: 'at', header: 'When', kind: 'time', cell: (charge) => utcTime(charge.createdAt.getTime()) },
        {
          key: 'for',
          header: 'For',
          cell: (charge) => (charge.orderId === null ? 'credit' : `order ${charge.orderId}`),
        },
        { key: 'state', header: 'State', cell: (charge) => badge(chargeTones[charge.state], charge.state) },
        {
          key: 'why',
          header: 'Why',
          kind: 'prose',
          cell: (charge) => charge.declineReason ?? charge.lastError ?? '',
        },
        {
          key: 'amount',
          header: 'Amount',
          kind: 'figure',
          cell: (charge) => formatMoney(charge.amountQuanta, tenant.currency),
        },
      ],
      rows: charges,
      empty: { title: 'None', text: 'Card charges appear here.' },
    }),
  );
}

function keysTable({ keys, tenant, nowMs }: CustomerPageOptions): Html {
  return section(
    {
      title: 'API keys of the organization',
      actions: link(accountUsagePath(tenant.id), 'API meter', { kind: 'button' }),
    },
    table<KeySummary>({
      caption: 'API keys',
      card: { line: ['state', 'scope', 'used'] },
      columns: [
        { key: 'name', header: 'Name', cell: (key) => key.name },
        { key: 'id', header: 'Key', kind: 'code', cell: (key) => code(`svc_${key.keyId}_…`) },
        {
          key: 'state',
          header: 'State',
          cell: (key) => badge(key.isActive ? 'good' : 'neutral', key.isActive ? 'active' : 'ended'),
        },
        { key: 'scope', header: 'Scope', cell: (key) => key.scope },
        {
          key: 'used',
          header: 'Last used',
          kind: 'figure',
          cell: (key) => age(key.lastUsedAt?.getTime(), nowMs),
        },
      ],
      rows: keys,
      empty: { title: 'No keys', text: 'Keys that the owner creates appear here.' },
    }),
  );
}

function closing({ staff, tenant, servers, closeError }: CustomerPageOptions): Html {
  const left =
    servers.length === 0
      ? 'It has no servers.'
      : servers.length === 1
        ? 'It still has a server, which keeps running and is charged.'
        : `It still has ${formatCount(servers.length)} servers, which keep running and are charged.`;
  return section(
    { title: 'Close the account' },
    confirm({
      action: `/console/customers/${tenant.id}/close`,
      csrfToken: staff.csrfToken,
      name: tenant.name,
      consequence: html`You cannot reopen a closed account. ${left}`,
      submit: 'Close the account',
      error: closeError,
    }),
  );
}
