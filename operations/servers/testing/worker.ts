/** A process of its own that works on servers' jobs until it is killed: `worker.ts DATABASE_URL`. */
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createAddresses } from '#operations/addresses/index.ts';
import { createCatalog } from '#operations/catalog/index.ts';
import { createClusters } from '#operations/clusters/index.ts';
import { createSimulatedDriver, type HypervisorDriver, singleDriver } from '#operations/hypervisors/index.ts';
import { createNetworks } from '#operations/networks/index.ts';
import { createOrders } from '#operations/ordering/index.ts';
import { createPayments, createTestGateway } from '#operations/payments/index.ts';
import { lockAttachable } from '#operations/servers/index.ts';
import { serverJobs } from '#operations/servers/jobs.ts';
import { createJobRunner, type JobRunner } from '#service-kit/jobs/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** What works on the jobs of servers on this database, with the guests of this hypervisor. */
export function createServerWorker(connected: Queryable, driver: HypervisorDriver): JobRunner {
  const db = () => connected;
  const payments = createPayments({
    db,
    gateway: createTestGateway({ db }),
    clock: systemClock,
    reporter: silentReporter,
  });
  const hypervisors = singleDriver(driver);
  const catalog = createCatalog({ db });
  const shared = {
    db,
    catalog,
    hypervisors,
    clusters: createClusters({ db, hypervisors, catalog }),
    clock: systemClock,
    reporter: silentReporter,
    wake: () => {},
  };
  const deps = {
    ...shared,
    addresses: createAddresses({ db, hypervisors, addressesMax: 5 }),
    networks: createNetworks({
      ...shared,
      lockServer: lockAttachable,
      networksMax: 10,
    }),
    snapshotsMax: 5,
    snapshotGbQuanta: 0,
    findRootPassword: createOrders({ db, payments, deploysPerHour: 100 }).findRootPassword,
  };
  return createJobRunner({ ...shared, handlers: serverJobs(deps), pollMs: 20 });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { db } = createPool(process.argv[2]!, 4);
  const driver = createSimulatedDriver({
    ...{ db: () => db, clock: systemClock, preparedGuests: [], stepMs: 20 },
  });
  await createServerWorker(db, driver).start();
  process.stdout.write('working\n');
}
