/** Assessments as text and as JSON. */
import { type UnableReason, unableRows } from '#contracts/findings.ts';
import type {
  ApartFinding,
  Assessment,
  CopiedProduct,
  Finding,
  ServiceAt,
} from '../vulnerabilities/index.ts';

/** A service with its assessment. */
export interface Assessed extends ServiceAt {
  result: Assessment;
}

const unableText = (reason: UnableReason) =>
  `${unableRows[reason].words}${reason === 'no_database' ? ': ./svc monitor refresh_vulnerabilities' : ''}`;

const doubts: Readonly<Record<Finding['incomplete'][number], string>> = {
  platform: 'depends on the operating system or another product',
  edition: 'depends on the edition',
  version: 'depends on a part of the version that is not shown',
  all_versions: 'any version, says the record',
};

const packageText = ({ fixedIn }: NonNullable<Finding['package']>) =>
  fixedIn === null ? 'affected package, no fix yet' : `affected package, fixed in ${fixedIn}`;

function apartText({ why, fixedIn }: ApartFinding): string {
  if (why === 'any_version') return doubts.all_versions;
  if (why === 'not_in_tracker') return "the distribution's tracker says nothing certain";
  return fixedIn ? `fixed in this package, since ${fixedIn}` : 'the package was never affected';
}

/** Terms of the database ask for it. */
const notice = 'This product uses the NVD API but is not endorsed or certified by the NVD.';

export function describeAssessed(
  assessed: readonly Assessed[],
  copied: readonly CopiedProduct[],
  nowMs: number,
): string {
  return `${assessed.flatMap((one) => describe(one, copied, nowMs)).join('\n')}\n${notice}\n`;
}

function describe(one: Assessed, copied: readonly CopiedProduct[], nowMs: number): string[] {
  const { result, evidence } = one;
  const place = one.port > 0 ? `${one.address} ${one.transport}/${one.port} ` : '';
  const title = result.product?.title ?? evidence.product ?? 'unknown product';
  const head = `${place}${title}${evidence.version === null ? '' : ` ${evidence.version}`}`;
  const product = copied.find((entry) => entry.product === result.product?.key);
  const age =
    product?.refreshedAtMs == null
      ? ''
      : `, records ${Math.floor(Math.max(0, nowMs - product.refreshedAtMs) / 3_600_000)} h old`;
  if (result.reason === null) {
    const count = result.findings.length;
    const found =
      count === 0
        ? 'no potential vulnerability'
        : `${count} potential ${count === 1 ? 'vulnerability' : 'vulnerabilities'}`;
    return [
      `${head}: ${found}${result.packaged ? `, as the tracker of ${result.packaged.distribution} says of this package,` : ''} in ${result.compared} records${age}${mayBePackage(one) ? ". It may be a distribution's package: not confirmed" : ''}`,
      ...result.findings.flatMap(describeFinding),
      ...describeApart(result.apartFindings),
    ];
  }
  const upstream = result.upstreamFindings;
  const more =
    upstream.length === 0 ? [] : [`  The original of this version has (not findings of this service):`];
  return [
    `${head}: unable to assess: ${unableText(result.reason)}`,
    ...more,
    ...upstream.flatMap(describeFinding),
  ];
}

/** Some packages show no mark, so what a service shows of itself never confirms an original. */
const mayBePackage = ({ evidence, result }: Assessed) =>
  result.reason === null && result.packaged === null && evidence.method === 'probed';

function describeApart(apart: readonly ApartFinding[]): string[] {
  if (apart.length === 0) return [];
  return [
    '  Shown apart (not active):',
    ...apart.flatMap((one) => [`   ${apartText(one)}:`, ...describeFinding(one.finding)]),
  ];
}

function describeFinding(finding: Finding): string[] {
  const { severity } = finding;
  const marks = [
    finding.result,
    severity ? `${severity.rating} ${severity.score.toFixed(1)} (CVSS ${severity.version})` : 'not scored',
    ...(finding.isKnownExploited ? ['known exploited'] : []),
    ...(finding.isDisputed ? ['disputed'] : []),
    ...(finding.package ? [packageText(finding.package)] : []),
    ...finding.incomplete.map((doubt) => doubts[doubt]),
  ];
  return [
    `  ${finding.cve.padEnd(16)} ${marks.join(', ')}`,
    `    ${finding.summary}`,
    ...finding.matched.map((criterion) => `    fits ${criterion}`),
  ];
}

/** The form of `--json`. */
export function toJson(one: Assessed, copied: readonly CopiedProduct[], nowMs: number) {
  const { address, transport, port, evidence, result } = one;
  const product = copied.find((entry) => entry.product === result.product?.key);
  const refreshedAtMs = product?.refreshedAtMs ?? null;
  return {
    service: {
      ...(port > 0 ? { address, transport, port } : {}),
      ...{
        product: evidence.product ?? result.product?.title ?? null,
        version: evidence.version,
        extra_info: evidence.extraInfo,
        cpe: evidence.cpe,
      },
      known_product: result.product?.key ?? null,
    },
    assessment: result.assessment,
    reason: result.reason,
    package: result.packaged,
    may_be_package: mayBePackage(one),
    findings: result.findings.map(findingJson),
    upstream_findings: result.upstreamFindings.map(findingJson),
    apart_findings: result.apartFindings.map(({ why, finding, fixedIn }) => ({
      ...{ why, ...findingJson(finding) },
      ...(fixedIn === undefined ? {} : { fixed_in_package: fixedIn }),
    })),
    findings_limited: result.isLimited,
    database: {
      refreshed_at: refreshedAtMs === null ? null : new Date(refreshedAtMs).toISOString(),
      age_seconds: refreshedAtMs === null ? null : Math.max(0, Math.floor((nowMs - refreshedAtMs) / 1_000)),
      records: product?.records ?? 0,
      compared: result.compared,
      deferred: product?.deferred ?? 0,
      unreadable: product?.unreadable ?? 0,
      last_error: product?.error ?? null,
    },
  };
}

function findingJson(finding: Finding) {
  const { cve, result, incomplete, severity, summary, matched } = finding;
  return {
    ...{ cve, result, incomplete, severity },
    ...{ known_exploited: finding.isKnownExploited, disputed: finding.isDisputed, summary },
    ...(finding.package ? { fixed_in_package: finding.package.fixedIn } : {}),
    ...{ published_at: finding.publishedAt, modified_at: finding.modifiedAt, matched },
  };
}
