import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PaymentGateway } from './gateway.ts';
import { createTestGateway } from './test-gateway.ts';

export interface GatewaySettings {
  gateway: 'test' | 'stripe';
  stripeSecretKey: string | null;
  stripeCallbackSecret: string | null;
  stripeUrl: string;
}

/** The gateway that the settings name. Stripe's library is loaded only where it is used. */
export async function createGateway(
  settings: GatewaySettings,
  deps: { db: () => Queryable; clock: Clock; reporter: Reporter },
): Promise<PaymentGateway> {
  if (settings.gateway === 'test') return createTestGateway(deps);
  const { createStripeGateway } = await import('./stripe-gateway.ts');
  return createStripeGateway({
    secretKey: settings.stripeSecretKey!,
    apiUrl: settings.stripeUrl,
    callbackSecret: settings.stripeCallbackSecret,
  });
}
