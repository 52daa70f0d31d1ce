/**
 * Reads of a large site: a day of facts in one place, a month of a device. Rows are made in the database, as uploads would
 * have left them; what is rolled up is rolled up by the program.
 */
import { Kysely, type LogEvent, PostgresDialect } from 'kysely';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createApplications, createRankingLoop, nameApplication } from '#monitor/applications/index.ts';
import { createFactStore } from '#monitor/facts/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { withCamelNames } from '#service-kit/postgres/database.ts';
import { type BenchDatabase, startBenchDatabase } from './bench-monitor.ts';

const facts = Number(process.env.SVC_BENCH_FACTS ?? 10_000_000);
const addresses = 200;
const names = 2000;
const monthDays = Number(process.env.SVC_BENCH_DAYS ?? 30);
const rounds = 7;
const deviceKey = 'br0|02:00:00:00:00:07';

export async function benchReads(report: (line: string) => void): Promise<void> {
  await using bench = await startBenchDatabase();
  const { monitor } = bench;
  const siteId = await makeSite(bench, report);
  const db = () => bench.database.db;
  const loop = createRankingLoop({ db, facts: monitor.facts, clock: systemClock, reporter: silentReporter });
  const ranked = await timed(() => loop.runOnce());
  report(`the loop ranked the site's four views of 24 hours in ${(ranked / 1000).toFixed(1)} s`);

  const unheld = createApplications({ db, facts: monitor.facts, clock: systemClock, rankingHoldSeconds: 0 });
  const now = Math.floor(Date.now() / 60_000) * 60_000;
  const reads: Record<string, () => Promise<unknown>> = {
    '24-hour application ranking': () => unheld.ranking(siteId, 'outbound'),
    "a device's month, by day": () =>
      monitor.traffic.readDevice(
        siteId,
        deviceKey,
        now - (now % 86_400_000) - monthDays * 86_400_000,
        now,
        86_400,
      ),
    'applications of the last hour': () =>
      monitor.applications.list(siteId, 'outbound', now - 3_600_000, now, 50),
    'applications of 15 minutes': () => monitor.applications.list(siteId, 'outbound', now - 900_000, now, 50),
    'applications of 6 hours': () =>
      monitor.applications.list(siteId, 'outbound', now - 6 * 3_600_000, now, 50),
    'applications of 24 hours, not stored': () =>
      monitor.applications.list(siteId, 'outbound', now - 86_400_000, now, 50),
    'applications of seven days': () =>
      monitor.applications.list(siteId, 'outbound', now - 7 * 86_400_000, now, 50),
    'applications of 30 days': () =>
      monitor.applications.list(siteId, 'outbound', now - 30 * 86_400_000, now, 50),
    'one application of the last hour': () =>
      monitor.applications.detail(siteId, 'outbound', now - 3_600_000, now, {
        name: 'service-1.example',
        protocol: 6,
        serverPort: 443,
      }),
    'one application of 24 hours': () =>
      monitor.applications.detail(siteId, 'outbound', now - 86_400_000, now, {
        name: 'service-1.example',
        protocol: 6,
        serverPort: 443,
      }),
    'ten names over 24 hours': () =>
      monitor.applications.listSteps({
        siteId,
        view: 'outbound',
        fromMs: now - 86_400_000,
        toMs: now,
        stepSeconds: 300,
        names: Array.from({ length: 10 }, (_, i) => `service-${i}.example`),
      }),
    'all devices of 24 hours': () => monitor.traffic.sumDevices(siteId, deviceKeys(), now - 86_400_000, now),
    'site traffic of a month by hour': () =>
      monitor.traffic.readSiteTraffic(siteId, now - (now % 3_600_000) - monthDays * 86_400_000, now, 3600),
  };
  for (const [what, read] of Object.entries(reads)) {
    const times: number[] = [];
    await read();
    for (let i = 0; i < rounds; i += 1) times.push(await timed(read));
    times.sort((a, b) => a - b);
    report(
      `${what}: ${times[Math.floor(rounds / 2)]!.toFixed(1)} ms warm, slowest ${times.at(-1)!.toFixed(1)} ms`,
    );
  }
  for (const what of ['24-hour application ranking', "a device's month, by day"]) {
    await bench.restart();
    report(
      `${what}: ${(await timed(reads[what]!)).toFixed(1)} ms as the first query after a restart of PostgreSQL`,
    );
  }
  await showPlans(bench, siteId, now, report);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

const deviceKeys = () =>
  Array.from(
    { length: addresses },
    (_, i) => `br0|02:00:00:00:00:${(i & 255).toString(16).padStart(2, '0')}`,
  );

/** A site with one day of applications and pairs and a month of addresses. */
async function makeSite(bench: BenchDatabase, report: (line: string) => void): Promise<number> {
  const { monitor, database } = bench;
  const site = await monitor.sites.create(systemActor, 'Large');
  const { pool } = database;
  const query = (text: string, values: unknown[] = []) => pool.query(text, values);
  await query(`insert into sensors (site_id, host_name, node) values ($1, 'node-1', 'node-1')`, [site.id]);
  await query(
    "insert into captures (site_id, sensor_id, name, role) select site_id, id, 'eth0', 'uplink' from sensors",
  );
  const end = Math.floor(Date.now() / 60_000) * 60;
  const month = end - (end % 86_400) - monthDays * 86_400;
  const monthMinutes: number[] = [];
  for (let minute = month; minute < end; minute += 3600) monthMinutes.push(minute);
  await monitor.facts.prepare(monthMinutes);
  const begun = performance.now();
  const minutes = `generate_series(to_timestamp(${month}), to_timestamp(${end - 60}), interval '1 minute') m`;
  await query(`insert into capture_minutes (site_id, minute, capture_id, vantage, observed_ms, packets, ip_packets, ip_bytes,
      non_ip_packets, parser_dropped, kernel_dropped, detail_truncated)
    select ${site.id}, m, 1, 1, 60000, 1000, 1000, 100000, 0, 0, 0, 0 from ${minutes}`);
  // The whole fleet of addresses for the last day; one in ten for the month.
  await query(`insert into host_minutes (site_id, minute, capture_id, address, rx_bytes, tx_bytes, packets, device_key)
    select ${site.id}, m, 1, ('10.0.0.' || a)::inet, a * 1000 + extract(minute from m)::int, a * 100, 50,
      'br0|02:00:00:00:00:' || lpad(to_hex(a), 2, '0')
    from ${minutes}, generate_series(0, ${addresses - 1}) a
    where m >= to_timestamp(${end - 86_400}) or a < ${addresses / 10}`);
  const perMinute = Math.round(facts / 1440);
  // Names by a skewed draw: the first ones are busy, most are rare.
  // An hour at a time: a statement has two minutes to answer.
  for (let from = end - 86_400; from < end; from += 3600) {
    const draw = `from generate_series(to_timestamp(${from}), to_timestamp(${from + 3540}), interval '1 minute') m,
      lateral (select i, floor(${names} * power(random(), 3))::int as n, i % ${addresses} as a, m + interval '0' as at
        from generate_series(1, ${perMinute}) i) f`;
    await query(`insert into application_facts (site_id, minute, capture_id, vantage, direction, local_address, name, protocol,
        server_port, evidence, is_attributed, inbound_bytes, outbound_bytes, packets, last_sent_at)
      select ${site.id}, m, 1, 1, 1, ('10.0.0.' || a)::inet, 'service-' || n || '.example', 6, 443, 5, true, 1000 + i, 100, 10, m
      ${draw}`);
    await query(`insert into endpoint_pairs (site_id, minute, capture_id, vantage, direction, client, server, name, protocol,
        server_port, evidence, client_bytes, server_bytes, packets)
      select ${site.id}, m, 1, 1, 1, ('10.0.0.' || a)::inet, ('198.18.' || n / 250 || '.' || n % 250)::inet,
        'service-' || n || '.example', 6, 443, 5, 100, 1000 + i, 10
      ${draw}`);
  }
  await query(`insert into site_minute_marks (site_id, minute) select ${site.id}, m from ${minutes}`);
  await query('analyze');
  const made = performance.now();
  await monitor.facts.rollUp('settled');
  await query('analyze');
  const { rows } = await query(
    'select (select count(*) from application_facts) as facts, (select count(*) from endpoint_pairs) as pairs, (select count(*) from host_minutes) as hosts, (select count(*) from rolled_hours where not is_dirty) as hours',
  );
  const size = rows[0] as { facts: number; pairs: number; hosts: number; hours: number };
  report(
    `a site with ${size.facts} application facts and ${size.pairs} pairs of 24 hours, ${size.hosts} host rows of a month, made in ${((made - begun) / 1000).toFixed(0)} s; ${size.hours} hours rolled up in ${((performance.now() - made) / 1000).toFixed(0)} s`,
  );
  return site.id;
}

/** Runs the two reads once more and shows the plan of every statement that they ran. */
async function showPlans(
  bench: BenchDatabase,
  siteId: number,
  now: number,
  report: (line: string) => void,
): Promise<void> {
  const { pool } = bench.database;
  const statements: { sql: string; parameters: readonly unknown[] }[] = [];
  const db = new Kysely({
    dialect: new PostgresDialect({ pool: withCamelNames(pool) }),
    log: (event: LogEvent) =>
      void statements.push({ sql: event.query.sql, parameters: event.query.parameters }),
  });
  const store = createFactStore({ db: () => db, nameApplication });
  const reading = createApplications({
    db: () => db,
    facts: store,
    clock: systemClock,
    rankingHoldSeconds: 0,
  });
  await reading.ranking(siteId, 'outbound');
  const fromMinute = (now - (now % 86_400_000)) / 1000 - monthDays * 86_400;
  await store.stepDevice({ siteId, fromMinute, toMinute: now / 1000, deviceKey, stepSeconds: 86_400 });
  for (const { sql, parameters } of statements) {
    if (!/^\s*(select|with)/i.test(sql)) continue;
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, buffers, costs off, timing off, summary on) ${sql}`,
      [...parameters],
    );
    report(`plan of: ${sql.replace(/\s+/g, ' ').trim().slice(0, 110)}…`);
    const lines = rows.map((row) => row['QUERY PLAN']);
    // A month has many partitions that look alike.
    for (const line of lines.slice(0, 24)) report(`  ${line}`);
    if (lines.length > 24)
      report(
        `  … ${lines.length - 24} lines more; ${lines
          .slice(-2)
          .map((line) => line.trim())
          .join(', ')}`,
      );
  }
}
