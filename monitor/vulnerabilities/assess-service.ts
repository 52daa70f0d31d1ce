/**
 * What the stored records say of services of one server (NET-2.6.1, NET-2.6.2). Pure: no database, no clock.
 */
import type { UnableReason } from '#contracts/findings.ts';
import { hasPackageMark, identifyService, type ServiceEvidence } from './identify-service.ts';
import type { Advisory } from './matcher/advisory.ts';
import { matchAdvisory } from './matcher/match-advisory.ts';
import type { KnownService, Uncertainty } from './matcher/match-criterion.ts';
import type { ShownPackage } from './packages/compare-revisions.ts';
import { type JudgeCve, judgePackage, type PackageFix } from './packages/judge-package.ts';

/** A potential vulnerability: never a confirmed one. */
export interface Finding extends Omit<Advisory, 'status' | 'configurations'> {
  /** `affected`: the version alone decides; `possible`: something that scans can't see decides, named in `incomplete`. */
  result: 'affected' | 'possible';
  incomplete: readonly Uncertainty[];
  /** The criteria that the service fits. */
  matched: readonly string[];
  /** Of a package that its distribution calls affected: the version with the fix, null where there is none yet. */
  package?: { fixedIn: string | null };
}

/**
 * A finding that is shown apart and never active. `any_version`: the record names every version of the product;
 * `fixed_in_package`: the distribution fixed it, in `fixedIn`, or its package never had it (null); `not_in_tracker`: the
 * distribution's tracker says nothing certain of it.
 */
export interface ApartFinding {
  why: 'any_version' | 'fixed_in_package' | 'not_in_tracker';
  finding: Finding;
  fixedIn?: string | null;
}

export interface Assessment {
  /** Key and title of a known product. */
  product: { key: string; title: string } | null;
  assessment: 'assessed' | 'unable';
  reason: UnableReason | null;
  /** The most severe first. */
  findings: readonly Finding[];
  /** Of a package: what its original would have. They are no findings of the service. */
  upstreamFindings: readonly Finding[];
  apartFindings: readonly ApartFinding[];
  /** The package, where the tracker of its distribution says what is fixed: findings are what it calls affected. */
  packaged: ShownPackage | null;
  /** Records that were compared. */
  compared: number;
  /** More findings than are listed. */
  isLimited: boolean;
}

/** What is known of a product. */
export interface ProductKnowledge {
  /** Null when they were never fetched. */
  advisories: readonly Advisory[] | null;
  /** What the trackers of distributions say of its packages. */
  fixes: readonly PackageFix[];
}

/** By the product's key. */
export type FindKnowledge = (productKey: string) => ProductKnowledge;

const findingsMax = 500;

/** Assesses services of one server, in their order. A package among them makes the unmarked ones likely packages. */
export function assessServices(
  services: readonly ServiceEvidence[],
  findKnowledge: FindKnowledge,
): Assessment[] {
  const isPackaged = services.some(hasPackageMark);
  return services.map((evidence) => assessService(evidence, findKnowledge, isPackaged));
}

function assessService(
  evidence: ServiceEvidence,
  findKnowledge: FindKnowledge,
  isPackaged: boolean,
): Assessment {
  const { product, service, reason: ownReason } = identifyService(evidence);
  const { advisories, fixes } = product ? findKnowledge(product.key) : { advisories: [], fixes: [] };
  const found = service && advisories ? findAll(service, advisories, fixes) : nothing;
  const { listed, apart, leftOut, isJudged } = found;
  const markedReason = isJudged ? null : (ownReason ?? (isPackaged ? 'likely_packaged' : null));
  const reason = markedReason ?? (advisories === null ? 'no_database' : null);
  return {
    product: product && { key: product.key, title: product.title },
    assessment: reason === null ? 'assessed' : 'unable',
    reason,
    findings: reason === null ? listed : [],
    upstreamFindings: reason === null ? [] : listed,
    apartFindings: reason === null ? apart : [],
    packaged: (isJudged && service?.packaged) || null,
    compared: service && advisories ? advisories.length : 0,
    isLimited: leftOut > 0,
  };
}

/** Findings of one product in one version, the most severe first. */
export interface FoundList {
  listed: readonly Finding[];
  apart: readonly ApartFinding[];
  leftOut: number;
  /** It is a package that the tracker of its distribution knows. */
  isJudged: boolean;
}

export const nothing: FoundList = { listed: [], apart: [], leftOut: 0, isJudged: false };

export function findAll(
  service: KnownService,
  advisories: readonly Advisory[],
  fixes: readonly PackageFix[],
): FoundList {
  const found: Finding[] = [];
  const ofAnyVersion: Finding[] = [];
  for (const advisory of advisories) {
    const { truth, why, matched, isOfAnyVersion } = matchAdvisory(service, advisory);
    if (truth === 'no') continue;
    const { configurations: _, status: __, ...shown } = advisory;
    const result = truth === 'yes' && !isOfAnyVersion ? 'affected' : 'possible';
    (isOfAnyVersion ? ofAnyVersion : found).push({ ...shown, result, incomplete: why, matched });
  }
  const judge = service.packaged ? judgePackage(service.packaged, fixes) : null;
  const { affected, apart } = judge ? splitByTracker(found, judge) : { affected: found, apart: [] };
  const anyVersion = ofAnyVersion.map((finding): ApartFinding => ({ why: 'any_version', finding }));
  return {
    listed: affected.sort(bySeverity).slice(0, findingsMax),
    apart: [...apart, ...anyVersion].sort((a, b) => bySeverity(a.finding, b.finding)).slice(0, findingsMax),
    leftOut: Math.max(0, affected.length - findingsMax),
    isJudged: judge !== null,
  };
}

/** Of what the original has, what the distribution says of its package: it knows better than the version. */
function splitByTracker(found: readonly Finding[], judge: JudgeCve) {
  const affected: Finding[] = [];
  const apart: ApartFinding[] = [];
  for (const finding of found) {
    const verdict = judge(finding.cve);
    if (verdict?.state === 'affected')
      affected.push({
        ...finding,
        result: 'affected',
        incomplete: [],
        package: { fixedIn: verdict.fixedIn },
      });
    else if (verdict === null) apart.push({ why: 'not_in_tracker', finding });
    else apart.push({ why: 'fixed_in_package', finding, fixedIn: verdict.fixedIn });
  }
  return { affected, apart };
}

function bySeverity(a: Finding, b: Finding): number {
  return (
    Number(b.isKnownExploited) - Number(a.isKnownExploited) ||
    (b.severity?.score ?? -1) - (a.severity?.score ?? -1) ||
    (a.cve < b.cve ? -1 : 1)
  );
}
