import { randomUUID } from 'node:crypto';
import type { ProjectedFinding, ProjectedService, Projection } from '#contracts/admin-api/vulnerabilities.ts';
import { fingerprintSoftware } from '#contracts/port-scan/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import type { World } from './create-world.ts';
import { secondsAgo } from './incident-of.ts';

/** Of software by its name and version, such as `OpenSSH 9.6p1`. */
export function fingerprintOf(software: string): string {
  const [product = null, version = null] = software.split(' ');
  return fingerprintSoftware({ product, version });
}

/** A finding of high severity. */
export function findingOf(cveId: string, more: Partial<ProjectedFinding> = {}): ProjectedFinding {
  return {
    ...{ cve_id: cveId, severity: 'high', score: 8.1, cvss_version: '3.1' },
    cvss_vector: 'CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:H/I:H/A:H',
    summary: `What ${cveId} is about.`,
    published_at: '2024-07-01T13:15:00.000Z',
    modified_at: '2025-09-30T13:52:00.000Z',
    ...{ incomplete: null, disputed: false, known_exploited: false },
    ...more,
  };
}

/** OpenSSH on port 22, observed ten seconds ago, with one finding. */
export function projectedService(more: Partial<ProjectedService> = {}): ProjectedService {
  const { version = '9.6p1' } = more;
  return {
    ...{ transport: 'tcp', port: 22, scan_id: randomUUID(), observed_at: secondsAgo(10) },
    fingerprint: fingerprintOf(`OpenSSH ${version}`),
    ...{ product: 'OpenSSH', version, assessment: 'assessed', reason: null },
    findings: [findingOf('CVE-2024-6387')],
    ...more,
  };
}

export interface ProjectionOptions extends Partial<Projection> {
  checkedSecondsAgo?: number;
}

/** A check of this address five seconds ago. */
export function projectionOf(
  allocation: Pick<Allocation, 'id' | 'address' | 'assignedAt'>,
  { checkedSecondsAgo = 5, ...more }: ProjectionOptions = {},
): Projection {
  const services = more.services ?? [projectedService()];
  return {
    allocation_id: allocation.id,
    address: allocation.address,
    assigned_at: allocation.assignedAt,
    scan_id: services[0]?.scan_id ?? randomUUID(),
    checked_at: secondsAgo(checkedSecondsAgo),
    database_at: secondsAgo(3 * 3600),
    services,
    counts: { active: 1, ignored: 0, unable: 0, truncated: 0 },
    ...more,
  };
}

export type FindingMonitor = Awaited<ReturnType<typeof createFindingMonitor>>;

/** A monitor that delivers projections of one site. */
export async function createFindingMonitor(world: World) {
  const { id: projectId } = await world.adminProjects.create(systemActor, {
    ...{ name: 'monitor of findings', permissions: ['protect_vulnerability_ingest'], clusterIds: null },
  });
  const sender = { projectId, clusterIds: null };
  return {
    sender,
    /** Returns the outcomes. */
    async deliver(...projections: Projection[]): Promise<string[]> {
      const { acknowledgements } = await world.protectFindings.receive(sender, {
        ...{ contract_version: 1, source_site_id: 1, cluster_ids: [world.clusterId], projections },
      });
      return acknowledgements.map(({ outcome }) => outcome);
    },
  };
}
