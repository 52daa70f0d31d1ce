/** What idempotency needs from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface IdempotencyDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}
