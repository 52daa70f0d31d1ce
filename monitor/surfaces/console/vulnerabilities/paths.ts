/** Paths of the pages of potential vulnerabilities. */
import type { IgnoredFinding } from '#monitor/vulnerabilities/index.ts';
import { withQuery } from '#service-kit/pages/index.ts';

interface ServerKey {
  clusterId: number;
  vmId: number;
}

export const findingsHref = (siteId: number) => `/sites/${siteId}/vulnerabilities`;

export const serverHref = (siteId: number, { clusterId, vmId }: ServerKey) =>
  `${findingsHref(siteId)}/servers/${clusterId}/${vmId}`;

export const cveHref = (siteId: number, cve: string) => `${findingsHref(siteId)}/cves/${cve}`;

/** The form that ignores one finding. */
export function ignoreHref(siteId: number, finding: IgnoredFinding): string {
  const { address, transport, port, fingerprint, cve } = finding;
  return withQuery(`${serverHref(siteId, finding)}/ignore`, {
    ...{ address, transport, port, fingerprint, cve },
  });
}
