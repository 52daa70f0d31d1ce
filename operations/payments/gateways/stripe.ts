/**
 * Stripe, by its own library: PaymentIntents for charges, hosted Checkout in setup mode for cards.
 *
 * A charge is an intent that is created unconfirmed under our key and taken by confirming it: until then no money can
 * move, and cancelling it afterwards is certain. Cards are typed on Stripe's page; their numbers never come here.
 */
import { createHash } from 'node:crypto';
import type Stripe from 'stripe';
import { httpUrlSetting, optionalTextSetting } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { type GatewayCharge, type GatewayState, gatewayKind, type PaymentGateway } from './gateway.ts';

export const stripe = gatewayKind({
  settings: {
    stripeSecretKey: optionalTextSetting(
      'SVC_STRIPE_SECRET_KEY',
      'Secret key of the Stripe account, for SVC_PAYMENT_GATEWAY=stripe.',
    ),
    stripeCallbackSecret: optionalTextSetting(
      'SVC_STRIPE_CALLBACK_SECRET',
      'Signing secret of the Stripe webhook endpoint /integrations/stripe; without it callbacks are refused and charges are looked up by time alone.',
    ),
    stripeUrl: httpUrlSetting('SVC_STRIPE_URL', 'https://api.stripe.com', 'Where the Stripe API is.'),
  },
  missing: ({ stripeSecretKey }) => (stripeSecretKey === null ? 'SVC_STRIPE_SECRET_KEY' : null),
  callbackHeader: 'stripe-signature',
  // Only an installation that uses Stripe loads its library.
  create: async ({ stripeSecretKey, stripeCallbackSecret, stripeUrl }) =>
    createStripeGateway((await import('stripe')).default, {
      secretKey: stripeSecretKey!,
      callbackSecret: stripeCallbackSecret,
      apiUrl: stripeUrl!,
    }),
});

export interface StripeGatewayOptions {
  secretKey: string;
  /** Where Stripe's API is; another one in tests. */
  apiUrl: string;
  /** Signs the callbacks; without it none is taken. */
  callbackSecret: string | null;
  /** How long one call may take; a charge makes three at most. */
  timeoutMs?: number;
}

const quantaPerCent = 100;

export function createStripeGateway(Library: typeof Stripe, options: StripeGatewayOptions): PaymentGateway {
  const url = new URL(options.apiUrl);
  const stripe = new Library(options.secretKey, {
    protocol: url.protocol === 'http:' ? 'http' : 'https',
    host: url.hostname,
    port: url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port),
    timeout: options.timeoutMs ?? 15_000,
    // One repetition, under the same key: Stripe answers it with what the first one came to.
    maxNetworkRetries: 1,
    telemetry: false,
  });
  return {
    name: 'stripe',
    cardEntry: { site: 'Stripe' },
    prepare: (charge) => prepare(stripe, charge),
    take: (key, reference) => take(stripe, key, reference),
    read: async (reference) => settled(stripe, await stripe.paymentIntents.retrieve(reference)),
    undo: (key, reference) => undo(stripe, key, reference),
    ensureCustomer: (tenant) => ensureCustomer(stripe, tenant),
    startCardSetup: (setup) => startCardSetup(stripe, setup),
    finishCardSetup: (reference, customer) => finishCardSetup(stripe, reference, customer),
    readCallback: (rawBody, signature) => readCallback(stripe, rawBody, signature, options.callbackSecret),
    async forgetCard(reference) {
      await stripe.paymentMethods.detach(reference);
    },
  };
}

/** Creates the intent unconfirmed, under our key: no money can move yet. */
async function prepare(stripe: Stripe, charge: GatewayCharge): ReturnType<PaymentGateway['prepare']> {
  try {
    const intent = await stripe.paymentIntents.create(
      {
        amount: charge.amountQuanta / quantaPerCent,
        currency: charge.currency.toLowerCase(),
        ...(charge.customerReference === null ? {} : { customer: charge.customerReference }),
        payment_method: charge.cardReference,
        allowed_payment_method_types: ['card'],
        // The bank cannot redirect the customer: an off-session charge has no browser.
        automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
        description: charge.description,
        metadata: { charge_key: charge.key, tenant_id: String(charge.tenantId) },
      },
      { idempotencyKey: charge.key },
    );
    return { kind: 'prepared', reference: intent.id };
  } catch (error) {
    const reason = refusalOf(stripe, error);
    if (reason !== null) return { kind: 'declined', reason };
    throw error;
  }
}

async function take(stripe: Stripe, key: string, reference: string): Promise<GatewayState> {
  try {
    const idempotencyKey = `${key}:take`;
    const intent = await stripe.paymentIntents.confirm(reference, { off_session: true }, { idempotencyKey });
    return await settled(stripe, intent);
  } catch (error) {
    if (error instanceof stripe.errors.StripeCardError) return { kind: 'declined', reason: declineOf(error) };
    throw error;
  }
}

/**
 * Ends an intent. Without an idempotency key on the cancellation: Stripe would repeat a refusal from before the intent
 * could be cancelled. A refund has one, so repeating it gives the money back once.
 */
async function undo(stripe: Stripe, key: string, reference: string): Promise<'voided' | 'refunded' | 'open'> {
  const intent = await stripe.paymentIntents.retrieve(reference);
  switch (intent.status) {
    case 'canceled':
      return 'voided';
    case 'processing':
      return 'open';
    case 'succeeded':
      return refund(stripe, key, reference);
    default:
      await stripe.paymentIntents.cancel(reference, { cancellation_reason: 'abandoned' });
      return 'voided';
  }
}

async function refund(stripe: Stripe, key: string, reference: string): Promise<'refunded'> {
  try {
    const given = await stripe.refunds.create(
      { payment_intent: reference },
      { idempotencyKey: `${key}:refund` },
    );
    if (given.status === 'failed' || given.status === 'canceled')
      throw new CodedError('payments.gateway', `Stripe could not give the money back: ${given.status}.`);
  } catch (error) {
    if (!(error instanceof stripe.errors.StripeError) || error.code !== 'charge_already_refunded')
      throw error;
  }
  return 'refunded';
}

/** How an intent stands. One that needs the customer's confirmation is cancelled, so that it cannot succeed later. */
async function settled(stripe: Stripe, intent: Stripe.PaymentIntent): Promise<GatewayState> {
  if (intent.status !== 'requires_action') return stateOf(intent);
  await stripe.paymentIntents.cancel(intent.id, { cancellation_reason: 'abandoned' });
  return { kind: 'declined', reason: 'authentication_required' };
}

function stateOf(intent: Stripe.PaymentIntent): GatewayState {
  switch (intent.status) {
    case 'succeeded':
      return { kind: 'succeeded' };
    case 'canceled':
      return { kind: 'canceled' };
    case 'requires_payment_method':
      return { kind: 'declined', reason: intent.last_payment_error?.decline_code ?? 'card_declined' };
    default:
      return { kind: 'open' };
  }
}

/** A refusal that no repetition changes, such as a card that is gone; null for everything that may pass. */
function refusalOf({ errors }: Stripe, error: unknown): string | null {
  if (error instanceof errors.StripeCardError) return declineOf(error);
  if (error instanceof errors.StripeInvalidRequestError && error.code === 'resource_missing')
    return 'card_unknown';
  return null;
}

function declineOf(error: Stripe.errors.StripeCardError): string {
  return error.decline_code ?? error.code ?? 'card_declined';
}

/** The signature is compared in constant time over the raw body; one older than five minutes is refused. */
function readCallback(
  stripe: Stripe,
  rawBody: Buffer,
  signature: string,
  secret: string | null,
): { chargeKey: string | null } | null {
  if (secret === null) return null;
  try {
    const event = stripe.webhooks.constructEvent(rawBody, signature, secret);
    if (!event.type.startsWith('payment_intent.')) return { chargeKey: null };
    return { chargeKey: (event.data.object as Stripe.PaymentIntent).metadata.charge_key ?? null };
  } catch {
    return null;
  }
}

async function ensureCustomer(stripe: Stripe, tenant: Parameters<PaymentGateway['ensureCustomer']>[0]) {
  const customer = await stripe.customers.create(
    {
      name: tenant.name,
      ...(tenant.email === null ? {} : { email: tenant.email }),
      metadata: { tenant_id: String(tenant.id) },
    },
    // Stripe refuses a key that comes back with other words, as when the customer is called differently now.
    { idempotencyKey: `customer:${tenant.id}:${wordsOf(tenant)}` },
  );
  return customer.id;
}

/** Stripe's own page takes the card and sends the customer back. */
async function startCardSetup(
  stripe: Stripe,
  { customerReference, returnUrl, cancelUrl }: Parameters<PaymentGateway['startCardSetup']>[0],
): Promise<{ url: string }> {
  const session = await stripe.checkout.sessions.create({
    mode: 'setup',
    allowed_payment_method_types: ['card'],
    ...(customerReference === null ? {} : { customer: customerReference }),
    success_url: `${returnUrl}${returnUrl.includes('?') ? '&' : '?'}setup={CHECKOUT_SESSION_ID}`,
    cancel_url: cancelUrl,
  });
  if (!session.url) throw new CodedError('payments.gateway', 'Stripe gave no page to send the card to.');
  return { url: session.url };
}

/** Null for a set-up that Stripe doesn't know: any caller can put an id into the URL of the page. */
async function findSession(stripe: Stripe, reference: string): Promise<Stripe.Checkout.Session | null> {
  try {
    return await stripe.checkout.sessions.retrieve(reference, { expand: ['setup_intent.payment_method'] });
  } catch (error) {
    if (error instanceof stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing')
      return null;
    throw error;
  }
}

/** Stands for what a customer is called, in a key that Stripe sees. */
function wordsOf(tenant: { name: string; email: string | null }): string {
  return createHash('sha256')
    .update(JSON.stringify([tenant.name, tenant.email]))
    .digest('hex')
    .slice(0, 16);
}

/** The card of a set-up that the customer completed; null for one that is not theirs, not complete, or gone. */
async function finishCardSetup(stripe: Stripe, reference: string, customerReference: string | null) {
  if (!/^cs_[A-Za-z0-9_]{1,200}$/.test(reference)) return null;
  const session = await findSession(stripe, reference);
  if (session === null) return null;
  const customer = typeof session.customer === 'string' ? session.customer : session.customer?.id;
  if (customerReference === null || customer !== customerReference || session.status !== 'complete')
    return null;
  const intent = session.setup_intent;
  const method = intent && typeof intent !== 'string' ? intent.payment_method : null;
  if (!method || typeof method === 'string' || !method.card) return null;
  // A card that was removed since is still in its set-up, but can't be charged any more.
  const holder = typeof method.customer === 'string' ? method.customer : method.customer?.id;
  if (holder !== customerReference) return null;
  return {
    reference: method.id,
    brand: method.card.brand,
    last4: method.card.last4,
    expiresMonth: method.card.exp_month,
    expiresYear: method.card.exp_year,
  };
}
