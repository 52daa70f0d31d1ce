/**
 * What the stored records say of services of one server (NET-2.6.1, NET-2.6.2). Pure: no database, no clock.
 */
import {
  hasPackageMark,
  identifyService,
  type ServiceEvidence,
  type UnableReason,
} from './identify-service.ts';
import type { Advisory, Severity } from './matcher/advisory.ts';
import { matchAdvisory } from './matcher/match-advisory.ts';
import type { KnownService } from './matcher/match-criterion.ts';
import type { Uncertainty } from './matcher/truth.ts';

/** A potential vulnerability: never a confirmed one. */
export interface Finding {
  cve: string;
  /** `affected`: the version alone decides; `possible`: something that scans can't see decides, named in `incomplete`. */
  result: 'affected' | 'possible';
  incomplete: readonly Uncertainty[];
  severity: Severity | null;
  isKnownExploited: boolean;
  isDisputed: boolean;
  summary: string;
  publishedAt: string;
  modifiedAt: string;
  /** The criteria that the service fits. */
  matched: readonly string[];
}

/** A finding that is shown apart and never active. `any_version`: the record names every version of the product. */
export interface ApartFinding {
  why: 'any_version';
  finding: Finding;
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
  /** Records that were compared. */
  compared: number;
  /** More findings than are listed. */
  isLimited: boolean;
}

/** Records of a product by its key; null when they were never fetched. */
export type FindAdvisories = (productKey: string) => readonly Advisory[] | null;

const findingsMax = 500;

/** Assesses services of one server, in their order. A package among them makes the unmarked ones likely packages. */
export function assessServices(
  services: readonly ServiceEvidence[],
  findAdvisories: FindAdvisories,
): Assessment[] {
  const isPackaged = services.some(hasPackageMark);
  return services.map((evidence) => assessService(evidence, findAdvisories, isPackaged));
}

function assessService(
  evidence: ServiceEvidence,
  findAdvisories: FindAdvisories,
  isPackaged: boolean,
): Assessment {
  const { product, service, reason: ownReason } = identifyService(evidence);
  const advisories = product ? findAdvisories(product.key) : [];
  const reason = ownReason ?? (isPackaged ? 'likely_packaged' : advisories === null ? 'no_database' : null);
  const { listed, apart, leftOut } = service && advisories ? findAll(service, advisories) : nothing;
  return {
    product: product && { key: product.key, title: product.title },
    assessment: reason === null ? 'assessed' : 'unable',
    reason,
    findings: reason === null ? listed : [],
    upstreamFindings: reason === null ? [] : listed,
    apartFindings: reason === null ? apart : [],
    compared: service && advisories ? advisories.length : 0,
    isLimited: leftOut > 0,
  };
}

/** Findings of one product in one version, the most severe first. */
export interface FoundList {
  listed: readonly Finding[];
  apart: readonly ApartFinding[];
  leftOut: number;
}

export const nothing: FoundList = { listed: [], apart: [], leftOut: 0 };

export function findAll(service: KnownService, advisories: readonly Advisory[]): FoundList {
  const found: Finding[] = [];
  const ofAnyVersion: Finding[] = [];
  for (const advisory of advisories) {
    const { truth, why, matched, isOfAnyVersion } = matchAdvisory(service, advisory);
    if (truth === 'no') continue;
    const { configurations: _, status: __, ...shown } = advisory;
    const result = truth === 'yes' && !isOfAnyVersion ? 'affected' : 'possible';
    (isOfAnyVersion ? ofAnyVersion : found).push({ ...shown, result, incomplete: why, matched });
  }
  return {
    listed: found.sort(bySeverity).slice(0, findingsMax),
    apart: ofAnyVersion
      .sort(bySeverity)
      .slice(0, findingsMax)
      .map((finding) => ({ why: 'any_version', finding })),
    leftOut: Math.max(0, found.length - findingsMax),
  };
}

function bySeverity(a: Finding, b: Finding): number {
  return (
    Number(b.isKnownExploited) - Number(a.isKnownExploited) ||
    (b.severity?.score ?? -1) - (a.severity?.score ?? -1) ||
    (a.cve < b.cve ? -1 : 1)
  );
}
