/**
 * The composition of the monitor on its own database, with a stub of operations and without its HTTP server.
 */
import { silentReporter } from '#common/reporter/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import {
  type FeedsDeps,
  incidents,
  live,
  minutes,
  portScans,
  vulnerabilities,
} from '#monitor/feeds/index.ts';
import { startOperationsStub } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { testWrapper } from '#service-kit/secrets/testing/test-secrets.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { renewRunningMinute } from './facts.ts';

export type World = Awaited<ReturnType<typeof createWorld>>;

/** One site, cluster 7 mapped to it, and a connection to a stub of operations. */
export async function createWorld() {
  renewRunningMinute();
  const database = await createTestDatabase('monitor');
  const operations = await startOperationsStub();
  const config = {
    ...readConfig({ SVC_LOG_LEVEL: 'error', SVC_MAC_VENDOR_LOOKUP_URL: '' }),
    allowDocumentationAddresses: true,
    inventorySyncSeconds: 5,
    feeds: {
      [minutes.name]: { isOn: true, intervalSeconds: 5 },
      [live.name]: { isOn: true, intervalSeconds: 5 },
      [incidents.name]: { isOn: true, intervalSeconds: 5 },
      [portScans.name]: { isOn: true, intervalSeconds: 5 },
      [vulnerabilities.name]: { isOn: true, intervalSeconds: 5 },
    },
  };
  const composed = (feedDeps: Partial<FeedsDeps> = {}) =>
    compose(config, {
      database: { ...database, name: 'database', start: async () => {}, stop: async () => {} },
      reporter: silentReporter,
      keyWrapper: testWrapper,
      feedDeps,
    });
  const monitor = composed();
  const { sites, connection, traffic, applications } = monitor;
  /** The minute feed, as another process would have it. */
  const createFeed = (change: Partial<FeedsDeps> = {}) => {
    const { feeds } = composed({ sites, connection, traffic, applications, ...change });
    return { ...feeds, ...feeds.find(minutes.name) };
  };
  const site = await sites.create(systemActor, 'Test site');
  await sites.mapCluster(systemActor, 7, site.id);
  await connection.save(systemActor, {
    baseUrl: operations.url,
    token: operations.token,
    isEnabled: true,
  });
  return {
    ...monitor,
    database,
    operations,
    createFeed,
    siteId: site.id,
    async [Symbol.asyncDispose]() {
      await operations[Symbol.asyncDispose]();
      await database.drop();
    },
  };
}

/** A fingerprint of every row of every table except leases: equal before and after calls that change nothing. */
export async function fingerprintTables(database: TestDatabase): Promise<string> {
  const { rows } = await database.pool.query<{ name: string }>(
    `select relname as name from pg_class join pg_namespace n on n.oid = relnamespace
     where nspname = 'public' and relkind in ('r', 'p') and not relispartition and relname <> 'leases' order by 1`,
  );
  const parts: string[] = [];
  for (const { name } of rows) {
    const { rows: sums } = await database.pool.query<{ sum: string }>(
      `select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as sum from ${name} t`,
    );
    parts.push(`${name} ${sums[0]!.sum}`);
  }
  return parts.join('\n');
}
