/** A process of its own that works on servers' jobs until it is killed: `worker.ts DATABASE_URL`. */
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createAddresses } from '#operations/addresses/index.ts';
import { createCatalog } from '#operations/catalog/index.ts';
import { createClusters } from '#operations/clusters/index.ts';
import { createSimulatedDriver, singleDriver } from '#operations/hypervisors/index.ts';
import { createNetworks } from '#operations/networks/index.ts';
import { createOrders } from '#operations/ordering/index.ts';
import { createPayments, createTestGateway } from '#operations/payments/index.ts';
import { lockAttachable } from '#operations/servers/index.ts';
import { serverJobs } from '#operations/servers/jobs.ts';
import { createJobRunner } from '#service-kit/jobs/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';

const { db: connected } = createPool(process.argv[2]!, 4);
const db = () => connected;
const payments = createPayments({
  db,
  gateway: createTestGateway({ db }),
  clock: systemClock,
  reporter: silentReporter,
});
const hypervisors = singleDriver(
  createSimulatedDriver({ db, clock: systemClock, preparedGuests: [], stepMs: 20 }),
);
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
await createJobRunner({
  db,
  handlers: serverJobs(deps),
  clock: systemClock,
  reporter: silentReporter,
  pollMs: 20,
}).start();
process.stdout.write('working\n');
