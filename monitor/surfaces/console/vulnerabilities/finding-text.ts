/** Words of potential vulnerabilities on pages. A finding is never more than potential (NET-2.6.1). */
import { freshnessOf } from '#monitor/scans/index.ts';
import type {
  ApartFinding,
  AssessedService,
  Finding,
  IgnoredFinding,
} from '#monitor/vulnerabilities/index.ts';
import {
  age,
  badge,
  type Content,
  formatCount,
  html,
  severityBadge,
  withQuery,
} from '#service-kit/pages/index.ts';

const doubtTexts: Readonly<Record<Finding['incomplete'][number], string>> = {
  platform: 'the operating system or another product decides',
  edition: 'the edition decides',
  version: 'a part of the version that is not shown decides',
  all_versions: 'any version, says the record',
};

/** Why a finding is shown apart. */
export function apartText({ why, fixedIn }: ApartFinding): string {
  if (why === 'any_version') return doubtTexts.all_versions;
  if (why === 'not_in_tracker') return "the distribution's tracker says nothing certain of this package";
  return fixedIn ? `fixed in this package, since ${fixedIn}` : 'this package was never affected';
}

/** What a distribution says of its package. */
const packageText = ({ fixedIn }: NonNullable<Finding['package']>): string =>
  fixedIn === null ? 'the package is affected, no fix yet' : `the package is affected, fixed in ${fixedIn}`;

/** What makes a finding incomplete; empty where the version alone decides. */
export const doubtText = ({ incomplete }: Pick<Finding, 'incomplete'>): string =>
  incomplete.map((doubt) => doubtTexts[doubt]).join('; ');

/** Of a service that is assessed as its original: some packages show no mark at all. */
export const notConfirmed = "may be a distribution's package: not confirmed";

/** Of a package that its distribution's security tracker knows. */
export const byTracker = "by the security tracker of the package's distribution";

export const findingMeaning =
  'A potential vulnerability: the detected version matches a published vulnerability. It is not confirmed that the server can be attacked, and not known whether it is patched.';

export function ratingBadge({ severity }: Pick<Finding, 'severity'>): Content {
  return severityBadge(severity?.rating ?? null, severity?.score ?? null);
}

/** Badges of what a reader must know of a finding, and why it is not certain. */
export function remarks(finding: Finding): Content {
  const doubt = doubtText(finding);
  return [
    finding.isKnownExploited && html`${badge('bad', 'known exploited')} `,
    finding.isDisputed && html`${badge('neutral', 'disputed')} `,
    finding.package && html`<span class="hint">${packageText(finding.package)}</span> `,
    doubt !== '' && html`${badge('info', 'incomplete')} <span class="hint">${doubt}</span>`,
  ];
}

/** `OpenSSH 8.9p1`, as the service itself says. */
export function softwareText({ product, version, extraInfo, service }: AssessedService): string {
  const known = [product, version, extraInfo && `(${extraInfo})`].filter(Boolean).join(' ');
  return known || service || 'unknown';
}

/** When the evidence was observed, and whether it is stale. */
export function evidenceAge(service: AssessedService, nowMs: number): Content {
  const seen = age(service.observedAtMs, nowMs);
  return freshnessOf(service, nowMs) === 'fresh' ? seen : html`${badge('warn', 'stale')} ${seen}`;
}

export const plural = (count: number, one: string, many: string): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

/** `3 active potential vulnerabilities, 1 of them critical`. */
export function activeText(counts: { critical: number; high: number }, active: number): string {
  const worst =
    counts.critical > 0
      ? `, ${formatCount(counts.critical)} critical`
      : counts.high > 0
        ? `, ${formatCount(counts.high)} high`
        : '';
  return `${plural(active, 'active potential vulnerability', 'active potential vulnerabilities')}${worst}`;
}

// Paths of the pages of potential vulnerabilities.

interface ServerKey {
  clusterId: number;
  serverId: number;
}

export const findingsHref = (siteId: number) => `/sites/${siteId}/vulnerabilities`;

export const serverHref = (siteId: number, { clusterId, serverId }: ServerKey) =>
  `${findingsHref(siteId)}/servers/${clusterId}/${serverId}`;

export const cveHref = (siteId: number, cve: string) => `${findingsHref(siteId)}/cves/${cve}`;

/** The form that ignores one finding. */
export function ignoreHref(siteId: number, finding: IgnoredFinding): string {
  const { address, transport, port, fingerprint, cve } = finding;
  return withQuery(`${serverHref(siteId, finding)}/ignore`, {
    ...{ address, transport, port, fingerprint, cve },
  });
}
