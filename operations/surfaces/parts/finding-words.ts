/** Potential vulnerabilities in words, alike on portal and console. */
import { type UnableReason, unableRows } from '#contracts/findings.ts';
import type { FindingPlace, FindingRow, ServerFindingCount } from '#operations/views/index.ts';
import { age, badge, type Content, formatCount, type Tone } from '#service-kit/pages/index.ts';

/** Why a service could not be assessed, as a sentence. */
export const unableText = (reason: string | null): string =>
  unableRows[reason as UnableReason]?.sentence ?? 'It could not be compared with the database.';

/** Why a finding is not certain even for this version, as a sentence; empty where nothing is missing. */
export function incompleteText(incomplete: 'platform' | 'bounded' | null): string {
  if (incomplete === 'platform')
    return 'Incomplete: it depends on something that scans do not see, such as the operating system or another program.';
  if (incomplete === 'bounded') return 'Incomplete: the record or the version is not exact enough to decide.';
  return '';
}

/** What a distribution says of its package, as a sentence. */
export const packageText = ({ fixed_in }: { fixed_in: string | null }): string =>
  fixed_in === null
    ? 'The distribution calls this version of its package affected, and has no fix yet.'
    : `The distribution fixed it in version ${fixed_in} of its package. Upgrade the package.`;

/** What the terms of the database require. */
export const nvdNotice = 'This product uses the NVD API but is not endorsed or certified by the NVD.';

/** What a finding is, and what it is not (NET-2.6.1). */
export const findingMeaning =
  'A potential vulnerability: the detected version matches a published vulnerability. It is not confirmed that the server can be attacked, and not known whether a patch is installed: a package of a distribution may keep the version when it is patched.';

/** Evidence that no scan has renewed for so long is stale: every port is scanned daily (NET-2.7.10). */
const freshMs = 27 * 3_600_000;
/** The copy is renewed every 24 hours; older than this, something is wrong with it. */
const databaseFreshMs = 3 * 86_400_000;

export const isDatabaseOld = (databaseAt: Date | null, nowMs: number): boolean =>
  databaseAt !== null && nowMs - databaseAt.getTime() > databaseFreshMs;

/** `OpenSSH 9.6p1`; what a service did not say reads as unknown. */
export const softwareOf = ({
  product,
  version,
}: {
  product: string | null;
  version: string | null;
}): string => (product === null ? 'unknown product' : [product, version ?? 'without version'].join(' '));

/** When the evidence was found, and that no scan has renewed it where that is so. */
export function evidenceCell({ observedAt }: { observedAt: Date }, nowMs: number): Content {
  return ['scan ', age(observedAt.getTime(), nowMs), ' ', staleMark(observedAt, nowMs)];
}

/** Says that no scan has seen it for longer than scans take turns. */
export const staleMark = (observedAt: Date, nowMs: number): Content =>
  nowMs - observedAt.getTime() > freshMs && badge('warn', 'stale');

/** What is to be known beside the severity: known to be exploited, disputed, incomplete. */
export function findingMarks(finding: {
  isKnownExploited: boolean;
  isDisputed: boolean;
  incomplete: 'platform' | 'bounded' | null;
}): Content {
  return [
    finding.isKnownExploited && [badge('bad', 'known exploited'), ' '],
    finding.isDisputed && [badge('neutral', 'disputed'), ' '],
    finding.incomplete !== null && badge('neutral', 'incomplete'),
  ];
}

/** The record in the database, for people who want all of it. */
export const recordHref = (cveId: string): string =>
  `https://nvd.nist.gov/vuln/detail/${encodeURIComponent(cveId)}`;

/** The active findings of a server in a few words. */
export function findingCountWords({ active, critical, high, knownExploited }: ServerFindingCount): {
  tone: Tone;
  text: string;
} {
  const worst =
    critical > 0 ? `, ${formatCount(critical)} critical` : high > 0 ? `, ${formatCount(high)} high` : '';
  return {
    tone: critical + knownExploited > 0 ? 'bad' : high > 0 ? 'warn' : 'neutral',
    text: `${formatCount(active)} active${worst}`,
  };
}

/** The place of a finding in a list, as it travels in a URL. */
export function writeFindingCursor(last: FindingRow): string {
  const { isKnownExploited, score, cveId, allocationId, transport, port } = last;
  return [isKnownExploited ? 1 : 0, score ?? -1, cveId, allocationId, transport, port].join('_');
}

const cursorPattern =
  /^([01])_(-1|\d{1,2}(?:\.\d{1,3})?)_(CVE-\d{4}-\d{4,19})_(\d{1,15})_(tcp|udp)_(\d{1,5})$/;

/** The cursor of a URL; what is none reads as the first page. */
export function readFindingCursor(text: string | undefined): FindingPlace | undefined {
  const [all, exploited, score, cveId, allocationId, transport, port] = cursorPattern.exec(text ?? '') ?? [];
  if (all === undefined) return undefined;
  return {
    isKnownExploited: exploited === '1',
    score: Number(score),
    cveId: cveId!,
    allocationId: Number(allocationId),
    transport: transport!,
    port: Number(port),
  };
}
