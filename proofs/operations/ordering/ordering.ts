/** What it takes to order servers on a database, without any surface: for processes that are killed while they do. */
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createCatalog } from '#operations/catalog/index.ts';
import { createClusters } from '#operations/clusters/index.ts';
import { createSimulatedDriver, singleDriver } from '#operations/hypervisors/index.ts';
import { createNetworks } from '#operations/networks/index.ts';
import {
  createOrdering as createFeature,
  createOrders,
  type Ordering as Feature,
} from '#operations/ordering/index.ts';
import { createPayments, type PaymentGateway, type Payments } from '#operations/payments/index.ts';
import { lockAttachable } from '#operations/servers/index.ts';
import { createSshKeys } from '#operations/ssh-keys/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import type { Queryable } from '#service-kit/postgres/queryable.ts';

export interface Ordering extends AsyncDisposable {
  pool: ReturnType<typeof createPool>['pool'];
  db: Queryable;
  payments: Payments;
  ordering: Feature;
}

interface OrderingOptions {
  gateway: PaymentGateway;
  abandonSeconds?: number;
  connections?: number;
}

export function createOrdering(url: string, options: OrderingOptions): Ordering {
  const opened = createPool(url, options.connections ?? 10);
  const db = () => opened.db;
  const abandonSeconds = options.abandonSeconds ?? 120;
  const base = { db, clock: systemClock, reporter: silentReporter };
  const payments = createPayments({ ...base, gateway: options.gateway, abandonSeconds });
  const orders = createOrders({ db, payments, deploysPerHour: 1_000, graceSeconds: abandonSeconds });
  const hypervisors = singleDriver(
    createSimulatedDriver({ db, clock: systemClock, preparedGuests: [], stepMs: 0 }),
  );
  const catalog = createCatalog({ db });
  const clusters = createClusters({ db, hypervisors, catalog });
  const networks = createNetworks({
    ...base,
    catalog,
    clusters,
    hypervisors,
    lockServer: lockAttachable,
    networksMax: 10,
    wake: () => {},
  });
  return {
    ...opened,
    payments,
    ordering: createFeature({
      ...{ ...base, catalog, networks, hypervisors, wake: () => {}, orders },
      sshKeys: createSshKeys({ db }),
    }),
    [Symbol.asyncDispose]: () => opened.db.destroy(),
  };
}
