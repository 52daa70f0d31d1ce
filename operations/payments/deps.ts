/** What payments need from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PaymentGateway } from './gateway.ts';

export interface PaymentsDeps {
  db: () => Queryable;
  gateway: PaymentGateway;
  clock: Clock;
  reporter: Reporter;
  /** A charge this old without an outcome has lost its process. */
  abandonSeconds?: number;
}
