/** `/console/customers/{id}`: one customer's account, whole, and what an operator may do to it. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Membership, Tenant } from '#operations/accounts/index.ts';
import {
  describeRefusal,
  judgeAccess,
  judgeDeployment,
  type LedgerEntry,
} from '#operations/billing/index.ts';
import type { Features } from '#operations/features.ts';
import type { Charge, ChargeState, SavedCard } from '#operations/payments/index.ts';
import { statusOf } from '#operations/servers/index.ts';
import type { KeySummary } from '#operations/views/key-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { Delivery } from '#service-kit/mail/index.ts';
import {
  actionButton,
  age,
  badge,
  banner,
  type Column,
  type Content,
  cellColumn,
  code,
  codeColumn,
  confirm,
  definitionList,
  drawer,
  field,
  form,
  formatCount,
  formatMoney,
  formatMoneyAbout,
  formatTime,
  type Html,
  hiddenField,
  html,
  link,
  pageHeader,
  section,
  sendPage,
  stat,
  stats,
  type Tone,
  table,
  utcTime,
} from '#service-kit/pages/index.ts';
import { linkDelivery } from '#service-kit/sign-in/index.ts';
import { idCursor, noSuchPage, readAll, readList, sendWantedFile } from '#service-kit/web/index.ts';
import { spendingChart } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { customerTrafficHref, readMonitorLink } from '../links.ts';
import { personActions } from '../person-actions.ts';
import { toneOf } from '../servers/servers.routes.ts';
import { accountUsagePath } from '../usage/usage.routes.ts';

/** The outcome of a form. */
interface Said {
  toast?: { tone: Tone; text: string } | undefined;
  error?: string;
  closeError?: string;
  /** How a link that sets a password reached its reader. */
  delivery?: Delivery;
}

interface CustomerPageOptions extends Awaited<ReturnType<typeof readCustomer>>, Said {
  staff: Staff;
  tenant: Tenant;
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

function customerPage(options: CustomerPageOptions): Html {
  const { staff, tenant, error } = options;
  return consoleFrame({ staff, title: tenant.name, current: 'customers', toast: options.toast }, [
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
  ]);
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
        cellColumn('name', 'Server', (server) => link(`/console/servers/${server.id}`, server.name)),
        cellColumn('status', 'Status', (server) => badge(toneOf(server), statusOf(server))),
        cellColumn('plan', 'Plan', (server) => server.planName),
        cellColumn('location', 'Location', (server) => server.locationName),
        cellColumn('age', 'Created', (server) => age(server.createdAt.getTime(), nowMs)),
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
        cellColumn('card', 'Card', (card) => `${card.brand} ···· ${card.last4}`),
        cellColumn('state', 'State', (card) =>
          card.isExpired
            ? badge('warn', 'expired')
            : badge(card.isDefault ? 'good' : 'neutral', card.isDefault ? 'charged' : 'kept'),
        ),
        cellColumn(
          'expires',
          'Expires',
          (card) => `${card.expiresYear}-${String(card.expiresMonth).padStart(2, '0')}`,
        ),
        cellColumn('saved', 'Saved', (card) => age(card.createdAt.getTime(), nowMs)),
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
        cellColumn('for', 'For', (charge) =>
          charge.orderId === null ? 'credit' : `order ${charge.orderId}`,
        ),
        cellColumn('state', 'State', (charge) => badge(chargeTones[charge.state], charge.state)),
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
        cellColumn('name', 'Name', (key) => key.name),
        codeColumn('id', 'Key', (key) => code(`svc_${key.keyId}_…`)),
        cellColumn('state', 'State', (key) =>
          badge(key.isActive ? 'good' : 'neutral', key.isActive ? 'active' : 'ended'),
        ),
        cellColumn('scope', 'Scope', (key) => key.scope),
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

export const CustomerParams = Type.Object({ id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) });
const rowsMax = 50;

/** One customer, found and shown: what the pages and the forms of a customer have in common. */
export async function findCustomer(deps: Features, id: string): Promise<Tenant> {
  const tenant = await deps.accounts.findTenant(Number(id));
  if (!tenant) throw noSuchPage();
  return tenant;
}

const readCustomer = (deps: Features, { actor }: Staff, tenant: Tenant) =>
  readAll({
    access: deps.billing.accessOf([tenant.id]).then((found) => found.get(tenant.id)!),
    entries: deps.billing.listEntries(actor, tenant.id, rowsMax),
    days: deps.billing.sumDays(actor, tenant.id, 30),
    charges: deps.payments.listCharges(actor, tenant.id, rowsMax),
    cards: deps.payments.listCards(actor, tenant.id),
    members: deps.accounts.membersOf(tenant.organizationId),
    servers: deps.servers.listServers(actor, tenant.id, { order: 'newest', limit: rowsMax }),
    keys: deps.apiKeys.listKeysOf(actor, tenant.organizationId),
    profile: deps.accounts.billingProfileOf(tenant.id),
    inMonitor: readMonitorLink(deps.signOn),
    // Names the adjustment's form: sent twice, it is entered once.
    formId: randomUUID(),
    nowMs: deps.clock.nowMs(),
  });

/** The customer's page, also as the answer to a refused form. */
export async function showCustomer(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  id: string,
  said: Said,
  status = 200,
): Promise<FastifyReply> {
  const staff = request.staff!;
  const tenant = await findCustomer(deps, id);
  const read = await readCustomer(deps, staff, tenant);
  return sendPage(reply, customerPage({ staff, tenant, ...read, ...said }), status);
}

/** The buttons beside the customer's name. */
function accountActions({
  staff,
  tenant,
  formId,
}: {
  staff: Staff;
  tenant: Tenant;
  /** Names the adjustment's form: sent twice, it is entered once. */
  formId: string;
}): Content {
  const base = `/console/customers/${tenant.id}`;
  const { csrfToken } = staff;
  const { currency } = tenant;
  const isActive = tenant.status === 'ACTIVE';
  return [
    drawer({ id: 'book-payment', open: 'Record a payment', title: 'Record a payment' }, [
      html`<p>Money that came in another way than by card, such as a bank transfer. It counts as a deposit, which opens
        the API to an account that never paid.</p>`,
      form({ action: `${base}/credit`, csrfToken, submit: 'Record payment' }, [
        field({ name: 'amount', label: `Amount in ${currency}`, required: true, placeholder: '25.00' }),
        field({
          name: 'reference',
          label: 'Reference',
          hint: 'Identifies the payment. A reference is recorded once only.',
          required: true,
          maxLength: 100,
        }),
      ]),
    ]),
    drawer({ id: 'adjust-credit', open: 'Adjust credit', title: 'Adjust credit' }, [
      html`<p>Adds or removes credit without a payment. The customer sees the reason in the ledger.</p>`,
      form({ action: `${base}/adjust`, csrfToken, submit: 'Adjust credit' }, [
        hiddenField('form_id', formId),
        field({
          id: 'adjust-amount',
          name: 'amount',
          label: `Amount in ${currency}`,
          hint: 'Negative to remove credit.',
          required: true,
          placeholder: '-5.00',
        }),
        field({ name: 'reason', label: 'Reason', required: true, maxLength: 200 }),
      ]),
    ]),
    tenant.status === 'SUSPENDED' &&
      actionButton({
        action: `${base}/status`,
        csrfToken,
        label: 'Activate',
        kind: 'primary',
        fields: { status: 'ACTIVE' },
      }),
    isActive &&
      drawer({ id: 'ask-suspend', open: 'Suspend', title: `Suspend ${tenant.name}?`, openKind: 'danger' }, [
        html`<p>Its API answers 403 from the next call on and nothing can be ordered. Its servers go on running and
            costing. It stays so until an operator activates it again.</p>`,
        actionButton({
          action: `${base}/status`,
          csrfToken,
          label: 'Suspend',
          kind: 'danger',
          fields: { status: 'SUSPENDED' },
        }),
      ]),
  ];
}

/** The people of the organization; an operator lets them in and keeps them out. */
function membersSection({
  staff,
  tenant,
  members,
}: {
  staff: Staff;
  tenant: Tenant;
  members: readonly Membership[];
}): Html {
  return section(
    {
      title: 'Members',
      description: `Of the organization ${tenant.organizationName}. A deactivated person can’t sign in, and their keys stop at once.`,
    },
    table<Membership>({
      caption: 'Members',
      card: { line: ['role', 'state', 'email'] },
      columns: [
        cellColumn('name', 'Name', (member) => member.personName),
        cellColumn('email', 'Email', (member) => member.personEmail),
        cellColumn('role', 'Role', (member) => badge('neutral', member.role)),
        cellColumn('state', 'State', (member) =>
          badge(member.isActive ? 'good' : 'warn', member.isActive ? 'active' : 'deactivated'),
        ),
        ...(staff.canChange
          ? [
              {
                key: 'act',
                header: 'Actions',
                kind: 'actions' as const,
                cell: (member: Membership) => memberActions(staff, tenant, member),
              },
            ]
          : []),
      ],
      rows: members,
      empty: { title: 'No members', text: 'Members of the organization appear here.' },
    }),
  );
}

function memberActions(staff: Staff, tenant: Tenant, member: Membership): Content {
  const { personId: id, personName: name, isActive } = member;
  return personActions({
    base: `/console/customers/${tenant.id}/members`,
    csrfToken: staff.csrfToken,
    person: { id, name, isActive },
    deactivation:
      'Their sessions end. Their API keys are refused until an operator activates the person again.',
  });
}

/** `/console/customers/{id}/ledger`: every change of the credit, with its reason. */
export async function showLedger(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  tenant: Tenant,
): Promise<FastifyReply> {
  const staff = request.staff!;
  const home = `/console/customers/${tenant.id}`;
  const [list, balanceQuanta] = await Promise.all([
    readList(request, {
      ...{ id: 'ledger', path: `${home}/ledger`, filters: [], ...ledgerOf(tenant) },
      cursor: idCursor<LedgerEntry>(),
      read: (_, { limit, after }) =>
        deps.billing.listEntries(staff.actor, tenant.id, { limit, ...(after && { beforeId: after }) }),
    }),
    deps.billing.balanceOf(staff.actor, tenant.id),
  ]);
  const title = `Ledger of ${tenant.name}`;
  const state = {
    tone: balanceQuanta < 0 ? 'warn' : 'good',
    text: `Credit is ${formatMoney(balanceQuanta, tenant.currency)}: the sum of all entries, which are never changed.`,
  } as const;
  const breadcrumb = [
    { label: 'Customers', href: '/console/customers/' },
    { label: tenant.name, href: home },
    { label: 'Ledger' },
  ];
  const content = [pageHeader({ title, state }), list.table];
  return (
    sendWantedFile(request, reply, 'console') ??
    sendPage(reply, consoleFrame({ staff, title, current: 'customers', breadcrumb }, content))
  );
}

/** The table of a ledger, whole or its newest entries. */
const ledgerOf = (tenant: Tenant) => ({
  caption: 'Ledger',
  card: { title: 'text', line: ['amount', 'source', 'at'] },
  columns: [
    { key: 'at', header: 'When', kind: 'time', cell: (entry) => utcTime(entry.createdAt.getTime()) },
    codeColumn('source', 'Source', (entry) => code(entry.metadata.source)),
    { key: 'text', header: 'Description', kind: 'prose', cell: (entry) => entry.description },
    {
      ...{ key: 'amount', header: 'Amount', kind: 'figure', field: 'amount_quanta' },
      cell: (entry) => formatMoney(entry.amountQuanta, tenant.currency),
      value: (entry) => entry.amountQuanta,
    },
  ] satisfies Column<LedgerEntry>[],
  empty: { title: 'No entries', text: 'Payments, adjustments and charges appear here.' },
});
