/** What it takes to order servers on a database, without any surface: for processes that are killed while they do. */
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createAddresses } from '#operations/addresses/index.ts';
import { createCatalog } from '#operations/catalog/index.ts';
import { createClusters } from '#operations/clusters/index.ts';
import { createSimulatedDriver, singleDriver } from '#operations/hypervisors/index.ts';
import { createNetworks } from '#operations/networks/index.ts';
import {
  createOrdering as createFeature,
  createOrders,
  type Ordering as Feature,
  type Orders,
} from '#operations/ordering/index.ts';
import type { OrderWork } from '#operations/ordering/order-work.ts';
import {
  createPayments,
  type PaymentGateway,
  type Payments,
  type PaymentsDeps,
} from '#operations/payments/index.ts';
import { createServers, lockAttachable, type Servers } from '#operations/servers/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import type { Queryable } from '#service-kit/postgres/queryable.ts';

export interface Ordering extends AsyncDisposable {
  pool: ReturnType<typeof createPool>['pool'];
  db: Queryable;
  payments: Payments;
  paymentsDeps: PaymentsDeps;
  orders: Orders;
  ordering: Feature;
  servers: Servers;
}

export interface OrderingOptions {
  gateway: PaymentGateway;
  deploysPerHour?: number;
  abandonSeconds?: number;
  connections?: number;
  /** Puts a planted fault in the place of the payments that orders use. */
  plantPayments?: (usual: Payments) => Payments;
  /** The same for the steps of an order. */
  plantWork?: (usual: OrderWork) => OrderWork;
}

export function createOrdering(url: string, options: OrderingOptions): Ordering {
  const opened = createPool(url, options.connections ?? 10);
  const db = () => opened.db;
  const abandonSeconds = options.abandonSeconds ?? 120;
  const base = { db, clock: systemClock, reporter: silentReporter };
  const paymentsDeps = { ...base, gateway: options.gateway, abandonSeconds };
  const usual = createPayments(paymentsDeps);
  const payments = options.plantPayments?.(usual) ?? usual;
  const usualOrders = createOrders({
    db,
    payments,
    deploysPerHour: options.deploysPerHour ?? 1_000,
    graceSeconds: abandonSeconds,
  });
  const plantWork = options.plantWork ?? ((usual) => usual);
  const orders: Orders = {
    ...usualOrders,
    placeOrder: (order) => usualOrders.placeOrder({ ...order, work: plantWork(order.work) }),
    completeOrders: (work) => usualOrders.completeOrders(plantWork(work)),
  };
  const hypervisors = singleDriver(
    createSimulatedDriver({ db, clock: systemClock, preparedGuests: [], stepMs: 0 }),
  );
  const catalog = createCatalog({ db });
  const clusters = createClusters({ db, hypervisors });
  const networks = createNetworks({
    ...base,
    catalog,
    clusters,
    hypervisors,
    lockServer: lockAttachable,
    networksMax: 10,
    wake: () => {},
  });
  const shared = { ...base, catalog, clusters, networks, hypervisors, wake: () => {} };
  return {
    ...opened,
    payments,
    paymentsDeps,
    orders,
    ordering: createFeature({ ...shared, orders }),
    servers: createServers({
      ...shared,
      addresses: createAddresses({ db }),
      findRootPassword: orders.findRootPassword,
    }),
    [Symbol.asyncDispose]: () => opened.db.destroy(),
  };
}
