/**
 * One process of the customer API on a given database, for proofs that need several: started by `api-fleet.ts` with its
 * orders as JSON, it prints its address and serves until it is killed. It can be told to have a known bug.
 */
import { createTestClock, systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { ApiKeys, Principal } from '#operations/api-keys/index.ts';
import { compose } from '#operations/composition.ts';
import { readOperationsSettings } from '#operations/config.ts';
import type { Metering } from '#operations/metering/index.ts';
import { registerCustomerApi } from '#operations/surfaces/customer-api/index.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createHttpServer } from '#service-kit/http/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';

export type PlantedBug =
  | 'read then write'
  | 'own numbers'
  | 'cached verdicts'
  | 'acknowledge early'
  | 'own clock';

export interface ProcessOrders {
  databaseUrl: string;
  includedPerMonth: number;
  /** By how much this process's own clock is wrong. */
  skewMs: number;
  bug: PlantedBug | null;
}

const orders = JSON.parse(process.argv[2]!) as ProcessOrders;
if (orders.bug === 'read then write') plantSql(readThenWrite);
if (orders.bug === 'own clock') plantSql(ownClock);
if (orders.bug === 'acknowledge early') orders.databaseUrl += '&options=-c%20synchronous_commit%3Doff';

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
      apiKeys: orders.bug === 'cached verdicts' ? cacheVerdicts(features.apiKeys) : features.apiKeys,
      metering: orders.bug === 'own numbers' ? numberAlone(features.metering) : features.metering,
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

/** Takes the count from the statement's snapshot instead of the locked row. */
function readThenWrite(text: string): string {
  if (!text.includes('insert into usage_months')) return text;
  const read =
    '(select u.count from usage_months u where u.tenant_id = kept.tenant_id and u.month = kept.month)';
  return text.replace(/set count = kept\.count(?= \+ excluded\.count\s+returning)/, `set count = ${read}`);
}

/** Counts in the month of this process's clock. */
function ownClock(text: string): string {
  if (!text.includes('insert into usage_months')) return text;
  return text.replaceAll('svc_now()', `(svc_now() + interval '${orders.skewMs} milliseconds')`);
}

/** Gives out the numbers that this process would reach alone. */
function numberAlone(metering: Metering): Metering {
  let own = 0;
  return Object.create(metering, {
    countRequest: {
      async value(tenantId: number, keyId: string) {
        await metering.countRequest(tenantId, keyId);
        own += 1;
        return own;
      },
    },
  }) as Metering;
}

function cacheVerdicts(keys: ApiKeys): ApiKeys {
  const known = new Map<string, Principal>();
  return {
    ...keys,
    async verifyKey(token) {
      const verdict = known.get(token) ?? (await keys.verifyKey(token));
      if (verdict !== null) known.set(token, verdict);
      return verdict;
    },
  };
}
