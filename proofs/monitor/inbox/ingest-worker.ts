/** A process of its own that applies uploads until it is killed: `ingest-worker.ts ORDERS`, the orders as JSON. */
import { silentReporter } from '#common/reporter/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { createPool } from '#service-kit/postgres/database.ts';

export interface WorkerOrders {
  databaseUrl: string;
  leaseSeconds: number;
  /** After so long without an answer a connection is given up. */
  answerMs: number;
  /** ClickHouse with the facts; PostgreSQL without it. */
  factsUrl?: string;
}

const orders = JSON.parse(process.argv[2]!) as WorkerOrders;
const { pool, db } = createPool(orders.databaseUrl, 6, { answerMs: orders.answerMs });
const database = { name: 'database', pool, db, reader: db, start: async () => {}, stop: () => db.destroy() };
const { leaseSeconds, factsUrl = '' } = orders;
const { inbox, factEngine } = compose(readConfig({ SVC_FACTS_URL: factsUrl }), {
  database,
  // Planted faults are not reported.
  reporter: silentReporter,
  inbox: { leaseSeconds, retrySeconds: 0.1, ...(factsUrl ? { gatherMs: 100 } : {}) },
});
if (factsUrl) await startWhenItAnswers();
await inbox.worker.start();
process.stdout.write('working\n');

/** A service manager starts a worker again until it starts. */
async function startWhenItAnswers(): Promise<void> {
  for (;;) {
    try {
      await factEngine.part.start();
      return;
    } catch {
      await new Promise((wake) => setTimeout(wake, 200));
    }
  }
}
