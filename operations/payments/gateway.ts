/** What a payment gateway does for us. Ids are ours and travel with every call, so that repeating a call is harmless. */

/** What the gateway must know to take a charge. */
export interface GatewayCharge {
  /** Our id of the charge, stored before the first call. */
  key: string;
  tenantId: number;
  amountQuanta: number;
  currency: string;
  description: string;
  /** The gateway's names of the customer and the card. */
  customerReference: string | null;
  cardReference: string;
}

/** How a charge stands at the gateway. `open`: not taken, but it may still be. */
export type GatewayState =
  | { kind: 'succeeded' }
  | { kind: 'declined'; reason: string }
  | { kind: 'canceled' }
  | { kind: 'open' };

export interface GatewayCard {
  reference: string;
  brand: string;
  last4: string;
  expiresMonth: number;
  expiresYear: number;
}

export interface CardSetup {
  /** Where the customer's browser goes to give the card to the gateway. */
  url: string;
}

/**
 * A gateway. Every method may throw when the gateway does not answer, or not as it should: the caller then knows
 * nothing about what happened. What it returns is certain.
 */
export interface PaymentGateway {
  readonly name: 'test' | 'stripe';
  /** Makes the charge known to the gateway without taking money; the same key gives the same reference. */
  prepare(
    charge: GatewayCharge,
  ): Promise<{ kind: 'prepared'; reference: string } | { kind: 'declined'; reason: string }>;
  /** Takes the money of a prepared charge. Repeating it takes nothing twice. */
  take(key: string, reference: string): Promise<GatewayState>;
  read(reference: string): Promise<GatewayState>;
  /** Voids an open charge or refunds a paid one. `open` when the result is not known yet. */
  undo(key: string, reference: string): Promise<'voided' | 'refunded' | 'open'>;
  /** The gateway's name for this customer. */
  ensureCustomer(tenant: { id: number; name: string; email: string | null }): Promise<string | null>;
  startCardSetup(setup: {
    customerReference: string | null;
    returnUrl: string;
    cancelUrl: string;
  }): Promise<CardSetup>;
  /** The card that a finished set-up gave; null when it is not finished, or not this customer's. */
  finishCardSetup(setupReference: string, customerReference: string | null): Promise<GatewayCard | null>;
  forgetCard(reference: string): Promise<void>;
  /**
   * What a callback is about; null when it is not the gateway's. Nothing else of it is believed: callbacks come twice,
   * late and in any order, so one only says where to look now.
   */
  readCallback?(rawBody: Buffer, signature: string): { chargeKey: string | null } | null;
}
