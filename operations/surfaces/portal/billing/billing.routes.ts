/** `/client/billing/`: credit and the ledger of one workspace; its cards are in `cards.routes.ts`. */
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { formatQuanta, parseMoney } from '#operations/billing/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { chosenOf, csvLines, type Tone } from '#service-kit/pages/index.ts';
import { sendCsv } from '#service-kit/web/index.ts';
import { labelOf } from './billing-ledger.ts';
import { registerCards } from './cards.routes.ts';
import { type BillingRoutesDeps, back, choose, filterOf, showBilling } from './show-billing.ts';

const Query = Type.Object({
  tenant: Type.Optional(Type.String()),
  source: Type.Optional(Type.String({ maxLength: 40 })),
  period: Type.Optional(Type.String({ pattern: '^(|[0-9]{4}-(0[1-9]|1[0-2]))$' })),
  before: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,14}$' })),
  done: Type.Optional(Type.String()),
});
const CreditForm = Type.Object({
  tenant: Type.String(),
  amount: Type.String({ maxLength: 20 }),
  form_id: Type.String({ maxLength: 40 }),
});
const csvMax = 100_000;

/** What the page says after something was done. */
const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  card: { tone: 'good', text: 'The card is saved and will be charged from now on.' },
  default: { tone: 'good', text: 'This card will be charged from now on.' },
  removed: { tone: 'good', text: 'The card is removed.' },
  credit: { tone: 'good', text: 'The credit is added.' },
  declined: { tone: 'bad', text: 'The card was declined; nothing was charged. Try another card.' },
  unconfirmed: {
    tone: 'warn',
    text: 'Payment result unknown. If it was charged, we void or refund it automatically. Wait before you try again.',
  },
};

export function registerBilling(app: App, deps: BillingRoutesDeps): void {
  app.get('/billing/', { schema: { querystring: Query } }, async (request, reply) => {
    const { done, ...query } = request.query;
    return showBilling(deps, request.visitor!, reply, query, { toast: chosenOf(outcomes, done) });
  });

  registerLedger(app, deps);
  registerCards(app, deps);
  registerCredit(app, deps);
}

function registerLedger(app: App, deps: BillingRoutesDeps): void {
  app.get('/billing/ledger.csv', { schema: { querystring: Query } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.query.tenant);
    const filter = filterOf(request.query);
    const entries = await deps.billing.listEntries(visitor.actor, tenant.id, { ...filter, limit: csvMax });
    const name = `ledger-${tenant.slug}${filter.period ? `-${filter.period}` : ''}.csv`;
    const text = csvLines([
      ['id', 'time', 'source', 'what_for', 'description', 'amount', 'currency'],
      ...entries.map(({ id, createdAt, metadata, description, amountQuanta }) => [
        ...[id, createdAt.toISOString(), metadata.source, labelOf(metadata.source), description],
        ...[formatQuanta(amountQuanta), tenant.currency],
      ]),
    ]);
    return sendCsv(reply, name, text);
  });
}

function registerCredit(app: App, deps: BillingRoutesDeps): void {
  app.post('/billing/credit', { schema: { body: CreditForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.body.tenant);
    try {
      const outcome = await deps.payments.addCredit(visitor.actor, tenant.id, {
        amountQuanta: parseMoney(request.body.amount) ?? 0,
        formId: request.body.form_id,
      });
      return back(reply, tenant, outcome.kind === 'succeeded' ? 'credit' : outcome.kind);
    } catch (error) {
      if (!(error instanceof CodedError) || !error.code.startsWith('payments.')) throw error;
      return showBilling(deps, visitor, reply, { tenant: String(tenant.id) }, { error: error.message }, 422);
    }
  });
}
