/** The requests of the console's pages of potential vulnerabilities, and what each leaves in the audit trail. */
import { systemActor } from '#monitor/operators/index.ts';
import type { Case, Stage } from './stage.ts';

/** A server with one finding, as an assessment leaves it. */
async function addFinding({ server, siteId, next }: Stage) {
  const { pool } = server.database;
  const vmId = 1_000 + next();
  const cve = `CVE-2024-${10_000 + vmId}`;
  const place = { address: '192.0.2.7', transport: 'tcp', port: '22', fingerprint: 'a'.repeat(64), cve };
  const finding = {
    ...{ cve, status: 'Analyzed', summary: 'A fault.', severity: null, isKnownExploited: false },
    ...{ isDisputed: false, result: 'affected', incomplete: [], matched: [] },
    ...{ publishedAt: '2024-01-01T00:00:00.000', modifiedAt: '2024-01-01T00:00:00.000' },
  };
  await pool.query(
    `insert into vulnerability_servers (cluster_id, vm_id, site_id, checked_at, services) values (7, $1, $2, svc_now(), 1)`,
    [vmId, siteId],
  );
  const { rows } = await pool.query(
    `insert into vulnerability_software (product, version) values ('openssh', $1) returning id`,
    [`audit-${vmId}`],
  );
  await pool.query(
    `insert into vulnerability_findings (software_id, cve, place, is_known_exploited, finding) values ($1, $2, 1, false, $3)`,
    [rows[0].id, cve, JSON.stringify(finding)],
  );
  await pool.query(
    `insert into vulnerability_services (cluster_id, vm_id, address, transport, port, scan_id, first_observed_at, observed_at,
       fingerprint, software_id, product_key)
     values (7, $1, $2, 'tcp', 22, gen_random_uuid(), svc_now(), svc_now(), $3, $4, 'openssh')`,
    [vmId, place.address, place.fingerprint, rows[0].id],
  );
  return { vmId, place };
}

const path = '/sites/:siteId/vulnerabilities/servers/:clusterId/:vmId';

export const findingCases: Readonly<Record<string, Case>> = {
  [`POST ${path}/ignore`]: [
    'finding.ignore',
    async (stage) => {
      const { vmId, place } = await addFinding(stage);
      const form = { ...place, reason: 'The module is not loaded.', until: '' };
      return stage.operator.post(`/sites/${stage.siteId}/vulnerabilities/servers/7/${vmId}/ignore`, form);
    },
  ],
  [`POST ${path}/ignores/:ignoreId/end`]: [
    'finding.end_ignore',
    async (stage) => {
      const { monitor, siteId } = stage;
      const { vmId, place } = await addFinding(stage);
      const input = { ...place, clusterId: 7, vmId, port: Number(place.port) };
      const id = await monitor.vulnerabilities.ignore(systemActor, { ...input, reason: 'a', untilMs: null });
      return stage.operator.post(`/sites/${siteId}/vulnerabilities/servers/7/${vmId}/ignores/${id}/end`);
    },
  ],
};
