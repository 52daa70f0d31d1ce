/** Differences between the checks of addresses that the monitor made last and those that operations holds. */
import { differences } from './differences.ts';
import type { Pair } from './pair.ts';

/** Of a service: the evidence that was assessed and what was found, in any order. */
const serviceText = (severities: string) =>
  `concat_ws(' ', fingerprint, version, scan_id, extract(epoch from observed_at), reason, ${severities})`;

export async function compareFindings({
  monitor,
  operations,
}: Pick<Pair, 'monitor' | 'operations'>): Promise<string[]> {
  const known = await monitor.database.pool.query<{ key: string; text: string }>(
    `select host(address) || ' ' || transport || '/' || port as key, ${serviceText(`(
       select string_agg(cve || coalesce(rating, '-'), ' ' order by cve) from vulnerability_findings f
       where f.software_id = vulnerability_services.software_id)`)} as text
     from vulnerability_services`,
  );
  const held = await operations.database.pool.query<{ key: string; text: string }>(
    `select address || ' ' || transport || '/' || port as key, ${serviceText(`(
       select string_agg(cve_id || coalesce(severity, '-'), ' ' order by cve_id) from findings f
       where (f.allocation_id, f.transport, f.port) = (s.allocation_id, s.transport, s.port))`)} as text
     from (select s.*, p.address from finding_services s join finding_projections p using (allocation_id)) s`,
  );
  const checks = await monitor.database.pool.query<{ key: string; at: Date }>(
    `select host(p.address) as key, s.checked_at as at from vulnerability_projections p
     join vulnerability_servers s using (cluster_id, vm_id) where s.checked_at is not null`,
  );
  const heldChecks = await operations.database.pool.query<{ key: string; at: Date }>(
    'select address as key, checked_at as at from finding_projections',
  );
  const time = ({ key, at }: { key: string; at: Date }) => [key, at.toISOString()] as const;
  return [
    ...differences(
      'service',
      new Map(known.rows.map(({ key, text }) => [key, text])),
      held.rows.map(({ key, text }) => [key, text]),
    ),
    ...differences('check', new Map(checks.rows.map(time)), heldChecks.rows.map(time)),
  ];
}
