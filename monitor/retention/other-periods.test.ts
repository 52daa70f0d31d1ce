// Slow: looks at every page of a monitor.
// Own process: it changes how long data is kept, before anything is loaded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { kept, keptText } from '#contracts/retention.ts';

const former = { ...kept };
// What an operator sets, then what only the table says.
Object.assign(process.env, { SVC_TRAFFIC_RETENTION_MONTHS: '5', SVC_INCIDENT_RETENTION_YEARS: '4' });
(await import('#monitor/main.ts')).addCommands(new Command());
assert.deepEqual(
  [kept.traffic, kept.bindings, kept.attacks, kept.events],
  ['5 months', '5 months', '4 years', '3 months'],
);
Object.assign(kept, {
  ...{ pairs: '30 hours', availability: '6 months', bindings: '7 months', events: '8 months' },
  ...{ alerts: '9 months', scans: '11 days', audit: '10 years' },
});
const { buildOpenApi } = await import('#contracts/customer-api/index.ts');
const { readConfig } = await import('#monitor/config.ts');
const { createEngine } = await import('#monitor/facts/clickhouse/engine-store.ts');
const { migrate } = await import('#monitor/facts/clickhouse/table-store.ts');
const { ch } = await import('#monitor/facts/clickhouse/statement.ts');
const { createChdbEngine } = await import('#monitor/facts/clickhouse/testing/chdb-engine.ts');
const { createRetention, keptTables } = await import('./index.ts');
const { startMonitorServer } = await import('#monitor/testing/server.ts');

const pages: Readonly<Record<string, keyof typeof kept>> = {
  '/alerts': 'alerts',
  '/audit': 'audit',
  '/sites/SITE/events': 'events',
  '/sites/SITE/incidents': 'attacks',
  '/sites/SITE/networks': 'traffic',
  '/sites/SITE/port-scans': 'scans',
};

test('NET-8: no period is shorter than the specification demands, and one that is wrong stops the program', () => {
  const read = (value: string) => readConfig({ SVC_TRAFFIC_RETENTION_MONTHS: value });
  assert.throws(() => read('2'), /SVC_TRAFFIC_RETENTION_MONTHS must be a whole number from 3 to 24, not "2"/);
  assert.throws(() => readConfig({ SVC_INCIDENT_RETENTION_YEARS: '0' }), /from 1 to 10/);
  assert.equal(read('3').trafficMonths, 3);
});

test('NET-8: the reference of the customer API says how long traffic and attacks are kept', () => {
  const text = JSON.stringify(buildOpenApi());
  assert.match(text, /minutes are kept for five months/);
  assert.match(text, /Attacks are kept for four years/);
});

test('NET-8: with other periods, each page, table and time to live has those', async () => {
  await using server = await startMonitorServer();
  const operator = await server.signIn('operator');
  const { database } = server;
  const add = (age: string) =>
    database.pool.query(
      `insert into events (site_id, kind, occurred_at) values ($2, 'ip_conflict_opened', svc_now() - $1::interval)`,
      [age, server.siteId],
    );
  // Old enough to go by the periods of before, and not by these.
  await add('7 months');
  await add('9 months');
  for (const [path, data] of Object.entries(pages)) {
    const { status, text } = await operator.get(path.replace('SITE', String(server.siteId)));
    assert.equal(status, 200, path);
    assert.ok(text.includes(keptText(data)), `${path} says ${keptText(data)}`);
    assert.doesNotMatch(text, /three months|seven days|(one|a) year/, path);
  }
  const retention = createRetention({
    ...{
      db: () => database.db,
      tables: keptTables,
      sweeps: [],
      clock: systemClock,
      reporter: silentReporter,
    },
  });
  await retention.runOnce();
  await retention.loop.stop();
  const { rows } = await database.pool.query<{ age: number }>(
    `select extract(month from age(svc_now(), occurred_at))::int as age from events where kind = 'ip_conflict_opened'`,
  );
  assert.deepEqual(rows, [{ age: 7 }]);

  await using chdb = await createChdbEngine();
  const engine = createEngine(chdb.client);
  const tablesOf = async () =>
    Object.fromEntries(
      (
        await engine.rows<{ name: string; ttl: string }>(
          ch`select name, extract(create_table_query, 'TTL minute \\+ (\\S+)') as ttl from system.tables
            where database = currentDatabase() and ttl != ''`,
        )
      ).map(({ name, ttl }) => [name, ttl]),
    );
  const five = 'toIntervalMonth(5)';
  const others = { capture_minutes: five, host_minutes: five, application_facts: five, peer_minutes: five };
  await migrate(engine);
  assert.deepEqual(await tablesOf(), { ...others, endpoint_pairs: 'toIntervalHour(30)' });
  Object.assign(kept, former);
  await migrate(engine);
  assert.equal((await tablesOf()).host_minutes, 'toIntervalMonth(3)', 'tables that are there follow');
});
