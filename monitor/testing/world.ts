/**
 * The monitor's features on a database of their own, without its HTTP server, for tests that need several of them.
 */
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createApplications, nameApplication } from '#monitor/applications/index.ts';
import { createDevices } from '#monitor/devices/index.ts';
import { createEvents } from '#monitor/events/index.ts';
import { createFactStore } from '#monitor/facts/index.ts';
import { createFeeds, type FeedsDeps, installedFeeds, minutes } from '#monitor/feeds/index.ts';
import { createInventory } from '#monitor/inventory/index.ts';
import { connectionSecrets, createConnection } from '#monitor/operations-client/index.ts';
import {
  type OperationsStub,
  startOperationsStub,
} from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createSites } from '#monitor/sites/index.ts';
import { createTraffic } from '#monitor/traffic/index.ts';
import { createVendors } from '#monitor/vendors/index.ts';
import { createTestSecrets } from '#service-kit/secrets/testing/test-secrets.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';

export type World = Awaited<ReturnType<typeof createWorld>>;

/** One site, cluster 7 mapped to it, and a connection to a stub of operations. */
export async function createWorld() {
  const database = await createTestDatabase('monitor');
  const operations = await startOperationsStub();
  const db = () => database.db;
  const base = { db, clock: systemClock, reporter: silentReporter };
  const events = createEvents(base);
  const sites = createSites(base);
  const facts = createFactStore({ db, nameApplication });
  const traffic = createTraffic({ db, facts });
  const applications = createApplications({ db, facts, clock: systemClock, rankingHoldSeconds: 90 });
  const secrets = createTestSecrets({ db, program: 'monitor', columns: connectionSecrets });
  const connection = createConnection({ ...base, secrets });
  const vendors = createVendors({ ...base, registryUrl: null });
  const devices = createDevices({ db, events, vendors });
  const onPlaced = facts.rejudge;
  const inventory = createInventory({ ...base, connection, devices, sites, onPlaced, intervalSeconds: 5 });
  const feedDeps = { ...base, connection, sites, traffic, applications, documentationIsGlobal: true };
  const cadences = { [minutes.name]: { isOn: true, intervalSeconds: 5 } };
  /** The minute feed. */
  const createFeed = (change: Partial<FeedsDeps> = {}) => {
    const feeds = createFeeds({ ...feedDeps, feeds: installedFeeds, cadences, ...change });
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
    database,
    secrets,
    operations,
    events,
    sites,
    facts,
    traffic,
    applications,
    connection,
    devices,
    vendors,
    inventory,
    createFeed,
    siteId: site.id,
    async [Symbol.asyncDispose]() {
      await operations[Symbol.asyncDispose]();
      await database.drop();
    },
  };
}

/** A fingerprint of every row of every table but the leases: equal before and after what changes nothing. */
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

export type { OperationsStub };
