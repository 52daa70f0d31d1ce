import type { LoopDeps } from '#service-kit/leases/index.ts';
import type { PaymentGateway } from './gateways/gateway.ts';

export interface PaymentsDeps extends LoopDeps {
  gateway: PaymentGateway;
  /** A charge this old without an outcome has lost its process. */
  abandonSeconds?: number;
}

export type ChargeState =
  | 'intended'
  | 'prepared'
  | 'succeeded'
  | 'declined'
  | 'unconfirmed'
  | 'voided'
  | 'refunded';

export interface Charge {
  id: number;
  /** Its id at the gateway; made once. */
  key: string;
  tenantId: number;
  cardId: number;
  orderId: number | null;
  purpose: 'order' | 'credit';
  amountQuanta: number;
  currency: string;
  gateway: string;
  gatewayReference: string | null;
  state: ChargeState;
  declineReason: string | null;
  /** Times that reconciliation has tried to end it. */
  attempts: number;
  nextAttemptAt: Date | null;
  lastError: string | null;
  createdAt: Date;
  settledAt: Date | null;
}

/** An unconfirmed charge that reconciliation could not end within this time needs a person. */
const unconfirmedMaxMs = 3_600_000;

export const isUnconfirmedTooLong = (ageMs: number): boolean => ageMs > unconfirmedMaxMs;

/** The result of a charge for the caller that waits for it. */
export type ChargeOutcome =
  | { kind: 'succeeded' }
  | { kind: 'declined'; reason: string }
  /** The result is unknown. A later success is refunded. */
  | { kind: 'unconfirmed' };

export interface SavedCard {
  id: number;
  tenantId: number;
  brand: string;
  last4: string;
  expiresMonth: number;
  expiresYear: number;
  /** The card that is charged. */
  isDefault: boolean;
  isExpired: boolean;
  createdAt: Date;
}
