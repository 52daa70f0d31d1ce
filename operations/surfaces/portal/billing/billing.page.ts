/** `/client/billing/`: what there is, what it will cost, how it is paid, and the ledger line by line. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { Tenant } from '#operations/accounts/index.ts';
import type { LedgerEntry, LedgerFilter } from '#operations/billing/index.ts';
import type { Features } from '#operations/features.ts';
import type { Charge, SavedCard } from '#operations/payments/index.ts';
import {
  actionButton,
  actionsColumn,
  askButton,
  badge,
  banner,
  type Content,
  cellColumn,
  field,
  form,
  formatBytes,
  formatCount,
  formatMoney,
  formatMoneyAbout,
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
  table,
  utcTime,
  withQuery,
} from '#service-kit/pages/index.ts';
import { noSuchPage, readAll } from '#service-kit/web/index.ts';
import { spendingChart } from '../../parts/index.ts';
import { portalFrame, workspaceField } from '../frame.ts';
import type { Visitor } from '../guard.ts';

/** The outcome of a form. */
interface Said {
  toast?: { tone: Tone; text: string } | undefined;
  error?: string | undefined;
}

interface BillingPageOptions extends Awaited<ReturnType<typeof readBilling>>, LedgerOptions, Said {
  visitor: Visitor;
  tenants: readonly Tenant[];
}

function billingPage(options: BillingPageOptions): Html {
  const { visitor, tenant } = options;
  return portalFrame({ visitor, title: 'Billing', current: 'billing', toast: options.toast }, [
    pageHeader({
      title: 'Billing',
      state: stateOf(options),
      actions:
        options.tenants.length > 1
          ? workspaceChoice(options)
          : link('#credit', 'Add credit', { kind: 'primary' }),
    }),
    options.error && banner({ tone: 'bad', title: 'Nothing was changed', text: options.error }),
    !tenant.hasBillingProfile &&
      banner({
        tone: 'warn',
        title: 'Billing profile missing',
        text: 'The API is locked until the owner adds one in the settings.',
        actions: link('/client/settings/#profile', 'Settings', { kind: 'button' }),
      }),
    options.waiting.map((charge) => waitingBanner(charge, tenant)),
    figures(options),
    spendingChart(
      options.days,
      options.days.length === 1 ? 'Spent today' : `Spent each day, last ${options.days.length} days`,
    ),
    usedUpSection(options),
    cardsSection(options),
    creditSection(options),
    ledgerSection(options),
  ]);
}

function stateOf({ balanceQuanta, tenant, cards, ahead }: BillingPageOptions): { tone: Tone; text: string } {
  const money = formatMoney(balanceQuanta, tenant.currency);
  if (tenant.status === 'CLOSED') return { tone: 'neutral', text: 'This workspace is closed.' };
  if (tenant.status === 'SUSPENDED')
    return {
      tone: 'bad',
      text: `This account is suspended, its balance is ${money}. ${
        balanceQuanta < 0
          ? 'It opens again within minutes once the balance is paid.'
          : 'Please contact support.'
      }`,
    };
  if (balanceQuanta < 0)
    return { tone: 'bad', text: `${money}. Add credit now, or the workspace will be suspended.` };
  if (balanceQuanta === 0)
    return chargeableCard(cards)
      ? {
          tone: 'info',
          text: 'No credit. The next server charges one month of its plan to your default card.',
        }
      : { tone: 'warn', text: 'No credit and no card. Add credit or a card to deploy a server.' };
  const rest = ahead.serverQuanta + ahead.snapshotQuanta + ahead.overageQuanta;
  return balanceQuanta < rest
    ? {
        tone: 'warn',
        text: `${money} of credit does not cover this month: about ${formatMoneyAbout(rest, tenant.currency)} remains to be charged.`,
      }
    : { tone: 'good', text: `${money} of credit covers the rest of this month.` };
}

function chargeableCard(cards: readonly SavedCard[]): SavedCard | undefined {
  return cards.find((card) => card.isDefault && !card.isExpired);
}

function workspaceChoice({ tenants, tenant }: BillingPageOptions): Content {
  return inputForm(
    {
      ...{ action: '/client/billing/', method: 'get', layout: 'inline' },
      ...{ submit: 'Show', submitKind: 'button' },
    },
    [workspaceField(tenants, String(tenant.id))],
  );
}

function waitingBanner(charge: Charge, tenant: Tenant): Html {
  return banner({
    tone: 'warn',
    title: `A payment of ${formatMoney(charge.amountQuanta, tenant.currency)} is not confirmed`,
    text: `Attempt ${charge.id}, ${formatTime(charge.createdAt.getTime())}. Payment result unknown. If it was charged, we void or refund it automatically.`,
  });
}

function figures(options: BillingPageOptions): Html {
  const { tenant, month, ahead, balanceQuanta } = options;
  const { pool, overage } = options.traffic;
  const of = (source: string) => -(month.find((each) => each.source === source)?.quanta ?? 0);
  // A correction by an operator and a refund are no spending.
  const spent = of('server_hours') + of('snapshots') + of('api_overage') + of('bandwidth_overage');
  // To the cent; the ledger below has every quantum.
  const about = (quanta: number) => formatMoneyAbout(quanta, tenant.currency);
  return stats(
    stat({
      label: 'Credit',
      value: about(balanceQuanta),
      tone: balanceQuanta < 0 ? 'bad' : balanceQuanta === 0 ? 'warn' : 'neutral',
      source: 'current ledger balance',
    }),
    stat({
      label: 'Spent this month',
      value: about(spent),
      source: [
        `servers ${about(of('server_hours'))}, API ${about(of('api_overage'))}`,
        ...(of('snapshots') === 0 ? [] : [`snapshots ${about(of('snapshots'))}`]),
        ...(of('bandwidth_overage') === 0 ? [] : [`traffic ${about(of('bandwidth_overage'))}`]),
      ].join(', '),
    }),
    stat({
      label: 'Estimated cost this month',
      value: about(spent + ahead.serverQuanta + ahead.snapshotQuanta + ahead.overageQuanta),
      source: 'at the current number of servers, snapshots and requests',
    }),
    stat({
      label: 'Remaining this month',
      value: about(ahead.serverQuanta + ahead.snapshotQuanta + ahead.overageQuanta),
      source: [
        `servers ${about(ahead.serverQuanta)}, API ${about(ahead.overageQuanta)}`,
        ...(ahead.snapshotQuanta === 0 ? [] : [`snapshots ${about(ahead.snapshotQuanta)}`]),
      ].join(', '),
    }),
    ...(overage.tbQuanta === 0
      ? []
      : [
          stat({
            label: 'Traffic beyond the pool',
            value: about(overage.quanta),
            ...(overage.bytes > 0 && { tone: 'warn' as const }),
            source: `${formatBytes(pool.usedBytes)} of ${formatBytes(pool.allowanceBytes)} used; more costs ${about(overage.tbQuanta)} per TB, charged on ${formatTime(overage.chargedAtMs, 'day')}`,
          }),
        ]),
  );
}

/** Where the customer may choose: what happens once the bandwidth pool is used up. */
function usedUpSection({ visitor, tenant, traffic: { overage } }: BillingPageOptions): Html | false {
  const { limitMbit, whenUsedUp, limitedAt, tbQuanta } = overage;
  // A new price holds from the next month on: until then there is nothing to choose.
  if (whenUsedUp === 'charge' && (limitMbit === 0 || tbQuanta === 0)) return false;
  const perTb = formatMoneyAbout(tbQuanta, tenant.currency);
  return section(
    {
      title: 'When the bandwidth pool is used up',
      id: 'used-up',
      description:
        limitedAt === null
          ? 'A limit begins within about a minute, holds for new servers as well, and ends with the month. A change holds from now on.'
          : `The pool is used up: each server has been limited to ${limitMbit} Mbit/s since ${formatTime(limitedAt.getTime())}, until the month ends. Traffic beyond the pool is charged from the moment you end the limit.`,
    },
    form(
      {
        action: '/client/billing/used-up',
        csrfToken: visitor.csrfToken,
        submit: 'Save',
        submitKind: 'button',
        layout: 'inline',
      },
      [
        hiddenField('tenant', tenant.id),
        field({
          kind: 'select',
          name: 'when_used_up',
          label: 'More traffic',
          value: whenUsedUp,
          options: [
            { value: 'charge', label: `Charge ${perTb} per TB` },
            {
              value: 'limit',
              label:
                limitMbit > 0 ? `Limit each server to ${limitMbit} Mbit/s, charge nothing` : 'Charge nothing',
            },
          ],
        }),
      ],
    ),
  );
}

/** `Visa ···· 4242`. */
function cardName({ brand, last4 }: SavedCard): string {
  return `${brand.slice(0, 1).toUpperCase()}${brand.slice(1)} ···· ${last4}`;
}

function cardsSection(options: BillingPageOptions): Html {
  const { cards, visitor, tenant } = options;
  const button = (action: string, label: string, card: SavedCard) =>
    actionButton({
      action,
      csrfToken: visitor.csrfToken,
      label,
      fields: { card: card.id, tenant: tenant.id },
    });
  return section(
    {
      title: 'Cards',
      id: 'cards',
      description:
        'The default card is charged when you add credit, and, without credit, one month of a plan for each server you deploy. Nothing else charges it.',
    },
    [
      table<SavedCard>({
        caption: 'Cards',
        card: { line: ['state', 'expires'] },
        columns: [
          cellColumn('card', 'Card', cardName),
          cellColumn(
            'expires',
            'Expires',
            (card) => `${String(card.expiresMonth).padStart(2, '0')}/${card.expiresYear}`,
          ),
          cellColumn('state', 'State', (card) =>
            card.isExpired
              ? badge('bad', 'expired')
              : card.isDefault
                ? badge('good', 'default card')
                : badge('neutral', 'saved'),
          ),
          cellColumn('since', 'Saved', (card) => utcTime(card.createdAt.getTime(), 'day')),
          actionsColumn('act', (card) => [
            !card.isDefault && button('/client/billing/cards/default', 'Make default', card),
            askButton(
              {
                id: `remove-card-${card.id}`,
                label: 'Remove',
                title: `Remove ${cardName(card)}?`,
                action: '/client/billing/cards/remove',
                csrfToken: visitor.csrfToken,
                fields: { card: card.id, tenant: tenant.id },
              },
              card.isDefault
                ? 'Nothing is charged to it any more. Without credit and without a card you can deploy no further servers.'
                : 'Nothing is charged to it any more.',
            ),
          ]),
        ],
        rows: cards,
        empty: {
          title: 'No card yet',
          text: 'With a saved card you can add credit, and deploy servers without credit.',
        },
      }),
      addCard(options),
    ],
  );
}

function addCard({ cardEntry, visitor, tenant }: BillingPageOptions): Html {
  if ('site' in cardEntry) {
    return form(
      {
        action: '/client/billing/cards/new',
        csrfToken: visitor.csrfToken,
        submit: 'Add a card',
        submitKind: 'button',
        layout: 'inline',
      },
      hiddenField('tenant', tenant.id),
    );
  }
  return html`${banner({
    tone: 'info',
    title: 'Payments are simulated',
    text: 'This installation uses the test gateway. It moves no money and accepts test cards only. Never enter a real card number.',
  })}${form(
    {
      action: '/client/billing/cards/test',
      csrfToken: visitor.csrfToken,
      submit: 'Add test card',
      submitKind: 'button',
    },
    [
      hiddenField('tenant', tenant.id),
      field({
        kind: 'select',
        name: 'number',
        label: 'Test card',
        options: cardEntry.testCards.map((card) => ({
          value: card.number,
          label: `···· ${card.number.slice(-4)}: ${card.label}`,
        })),
      }),
    ],
  )}`;
}

function creditSection({ cards, visitor, tenant, formId }: BillingPageOptions): Html {
  const card = chargeableCard(cards);
  return section(
    {
      title: 'Add credit',
      id: 'credit',
      ...(card ? { description: `Charged to ${cardName(card)}, from 5.00 to 10,000.00.` } : {}),
    },
    card
      ? form(
          {
            action: '/client/billing/credit',
            csrfToken: visitor.csrfToken,
            submit: 'Add credit',
            layout: 'inline',
          },
          [
            hiddenField('tenant', tenant.id),
            hiddenField('form_id', formId),
            field({
              name: 'amount',
              label: `Amount in ${tenant.currency}`,
              required: true,
              value: '25.00',
              pattern: '[0-9]{1,5}([.][0-9]{2})?',
            }),
          ],
        )
      : html`<p class="hint">Add a card to add credit.</p>`,
  );
}

const pageSize = 50;
const chartDays = 30;

/** Back to the page, which says what was done. */
export function back(reply: FastifyReply, tenant: Tenant, done: string): FastifyReply {
  return reply.redirect(withQuery('/client/billing/', { tenant: tenant.id, done }), 303);
}

/** The workspace that is asked for, or the first; another's is a page that does not exist. */
export async function choose(
  deps: Features,
  visitor: Visitor,
  asked: string | undefined,
): Promise<{ tenant: Tenant; tenants: Tenant[] }> {
  const tenants = await deps.accounts.findTenants(visitor.actor.tenantIds);
  const tenant = asked ? tenants.find((each) => String(each.id) === asked) : tenants[0];
  if (!tenant) throw noSuchPage();
  return { tenant, tenants };
}

interface ListQuery {
  tenant?: string;
  source?: string;
  period?: string;
  before?: string;
}

export function filterOf(query: ListQuery): Omit<LedgerFilter, 'limit'> {
  return {
    ...(query.source ? { source: query.source } : {}),
    ...(query.period ? { period: query.period } : {}),
    ...(query.before ? { beforeId: Number(query.before) } : {}),
  };
}

export async function showBilling(
  deps: Features,
  visitor: Visitor,
  reply: FastifyReply,
  query: ListQuery,
  said: Said,
  status = 200,
): Promise<FastifyReply> {
  const { tenant, tenants } = await choose(deps, visitor, query.tenant);
  const filter = filterOf(query);
  const { entries, ...read } = await readBilling(deps, visitor, tenant, filter);
  const page = billingPage({
    ...{ visitor, tenant, tenants, ...read, entries: entries.slice(0, pageSize) },
    filter: {
      source: query.source ?? '',
      period: query.period ?? '',
      beforeId: filter.beforeId,
      nextBeforeId: entries.length > pageSize ? entries[pageSize - 1]!.id : undefined,
    },
    periods: periodsSince(tenant.createdAt, read.nowMs),
    ...said,
  });
  return sendPage(reply, page, status);
}

async function readBilling(
  { billing, payments, servers, metering, bandwidth, clock }: Features,
  { actor }: Visitor,
  tenant: Tenant,
  filter: Omit<LedgerFilter, 'limit'>,
) {
  const { charges, serverQuanta, snapshotQuanta, usage, ...read } = await readAll({
    balanceQuanta: billing.balanceOf(actor, tenant.id),
    month: billing.sumMonth(actor, tenant.id),
    days: billing.sumDays(actor, tenant.id, chartDays),
    entries: billing.listEntries(actor, tenant.id, { ...filter, limit: pageSize + 1 }),
    cards: payments.listCards(actor, tenant.id),
    charges: payments.listCharges(actor, tenant.id, 20),
    serverQuanta: servers.remainingCostOfMonth(actor, tenant.id),
    snapshotQuanta: servers.remainingSnapshotCostOfMonth(actor, tenant.id),
    usage: metering.usageOf(actor, { tenantId: tenant.id, period: null }),
    // This month's, and the pool.
    traffic: bandwidth.readAccount(actor, { tenantId: tenant.id, openedAt: tenant.createdAt }),
  });
  const overage = usage?.projection ? usage.projection.overageQuanta - usage.overageQuanta : 0;
  return {
    ...read,
    // What running servers, snapshots and the present pace of requests will add until the month ends.
    ahead: { serverQuanta, snapshotQuanta, overageQuanta: Math.max(0, overage) },
    // Those whose outcome is not known yet.
    waiting: charges.filter((charge) => ['intended', 'prepared', 'unconfirmed'].includes(charge.state)),
    cardEntry: payments.cardEntry,
    // Names the form that adds credit: sent twice, it charges once.
    formId: randomUUID(),
    nowMs: clock.nowMs(),
  };
}

/** The months of an account, the newest first, at most three years of them. */
function periodsSince(since: Date, nowMs: number): string[] {
  const periods: string[] = [];
  const now = new Date(nowMs);
  for (let back = 0; back < 36; back += 1) {
    const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1));
    periods.push(month.toISOString().slice(0, 7));
    if (month <= since) break;
  }
  return periods;
}

interface LedgerOptions {
  tenant: Tenant;
  entries: LedgerEntry[];
  filter: { source: string; period: string; beforeId: number | undefined; nextBeforeId: number | undefined };
  /** `2025-11`, the newest first. */
  periods: readonly string[];
}

/** Where ledger entries come from, in the customer's words. */
const sourceLabels: Readonly<Record<string, string>> = {
  deposit: 'Payment',
  refund: 'Refund',
  adjustment: 'Adjustment',
  server_hours: 'Server hours',
  snapshots: 'Snapshots',
  api_overage: 'API requests',
  bandwidth_overage: 'Traffic beyond the pool',
};

export const labelOf = (source: string) => sourceLabels[source] ?? source.replaceAll('_', ' ');

/** The ledger of the billing page: every change of the credit, with filters, pages and CSV. */
function ledgerSection(options: LedgerOptions): Html {
  const { entries, filter, tenant, periods } = options;
  const here = withQuery('/client/billing/', {
    tenant: tenant.id,
    source: filter.source || undefined,
    period: filter.period || undefined,
  });
  return section(
    {
      title: 'Ledger',
      id: 'ledger',
      description: 'Every change of your credit. The entries add up to the balance above.',
    },
    table<LedgerEntry>({
      caption: 'Ledger',
      card: { line: ['for', 'amount'] },
      filter: form(
        {
          action: '/client/billing/#ledger',
          method: 'get',
          layout: 'inline',
          submit: 'Filter',
          submitKind: 'button',
        },
        [
          hiddenField('tenant', tenant.id),
          field({
            kind: 'select',
            name: 'source',
            label: 'What for',
            value: filter.source,
            options: [
              { value: '', label: 'Everything' },
              ...Object.entries(sourceLabels).map(([value, label]) => ({ value, label })),
            ],
          }),
          field({
            kind: 'select',
            name: 'period',
            label: 'Month',
            value: filter.period,
            options: [
              { value: '', label: 'All' },
              ...periods.map((period) => ({ value: period, label: period })),
            ],
          }),
        ],
      ),
      columns: [
        { key: 'at', header: 'When', kind: 'time', cell: (entry) => utcTime(entry.createdAt.getTime()) },
        cellColumn('for', 'What for', (entry) => labelOf(entry.metadata.source)),
        { key: 'text', header: 'Description', kind: 'prose', cell: (entry) => entry.description },
        {
          key: 'amount',
          header: 'Amount',
          unit: tenant.currency,
          kind: 'figure',
          cell: (entry) => formatMoney(entry.amountQuanta, tenant.currency),
        },
      ],
      rows: entries,
      csvHref: withQuery('/client/billing/ledger.csv', {
        tenant: tenant.id,
        source: filter.source || undefined,
        period: filter.period || undefined,
      }),
      pages: {
        label: entries.length === 1 ? 'One entry' : `${formatCount(entries.length)} entries`,
        ...(filter.beforeId === undefined ? {} : { previousHref: `${here}#ledger` }),
        ...(filter.nextBeforeId === undefined
          ? {}
          : { nextHref: `${withQuery(here, { before: filter.nextBeforeId })}#ledger` }),
      },
      empty: {
        title: 'No entries',
        text: 'Payments, server hours and charges for API requests and traffic appear here.',
      },
    }),
  );
}
