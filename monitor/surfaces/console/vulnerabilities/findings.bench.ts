/**
 * What the pages of potential vulnerabilities cost with 10,000 servers of 20 services each: by HTTP, as a person asks, one page at a
 * time, from the request to the last byte. 240 versions of products have 60 findings each; a fifth of the services can't
 * be assessed. Processor time is that of server and caller together, without PostgreSQL.
 */
import { loadavg } from 'node:os';
import { startMonitorServer } from '#monitor/testing/server.ts';
import type { TestDatabase } from '#service-kit/testing/index.ts';

export const name = 'finding-pages';

const servers = 10_000;
const rounds = 40;

export async function run(report: (line: string) => void): Promise<void> {
  await using stage = await startMonitorServer();
  await fill(stage.database.pool, stage.siteId);
  const viewer = await stage.signIn('viewer');
  const path = `/sites/${stage.siteId}/vulnerabilities`;
  const pages: readonly [what: string, url: string][] = [
    ['by server', path],
    ['by server, page 100', `${path}?page=100`],
    ['by CVE', `${path}?view=cves`],
    ['by CVE, page 10', `${path}?view=cves&page=10`],
    ['one server', `${path}/servers/7/1234`],
    ['one CVE', `${path}/cves/CVE-2024-10020`],
    ['vulnerability database', '/system/vulnerability-database'],
  ];
  for (const [what, url] of pages) {
    const took: number[] = [];
    let bytes = 0;
    let cpu = process.cpuUsage();
    for (let round = -5; round < rounds; round += 1) {
      if (round === 0) cpu = process.cpuUsage();
      const began = performance.now();
      const { status, text } = await viewer.get(url);
      if (status !== 200) throw new Error(`${url} was a ${status}`);
      if (round >= 0) took.push(performance.now() - began);
      bytes = Buffer.byteLength(text);
    }
    const { user, system } = process.cpuUsage(cpu);
    took.sort((a, b) => a - b);
    const [best, median, p95] = [0, 0.5, 0.95].map((part) =>
      took[Math.floor(took.length * part)]!.toFixed(1),
    );
    const cost = ((user + system) / 1_000 / rounds).toFixed(1);
    report(
      `${what.padEnd(24)} best ${best} ms, median ${median} ms, 95th percentile ${p95} ms, ${cost} ms of processor time, ${Math.round(bytes / 1024)} KiB`,
    );
  }
  report(`${servers} servers, ${servers * 20} services, load ${loadavg()[0]!.toFixed(2)}`);
}

/** What scans, refreshes and assessments would have stored. */
async function fill(pool: TestDatabase['pool'], siteId: number): Promise<void> {
  await pool.query(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at, last_seen_at)
     select 7, n, 'hv-' || n % 300, 'server-' || n, 'running', svc_now(), svc_now() from generate_series(1, $1::int) n`,
    [servers],
  );
  await pool.query(
    `insert into vulnerability_software (product, version, rules, revision, checked_at, database_at, critical, high, medium)
     select (array['openssh', 'nginx', 'httpd', 'mysql', 'mariadb', 'postgresql', 'redis', 'mongodb'])[1 + n % 8], n::text,
       1, 1, svc_now(), svc_now() - interval '1 hour', 5, 15, 40 from generate_series(1, 240) n`,
  );
  // Neighbouring versions share most of their findings.
  await pool.query(
    `insert into vulnerability_findings (software_id, cve, place, rating, score, is_known_exploited, finding)
     select s.id, x.cve, n, x.rating, x.score, n = 1,
       jsonb_build_object('cve', x.cve, 'status', 'Analyzed', 'summary', repeat('A crafted request does what it should not. ', 6),
         'publishedAt', '2024-07-01T12:15:00.000', 'modifiedAt', '2025-12-01T10:00:00.000', 'isKnownExploited', n = 1,
         'severity', jsonb_build_object('version', '3.1', 'score', x.score, 'rating', x.rating), 'isDisputed', false,
         'result', 'affected', 'incomplete', '[]'::jsonb, 'matched', '["cpe:2.3:a:vendor:product:*:*:*:*:*:*:*:*"]'::jsonb)
     from vulnerability_software s, generate_series(1, 60) n, lateral (
       select 'CVE-2024-' || (10000 + (s.id % 8) * 200 + s.id / 8 + n) as cve,
         case when n <= 5 then 'critical' when n <= 20 then 'high' else 'medium' end as rating,
         case when n <= 5 then 9.8 when n <= 20 then 7.5 else 5.3 end as score) x`,
  );
  await pool.query(
    `insert into vulnerability_servers (cluster_id, vm_id, site_id, evidence, assessed, due_at, evidence_at, checked_at,
       database_at, services, unable, critical, high, medium)
     select 7, n, $2::bigint, 1, 1, svc_now() + interval '1 day', svc_now(), svc_now(), svc_now() - interval '1 hour',
       20, 4, n % 80, n % 240, n % 640 from generate_series(1, $1::int) n`,
    [servers, siteId],
  );
  await pool.query(
    `insert into vulnerability_services (cluster_id, vm_id, address, transport, port, scan_id, first_observed_at, observed_at,
       common_at, product, version, fingerprint, software_id, product_key, reason)
     select 7, n, '10.0.0.0'::inet + n, 'tcp', 1000 + p, gen_random_uuid(), svc_now() - interval '1 day', svc_now(), svc_now(),
       'Product', '1.' || p, md5(p::text), case when p <= 16 then s.id end, case when p <= 16 then s.product end,
       case when p > 16 then 'unknown_product' end
     from generate_series(1, $1::int) n cross join generate_series(1, 20) p
     left join vulnerability_software s on s.id = 1 + (n * 7 + p * 13) % 240`,
    [servers],
  );
  await pool.query(
    `insert into vulnerability_ignores (cluster_id, vm_id, address, transport, port, fingerprint, cve, reason, created_by)
     select v.cluster_id, v.vm_id, v.address, v.transport, v.port, v.fingerprint, f.cve, 'not loaded', 'operator'
     from vulnerability_services v join vulnerability_findings f on f.software_id = v.software_id and f.place = 7
     where v.vm_id % 50 = 0 and v.port < 1010`,
  );
  await pool.query(
    `insert into vulnerability_uses (site_id, software_id, services)
     select $1::bigint, v.software_id, count(*) from vulnerability_services v
     where v.reason is null and v.software_id is not null group by 2`,
    [siteId],
  );
  await pool.query('vacuum analyze');
}
