/**
 * One process of the customer API on a given database, for proofs that need several: started by `api-fleet.ts` with its
 * orders as JSON, it prints its address and serves until it is killed.
 */
import { createTestClock, systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { compose } from '#operations/composition.ts';
import { readOperationsSettings } from '#operations/config.ts';
import { registerCustomerApi } from '#operations/surfaces/customer-api/index.ts';
import { createHttpServer } from '#service-kit/http/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';

export interface ProcessOrders {
  databaseUrl: string;
  includedPerMonth: number;
  /** By how much this process's own clock is wrong. */
  skewMs: number;
  /** Whether commits are acknowledged before they are on disk: a bug for proofs of kills. */
  acknowledgesEarly: boolean;
}

const orders = JSON.parse(process.argv[2]!) as ProcessOrders;
if (orders.acknowledgesEarly) orders.databaseUrl += '&options=-c%20synchronous_commit%3Doff';

const { pool, db } = createPool(orders.databaseUrl, 10);
const database = { name: 'database', pool, db, reader: db, start: async () => {}, stop: () => db.destroy() };
const settings = readOperationsSettings({ API_INCLUDED_REQUESTS_PER_MONTH: String(orders.includedPerMonth) });
const features = await compose(settings, { database, reporter: silentReporter });
const http = await createHttpServer({
  host: '127.0.0.1',
  port: 0,
  portSetting: 'none',
  reporter: silentReporter,
  routes: (app) =>
    registerCustomerApi(app, {
      ...features,
      clock: orders.skewMs === 0 ? systemClock : createTestClock(Date.now() + orders.skewMs),
      requestsPerMinute: 1_000_000,
      authFailuresMax: 1_000_000,
    }),
});
await http.start();
process.stdout.write(`${http.url}\n`);
process.on('SIGTERM', async () => {
  await http.stop();
  process.exit(0);
});
