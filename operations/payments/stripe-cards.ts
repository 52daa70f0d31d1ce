/** Stripe's customers and their cards: hosted Checkout in setup mode. */
import { createHash } from 'node:crypto';
import Stripe from 'stripe';
import { CodedError } from '#common/errors/index.ts';
import type { PaymentGateway } from './gateway.ts';

export async function ensureCustomer(
  stripe: Stripe,
  tenant: Parameters<PaymentGateway['ensureCustomer']>[0],
): Promise<string> {
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
export async function startCardSetup(
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
    if (error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing')
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
export async function finishCardSetup(stripe: Stripe, reference: string, customerReference: string | null) {
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
