/** What payments need from the rest of the program. */
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PaymentGateway } from './gateway.ts';

export interface PaymentsDeps {
  db: () => Queryable;
  gateway: PaymentGateway;
  reporter: Reporter;
  /** A charge this old without an outcome has lost its process. */
  abandonSeconds?: number;
}
