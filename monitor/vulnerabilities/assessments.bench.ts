/**
 * What assessments cost: 10,000 servers with 20 services each, of which most run a product that is looked up, in 60 versions each.
 * Processor time of this process and of its PostgreSQL connections.
 */
import { readFileSync } from 'node:fs';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createScans } from '#monitor/scans/index.ts';
import { createSites } from '#monitor/sites/index.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { createVulnerabilities, type Vulnerabilities } from './index.ts';
import type { Advisory, Criterion } from './matcher/advisory.ts';
import { type Product, products } from './products.ts';
import * as store from './store.ts';

export const name = 'assessments';

const servers = 10_000;
const versionsOfEach = 60;
const recordsOfEach = 400;
const rounds = 5;

export async function run(report: (line: string) => void): Promise<void> {
  const database = await createTestDatabase('monitor');
  try {
    const { id: siteId } = await createSites({ db: () => database.db, reader: () => database.db }).create(
      systemActor,
      'Site',
    );
    await copyRecords(database, 0);
    await addEvidence(database, siteId);
    const vulnerabilities = create(database);
    const assess = async () => {
      await vulnerabilities.assessor.runOnce();
    };
    await measure(report, database, `first assessment of ${servers} servers`, assess);
    const [counts] = (
      await database.pool.query(
        `select count(*)::int as services, (select count(*)::int from vulnerability_software) as software,
          (select count(*)::int from vulnerability_findings) as findings,
          (select sum(critical + high + medium + low + unrated)::int from vulnerability_servers) as active
         from vulnerability_services`,
      )
    ).rows;
    report(
      `${counts.services} services of ${counts.software} versions, ${counts.findings} findings stored, ${counts.active} active ones of servers`,
    );
    await database.pool.query('vacuum analyze');
    for (let round = 1; round <= 2; round += 1) {
      await copyRecords(database, round);
      await measure(report, database, 'after a refresh that changed a record of each product', assess);
    }
    await database.pool.query('update vulnerability_servers set evidence = evidence + 1, due_at = svc_now()');
    await measure(report, database, 'after a scan of every server that found the same', assess);
    await readPages(report, vulnerabilities, siteId);
  } finally {
    await database.drop();
  }
}

function create(database: TestDatabase): Vulnerabilities {
  const db = () => database.db;
  const base = { db, clock: systemClock, reporter: silentReporter };
  const scans = createScans({
    db,
    reader: db,
    sites: createSites({ db, reader: db }),
    documentationIsGlobal: false,
  });
  return createVulnerabilities({
    ...base,
    scans,
    source: null,
    isDemo: false,
    trackers: [],
    severe: ['high', 'critical'],
    onChecked: async () => {},
  });
}

async function readPages(report: (line: string) => void, vulnerabilities: Vulnerabilities, siteId: number) {
  const page = { offset: 0, limit: 100 };
  const [worst] = await vulnerabilities.listServers(siteId, page);
  const [cve] = await vulnerabilities.listCves(siteId, page);
  const reads: Record<string, () => Promise<unknown>> = {
    'list of servers': () => vulnerabilities.listServers(siteId, page),
    'its 90th page': () => vulnerabilities.listServers(siteId, { offset: 8_900, limit: 100 }),
    totals: () => vulnerabilities.readTotals(siteId),
    'one server': () => vulnerabilities.readServer(worst!.clusterId, worst!.serverId),
    'list of CVEs': () => vulnerabilities.listCves(siteId, page),
    'services of a CVE': () => vulnerabilities.listTouched(cve!.cve, siteId, page),
  };
  for (const [what, read] of Object.entries(reads)) {
    const times: number[] = [];
    for (let i = 0; i < 2 * rounds + 1; i += 1) {
      const beganMs = performance.now();
      await read();
      times.push(performance.now() - beganMs);
    }
    times.sort((a, b) => a - b);
    report(`${what}: median ${times[rounds]!.toFixed(1)} ms, longest ${times.at(-1)!.toFixed(1)} ms`);
  }
}

async function measure(
  report: (line: string) => void,
  { pool }: TestDatabase,
  what: string,
  work: () => Promise<void>,
): Promise<void> {
  const { rows } = await pool.query('select pid from pg_stat_activity where datname = current_database()');
  const ofDatabase = () =>
    rows.reduce((sum: number, { pid }: { pid: number }) => sum + processorSeconds(pid), 0);
  const [own, databaseBefore, beganMs] = [process.cpuUsage(), ofDatabase(), performance.now()];
  await work();
  const { user, system } = process.cpuUsage(own);
  const seconds = [(user + system) / 1e6, ofDatabase() - databaseBefore, (performance.now() - beganMs) / 1e3];
  const [program, connections, wall] = seconds.map((one) => one.toFixed(2));
  report(
    `${what}: ${program} s of processor time of the program, ${connections} s of PostgreSQL, ${wall} s in all`,
  );
}

function processorSeconds(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return 0;
  }
}

/** Version `n` of a product: as many numbers as it writes. */
const versionOf = ({ numbersMin }: Product, n: number) =>
  [1 + Math.floor(n / 20), n % 20, 1].slice(0, Math.max(2, numbersMin)).join('.');

/** Each record names ranges and single versions of the product, and half of them what it runs on. */
async function copyRecords({ db }: TestDatabase, round: number): Promise<void> {
  for (const product of products) {
    const [vendor, own] = product.names[0]!;
    const cpe = (version: string) => `cpe:2.3:a:${vendor}:${own}:${version}:*:*:*:*:*:*:*`;
    const advisories = Array.from({ length: recordsOfEach }, (_, n): Advisory => {
      const end = (n * 7) % versionsOfEach;
      const criteria: Criterion[] = [
        {
          cpe: cpe('*'),
          isVulnerable: true,
          startIncluding: versionOf(product, Math.max(0, end - 6)),
          endExcluding: versionOf(product, end),
        },
        ...Array.from({ length: 8 }, (_, i) => ({
          cpe: cpe(versionOf(product, (n + i * 11) % 200)),
          isVulnerable: true,
        })),
      ];
      const platform: Criterion = {
        cpe: 'cpe:2.3:o:linux:linux_kernel:-:*:*:*:*:*:*:*',
        isVulnerable: false,
      };
      const any = { operator: 'OR' as const, isNegated: false, parts: criteria };
      const on = { operator: 'OR' as const, isNegated: false, parts: [platform] };
      const isOnPlatform = n % 2 === 0;
      return {
        cve: `CVE-20${10 + (n % 15)}-${10_000 + n}`,
        status: 'Analyzed',
        summary: `${n === 0 ? `Changed ${round} times. ` : ''}${'An error in a parser lets a remote client crash the server. '.repeat(5)}`,
        publishedAt: '2024-01-01T00:00:00.000Z',
        modifiedAt: new Date(Date.parse('2024-01-01T00:00:00Z') + (n === 0 ? round : 0) * 1000).toISOString(),
        severity: {
          version: '3.1',
          score: 3 + (n % 70) / 10,
          rating: (['low', 'medium', 'high', 'critical'] as const)[n % 4]!,
        },
        isKnownExploited: n % 50 === 0,
        isDisputed: false,
        configurations: [{ operator: 'AND', isNegated: false, parts: isOnPlatform ? [any, on] : [any] }],
      };
    });
    await db
      .transaction()
      .execute((trx) => store.replaceAdvisories(trx, product.key, { advisories, unreadable: [] }));
  }
}

/** Each server has 16 services of known products and four of others. */
async function addEvidence({ pool }: TestDatabase, siteId: number): Promise<void> {
  await pool.query(`insert into sensors (site_id, host_name, node) values ($1, 'host-1', 'hv-1')`, [siteId]);
  const known = products.map((product) => {
    const [vendor, own] = product.scanNames[0]!;
    return {
      title: product.title,
      cpe: `cpe:/a:${vendor}:${own}`,
      versions: Array.from({ length: versionsOfEach }, (_, n) => versionOf(product, n)),
    };
  });
  await pool.query(
    `insert into scan_observations (cluster_id, vm_id, address, profile, transport, port, site_id, sensor_id, first_observed_at,
       observed_at, scan_id, service, product, version, extra_info, method, confidence, tunnel, cpe)
     select 7, v, '10.0.0.0'::inet + v, 'common', 'tcp', 1000 + p, $1, (select max(id) from sensors), svc_now(), svc_now(),
       ('00000000-0000-7000-8000-' || lpad(to_hex(v), 12, '0'))::uuid, 'service',
       case when p < 16 then $2::jsonb -> ((v + p) % 11) ->> 'title' else 'Unknown thing' end,
       case when p < 16 then $2::jsonb -> ((v + p) % 11) -> 'versions' ->> ((v * 7 + p * 13) % ${versionsOfEach}) else '1.0' end,
       null, 'probed', 10, null,
       case when p < 16 then array[$2::jsonb -> ((v + p) % 11) ->> 'cpe'] else array['cpe:/a:acme:thing'] end
     from generate_series(1, ${servers}) v, generate_series(0, 19) p`,
    [siteId, JSON.stringify(known)],
  );
  await pool.query(
    `insert into vulnerability_servers (cluster_id, vm_id, site_id) select 7, v, $1 from generate_series(1, ${servers}) v`,
    [siteId],
  );
  await pool.query('analyze');
}
