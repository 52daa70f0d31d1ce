/** `/client/billing/`: credit and the ledger of one workspace, and the cards that are charged. */

import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import type { Tenant } from '#operations/accounts/index.ts';
import { formatQuanta, parseMoney } from '#operations/billing/index.ts';
import type { Features } from '#operations/features.ts';
import type { Payments } from '#operations/payments/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  chosenOf,
  csvLines,
  form,
  type Html,
  hiddenField,
  html,
  link,
  pageHeader,
  sendPage,
  type Tone,
} from '#service-kit/pages/index.ts';
import { noSuchPage, sendCsv } from '#service-kit/web/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { back, choose, filterOf, labelOf, showBilling } from './billing.page.ts';

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
  'used-up': { tone: 'good', text: 'Your choice is saved.' },
  declined: { tone: 'bad', text: 'The card was declined; nothing was charged. Try another card.' },
  unconfirmed: {
    tone: 'warn',
    text: 'Payment result unknown. If it was charged, we void or refund it automatically. Wait before you try again.',
  },
};

export function registerBilling(app: App, deps: Features): void {
  app.get('/billing/', { schema: { querystring: Query } }, async (request, reply) => {
    const { done, ...query } = request.query;
    return showBilling(deps, request.visitor!, reply, query, { toast: chosenOf(outcomes, done) });
  });

  registerLedger(app, deps);
  registerCards(app, deps);
  registerCredit(app, deps);
  registerUsedUp(app, deps);
}

function registerLedger(app: App, deps: Features): void {
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

const UsedUpForm = Type.Object({
  tenant: Type.String(),
  when_used_up: Type.Union([Type.Literal('charge'), Type.Literal('limit')]),
});

function registerUsedUp(app: App, deps: Features): void {
  app.post('/billing/used-up', { schema: { body: UsedUpForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.body.tenant);
    const account = { tenantId: tenant.id, openedAt: tenant.createdAt };
    try {
      await deps.bandwidth.chooseWhenUsedUp(visitor.actor, account, request.body.when_used_up);
    } catch (error) {
      if (!hasCode(error, 'bandwidth.invalid')) throw error;
      const said = { error: 'The speed of servers can’t be limited here.' };
      return showBilling(deps, visitor, reply, { tenant: String(tenant.id) }, said, 422);
    }
    return back(reply, tenant, 'used-up');
  });
}

function registerCredit(app: App, deps: Features): void {
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

const TenantForm = Type.Object({ tenant: Type.String() });
const CardForm = Type.Object({ tenant: Type.String(), card: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) });
const TestCardForm = Type.Object({ tenant: Type.String(), number: Type.String({ maxLength: 40 }) });
const ReturnQuery = Type.Object({ tenant: Type.String(), setup: Type.String({ maxLength: 300 }) });

/** `/client/billing/cards/`: saving, choosing and removing the cards that are charged. */
function registerCards(app: App, deps: Features): void {
  app.post('/billing/cards/new', { schema: { body: TenantForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.body.tenant);
    const profile = await deps.accounts.billingProfileOf(tenant.id);
    const base = deps.settings.publicUrl ?? `${request.protocol}://${request.host}`;
    try {
      const url = await deps.payments.startCardSetup(
        visitor.actor,
        { ...tenant, email: profile?.email ?? null },
        {
          returnUrl: `${base}/client/billing/cards/return?tenant=${tenant.id}`,
          cancelUrl: `${base}/client/billing/?tenant=${tenant.id}`,
        },
      );
      return sendPage(reply, gatewayPage(visitor, url, deps.payments.cardEntry));
    } catch (error) {
      return showRefusal(deps, request, reply, tenant.id, error);
    }
  });

  // The gateway sends the customer back here with a GET, which changes nothing: the card is saved by the form that this
  // page shows, with the session's token. Otherwise a link on another site could choose the card that is charged.
  app.get('/billing/cards/return', { schema: { querystring: ReturnQuery } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.query.tenant);
    return sendPage(reply, cardReturnPage(visitor, tenant, request.query.setup));
  });

  app.post('/billing/cards/return', { schema: { body: ReturnQuery } }, async (request, reply) => {
    const { tenant, setup } = request.body;
    return saveCard(deps, request, reply, tenant, setup);
  });

  app.post('/billing/cards/test', { schema: { body: TestCardForm } }, async (request, reply) => {
    if (!('testCards' in deps.payments.cardEntry)) throw noSuchPage();
    return saveCard(deps, request, reply, request.body.tenant, request.body.number);
  });

  app.post('/billing/cards/default', { schema: { body: CardForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.body.tenant);
    if (!(await deps.payments.makeCardDefault(visitor.actor, tenant.id, Number(request.body.card))))
      throw noSuchPage();
    return back(reply, tenant, 'default');
  });

  app.post('/billing/cards/remove', { schema: { body: CardForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { tenant } = await choose(deps, visitor, request.body.tenant);
    if (!(await deps.payments.removeCard(visitor.actor, tenant.id, Number(request.body.card))))
      throw noSuchPage();
    return back(reply, tenant, 'removed');
  });
}

async function saveCard(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  tenantText: string,
  setup: string,
): Promise<FastifyReply> {
  const visitor = request.visitor!;
  const { tenant } = await choose(deps, visitor, tenantText);
  try {
    await deps.payments.finishCardSetup(visitor.actor, tenant.id, setup);
    return back(reply, tenant, 'card');
  } catch (error) {
    return showRefusal(deps, request, reply, tenant.id, error);
  }
}

/** The page Billing with why no card was saved; throws every other error. */
function showRefusal(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  tenantId: number,
  error: unknown,
): Promise<FastifyReply> {
  const isUnavailable = hasCode(error, 'payments.unavailable');
  if (!isUnavailable && !hasCode(error, 'payments.no_card')) throw error;
  const why = { error: describeError(error) };
  return showBilling(
    deps,
    request.visitor!,
    reply,
    { tenant: String(tenantId) },
    why,
    isUnavailable ? 503 : 422,
  );
}

/** The two pages around the gateway's own: on the way to it, and back with the card that it has taken. */
const title = 'Add a card';

function frame(visitor: Visitor, content: Html[]): Html {
  return portalFrame({ visitor, title, current: 'billing', isNarrow: true }, content);
}

/** On the way to the gateway. A form may not lead to another site, a link may. */
function gatewayPage(visitor: Visitor, url: string, cardEntry: Payments['cardEntry']): Html {
  const site = 'site' in cardEntry ? cardEntry.site : 'the test gateway';
  const text = `Your card is typed on ${site}’s page; its number never comes to us.`;
  return frame(visitor, [
    pageHeader({ title, state: { tone: 'info', text } }),
    html`<p>${link(url, `Continue to ${site}`, { kind: 'primary' })} ${link('/client/billing/#cards', 'Back', { kind: 'button' })}</p>`,
  ]);
}

/** Back from the gateway: nothing is saved until the person confirms it here. */
function cardReturnPage(visitor: Visitor, tenant: Tenant, setup: string): Html {
  const text = `The payment page has taken your card. Save it to pay for ${tenant.name}.`;
  return frame(visitor, [
    pageHeader({ title: 'Save your card', state: { tone: 'info', text } }),
    form(
      {
        action: '/client/billing/cards/return',
        csrfToken: visitor.csrfToken,
        submit: 'Save card',
        cancel: link(`/client/billing/?tenant=${tenant.id}`, 'Do not save it', { kind: 'button' }),
      },
      [hiddenField('tenant', tenant.id), hiddenField('setup', setup)],
    ),
  ]);
}
