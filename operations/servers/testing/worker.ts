/** A process of its own that works on servers' jobs until it is killed: `worker.ts DATABASE_URL`. */
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createAddresses } from '#operations/addresses/index.ts';
import { createCatalog } from '#operations/catalog/index.ts';
import { createSimulatedDriver, singleDriver } from '#operations/hypervisors/index.ts';
import { serverJobs } from '#operations/servers/index.ts';
import { createJobRunner } from '#service-kit/jobs/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';

const { pool, db: connected } = createPool(process.argv[2]!, 4);
const db = () => connected;
const deps = {
  db,
  pool: () => pool,
  catalog: createCatalog({ db }),
  addresses: createAddresses({ db }),
  hypervisors: singleDriver(
    createSimulatedDriver({ db, clock: systemClock, preparedGuests: [], stepMs: 20 }),
  ),
  reporter: silentReporter,
  deploysPerHour: 100,
  wake: () => {},
};
await createJobRunner({
  db,
  handlers: serverJobs(deps),
  clock: systemClock,
  reporter: silentReporter,
  pollMs: 20,
}).start();
process.stdout.write('working\n');
