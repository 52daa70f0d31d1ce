/**
 * What a payment gateway is, and what it does for us. A new one is one file beside this one, named in `index.ts`. Ids are ours
 * and travel with every call, so that repeating a call is harmless.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Setting, SettingValues } from '#common/config/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A gateway that an installation can choose. */
export interface GatewayKind<Settings extends Record<string, Setting<unknown>>> {
  /** Its own settings in the environment. */
  settings: Settings;
  /** Name of a setting that it can't do without and that is not set; null: none. */
  missing?(settings: SettingValues<Settings>): string | null;
  /** The header that signs its callbacks to `/integrations/NAME`; absent: it sends none. */
  callbackHeader?: string;
  create(
    settings: SettingValues<Settings>,
    deps: { db: () => Queryable; clock: Clock },
  ): Promise<PaymentGateway>;
}

export const gatewayKind = <Settings extends Record<string, Setting<unknown>>>(kind: GatewayKind<Settings>) =>
  kind;

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

/** A card of the test gateway. */
export interface TestCard {
  number: string;
  /** What happens to its charges. */
  label: string;
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
  /** As in `SVC_PAYMENT_GATEWAY`, and as it is stored with cards and charges. */
  readonly name: string;
  /** How a customer enters a card: on the page of this site, or by choosing one of these test cards in the portal. */
  readonly cardEntry: { site: string } | { testCards: readonly TestCard[] };
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
