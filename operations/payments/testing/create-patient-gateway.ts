import Stripe from 'stripe';
import type { PaymentGateway } from '#operations/payments/gateways/gateway.ts';
import { createStripeGateway } from '#operations/payments/gateways/stripe.ts';
import type { FakeStripe } from './start-fake-stripe.ts';

/** Stripe's gateway at the fake one: it waits as long as an answer takes, and a second where the test says that none comes. */
export function createPatientGateway(
  { url: apiUrl }: FakeStripe,
  callbackSecret: string | null,
  isSilent: () => boolean,
): PaymentGateway {
  const waiting = (timeoutMs: number) =>
    createStripeGateway(Stripe, { secretKey: 'sk_test_x', apiUrl, callbackSecret, timeoutMs });
  const [patient, hasty] = [waiting(120_000), waiting(1_000)];
  return {
    ...patient,
    take: (key, reference) => (isSilent() ? hasty : patient).take(key, reference),
    read: (reference) => (isSilent() ? hasty : patient).read(reference),
  };
}
