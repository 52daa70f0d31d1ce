/** A process of its own that applies uploads until it is killed: `ingest-worker.ts ORDERS`, the orders as JSON. */
import { silentReporter } from '#common/reporter/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { type PlantedBug, plantBug, retryingBlindly } from './planted-bugs.ts';

export interface WorkerOrders {
  databaseUrl: string;
  leaseSeconds: number;
  /** After so long without an answer a connection is given up. */
  answerMs: number;
  bug: PlantedBug | null;
}

const orders = JSON.parse(process.argv[2]!) as WorkerOrders;
if (orders.bug) plantBug(orders.bug);
const { pool, db } = createPool(orders.databaseUrl, 6, { answerMs: orders.answerMs });
const database = {
  name: 'database',
  pool,
  db: orders.bug === 'blind_retry' ? retryingBlindly(db) : db,
  reader: db,
  start: async () => {},
  stop: () => db.destroy(),
};
const { leaseSeconds } = orders;
const { inbox } = compose(readConfig({}), {
  database,
  // Planted faults are not reported.
  reporter: silentReporter,
  inbox: { leaseSeconds, retrySeconds: 0.1 },
});
await inbox.worker.start();
process.stdout.write('working\n');
