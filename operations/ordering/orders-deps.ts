/** What orders and their payment need from the rest of the program. */
import type { Payments } from '#operations/payments/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface OrdersDeps {
  db: () => Queryable;
  payments: Payments;
  /** Orders that one account may place within an hour. */
  deploysPerHour: number;
  /** Runs the transaction that makes an account's order, one at a time. */
  takeTurn: <T>(tenantId: number, work: () => Promise<T>) => Promise<T>;
  /** How long a paid order is left to the process that was paid. */
  graceSeconds?: number;
}
