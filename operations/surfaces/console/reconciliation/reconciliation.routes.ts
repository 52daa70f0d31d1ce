/** `/console/reconciliation/`: charges with an unknown result, and the results of earlier ones. */

import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import type { ClosedOrder } from '#operations/ordering/index.ts';
import { type Charge, isUnconfirmedTooLong } from '#operations/payments/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  actionsColumn,
  age,
  badge,
  cellColumn,
  code,
  codeColumn,
  formatCount,
  formatMoney,
  formatTime,
  type Html,
  pageHeader,
  section,
  sendPage,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { figureColumn, linkColumn, noSuchPage } from '#service-kit/web/index.ts';
import { chargeTones } from '../customers/customer.page.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

const RetryForm = Type.Object({ charge: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) });
const Query = Type.Object({ done: Type.Optional(Type.String()) });
const rowsMax = 100;

export function registerReconciliation(app: App, deps: Features): void {
  app.get('/reconciliation/', { schema: { querystring: Query } }, async (request, reply) => {
    const staff = request.staff!;
    const [charges, orders] = await Promise.all([
      deps.payments.listReconciled(staff.actor, rowsMax),
      deps.ordering.listPaidClosed(staff.actor, rowsMax),
    ]);
    const ids = [...new Set([...charges, ...orders].map((row) => row.tenantId))];
    const tenants = await deps.accounts.findTenants(ids);
    const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
    const isAsked = request.query.done === 'asked';
    return sendPage(reply, page({ staff, charges, orders, names, nowMs: deps.clock.nowMs(), isAsked }));
  });

  app.post('/reconciliation/retry', { schema: { body: RetryForm } }, async (request, reply) => {
    const isWaiting = await deps.payments.retryReconciliation(
      request.staff!.actor,
      Number(request.body.charge),
    );
    if (!isWaiting) throw noSuchPage();
    return reply.redirect('/console/reconciliation/?done=asked', 303);
  });
}

interface PageOptions {
  staff: Staff;
  charges: readonly Charge[];
  orders: readonly ClosedOrder[];
  names: ReadonlyMap<number, string>;
  nowMs: number;
  isAsked: boolean;
}

function page(options: PageOptions): Html {
  const { charges, staff, isAsked } = options;
  const waiting = charges.filter((charge) => charge.state === 'unconfirmed');
  const ended = charges.filter((charge) => charge.state !== 'unconfirmed');
  return consoleFrame(
    {
      staff,
      title: 'Reconciliation',
      current: 'reconciliation',
      ...(isAsked ? { toast: { tone: 'good', text: 'We ask the gateway again within seconds.' } } : {}),
    },
    [
      pageHeader({ title: 'Reconciliation', state: stateOf(waiting, options.nowMs) }),
      section(
        { title: 'Waiting', description: 'Payment result unknown. We void or refund it automatically.' },
        chargeTable(options, waiting, 'Waiting charges', {
          title: 'Nothing pending',
          text: 'A charge without an answer appears here until the gateway reports its result.',
        }),
      ),
      section(
        { title: 'Ended by reconciliation', description: `The newest ${rowsMax}.` },
        chargeTable(options, ended, 'Ended charges', {
          title: 'None yet',
          text: 'Voided and refunded charges appear here.',
        }),
      ),
      ordersSection(options),
    ],
  );
}

function stateOf(waiting: readonly Charge[], nowMs: number): { tone: Tone; text: string } {
  if (waiting.length === 0) return { tone: 'good', text: 'No unconfirmed charges.' };
  const oldest = waiting[0]!.createdAt.getTime();
  const isOld = isUnconfirmedTooLong(nowMs - oldest);
  return {
    tone: isOld ? 'bad' : 'warn',
    text: `${formatCount(waiting.length)} ${waiting.length === 1 ? 'charge waits' : 'charges wait'}, the oldest since ${formatTime(oldest)}.`,
  };
}

function chargeTable(
  { names, nowMs, staff }: PageOptions,
  charges: readonly Charge[],
  caption: string,
  empty: { title: string; text: string },
): Html {
  return table<Charge>({
    caption,
    card: { line: ['state', 'amount', 'since'] },
    columns: [
      linkColumn('tenant', 'Customer', (charge) => [
        names.get(charge.tenantId) ?? String(charge.tenantId),
        `/console/customers/${charge.tenantId}`,
      ]),
      { key: 'attempt', header: 'Attempt', kind: 'figure', cell: (charge) => String(charge.id) },
      cellColumn('for', 'For', (charge) => (charge.orderId === null ? 'credit' : `order ${charge.orderId}`)),
      cellColumn('state', 'State', (charge) => badge(chargeTones[charge.state], charge.state)),
      {
        key: 'amount',
        header: 'Amount',
        kind: 'figure',
        cell: (charge) => formatMoney(charge.amountQuanta, charge.currency),
      },
      cellColumn('since', 'Created', (charge) => age(charge.createdAt.getTime(), nowMs)),
      { key: 'tries', header: 'Tries', kind: 'figure', cell: (charge) => String(charge.attempts) },
      { key: 'why', header: 'Last word', kind: 'prose', cell: (charge) => charge.lastError ?? '' },
      actionsColumn('act', (charge) =>
        charge.state === 'unconfirmed' && staff.canChange
          ? actionButton({
              action: '/console/reconciliation/retry',
              csrfToken: staff.csrfToken,
              label: 'Ask now',
              fields: { charge: charge.id },
            })
          : '',
      ),
      codeColumn('reference', 'At the gateway', (charge) =>
        charge.gatewayReference === null ? '' : code(charge.gatewayReference),
      ),
    ],
    rows: charges,
    empty,
  });
}

function ordersSection({ orders, names, nowMs }: PageOptions): Html {
  return section(
    {
      title: 'Paid orders that failed',
      description:
        'Refused after the card was charged. Charges of new orders are refunded. Charges of earlier versions remain customer credit.',
    },
    table<ClosedOrder>({
      caption: 'Paid orders that failed',
      card: { line: ['paid', 'reason'] },
      columns: [
        linkColumn('tenant', 'Customer', (order) => [
          names.get(order.tenantId) ?? String(order.tenantId),
          `/console/customers/${order.tenantId}`,
        ]),
        { key: 'order', header: 'Order', kind: 'figure', cell: (order) => String(order.id) },
        figureColumn('paid', 'Paid', (order: ClosedOrder) => order.dueQuanta, formatMoney),
        codeColumn('reason', 'Reason', (order) => code(order.reason)),
        cellColumn('at', 'Created', (order) => age(order.createdAt.getTime(), nowMs)),
      ],
      rows: orders,
      empty: { title: 'None', text: 'Paid orders that failed appear here.' },
    }),
  );
}
