/** Parts of operations that others can take the place of. What is absent is made by the settings. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { AdminProjects } from '#operations/admin-projects/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { FeedReceiver } from '#operations/feeds/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Idempotency } from '#operations/idempotency/index.ts';
import type { PaymentGateway } from '#operations/payments/index.ts';
import type { ReverseDnsDeps } from '#operations/reverse-dns/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Database, Queryable } from '#service-kit/postgres/index.ts';
import type { KeyWrapper } from '#service-kit/secrets/index.ts';
import type { OperationsRole } from './roles.ts';

/** Makes a part out of the one that the program would use. */
type Replace<Part> = (usual: Part) => Part;

export interface Overrides {
  /** What this process does; everything when absent. */
  roles?: ReadonlySet<OperationsRole>;
  reporter?: Reporter;
  /** Wall time and waiting of the process; the time of SQL is the database's. */
  clock?: Clock;
  database?: Database;
  /** The key of the database's secrets. */
  keyWrapper?: KeyWrapper;
  hypervisors?: (deps: { db: () => Queryable }) => Hypervisors;
  gateway?: Replace<PaymentGateway>;
  /** DNS servers in place of those of the file. */
  reverseDns?: Pick<ReverseDnsDeps, 'zones' | 'resolve'>;
  idempotency?: Replace<Idempotency>;
  apiKeys?: Replace<ApiKeys>;
  adminProjects?: Replace<AdminProjects>;
  /** Receivers of feeds beside the installed ones. */
  receivers?: readonly FeedReceiver[];
  /** Where links in mails lead, where the settings do not know the port. */
  baseUrl?: () => string;
  /** Failed sign-ins of one source before further ones are refused. */
  signInFailuresMax?: number;
  /** How long the requests of a locked account wait to be counted. */
  countLockTimeoutMs?: number;
  /** How often it is looked whether an open console may stay open. */
  consoleCheckMs?: number;
  /** Sees the HTTP application before its routes are registered. */
  onApp?: (app: App) => void;
}
