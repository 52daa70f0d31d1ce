/**
 * What a distribution's own security tracker says of one of its packages: fixed in this revision, affected, or nothing.
 *
 * Banners name no release of a distribution. It is the one that the revision itself names (`+deb12u3`, `ubuntu0.22.04.1`,
 * `.el9_4`), else each one that has this upstream version; where they do not agree, nothing is said.
 */
import {
  type ComparePart,
  compareDebianPart,
  compareRevisions,
  compareRpmPart,
  type Distribution,
  type PackageVersion,
  parsePackageVersion,
  type ShownPackage,
} from './compare-revisions.ts';

/** What a tracker says of one CVE in a package of one release. */
export interface PackageFix {
  distribution: Distribution;
  /** As the tracker names it: `bookworm`, `24.04`, `9`. */
  release: string;
  /** Of the source. */
  package: string;
  cve: string;
  status: 'fixed' | 'affected';
  /** The first version with the fix; `0` where no version is affected, null where there is no fix. */
  fixedIn: string | null;
  /** Upstream versions that the tracker names for this package in this release. */
  upstreams: readonly string[];
  /** The newest version of the package that the tracker names; null where it names none. */
  newest: string | null;
}

export interface PackageVerdict {
  state: 'fixed' | 'affected';
  /** Null: no version of the package was affected, or none has the fix. */
  fixedIn: string | null;
}

/** Says of a CVE what the tracker does; null where it says nothing certain. */
export type JudgeCve = (cve: string) => PackageVerdict | null;

const comparers: Readonly<Record<Distribution, ComparePart>> = {
  debian: compareDebianPart,
  ubuntu: compareDebianPart,
  redhat: compareRpmPart,
};

/** https://www.debian.org/releases/ */
const debianReleases: Readonly<Record<string, string>> = {
  ...{ 10: 'buster', 11: 'bullseye', 12: 'bookworm', 13: 'trixie', 14: 'forky', 15: 'duke' },
};

/** Null where the tracker does not know the package in this version: nothing can be said of it. */
export function judgePackage(shown: ShownPackage, known: readonly PackageFix[]): JudgeCve | null {
  const own = parsePackageVersion(shown.version);
  const ofDistribution = known.filter(({ distribution }) => distribution === shown.distribution);
  const sources = selectSources(shown, own, ofDistribution);
  if (sources.length === 0) return null;
  return (cve) => {
    const verdicts = sources.map((fixes) =>
      judge(
        own,
        fixes.filter((fix) => fix.cve === cve),
      ),
    );
    const [first] = verdicts;
    return first && verdicts.every((one) => one?.state === first.state) ? first : null;
  };
}

/** A banner shows no epoch, so that of the tracker does not count. */
const readFixed = (version: string): PackageVersion => ({ ...parsePackageVersion(version), epoch: 0 });

/** What is known of the package in each release that it may be of. */
function selectSources(
  shown: ShownPackage,
  own: PackageVersion,
  known: readonly PackageFix[],
): PackageFix[][] {
  const named = namedRelease(shown);
  const sources = [
    ...Map.groupBy(known, ({ release, package: name }) => `${release} ${name}`).values(),
  ].filter(([first]) => named === null || first!.release === named);
  const ofUpstream = sources.filter((fixes) =>
    fixes.some(({ upstreams }) => upstreams.includes(own.upstream)),
  );
  return ofUpstream.length > 0 || named === null || sources.length > 1 ? ofUpstream : sources;
}

function namedRelease({ distribution, version }: ShownPackage): string | null {
  if (distribution === 'debian') {
    const number = /[+~]deb(\d+)u\d/i.exec(version)?.[1];
    return number === undefined ? null : (debianReleases[number] ?? 'unknown');
  }
  if (distribution === 'ubuntu') return /ubuntu\d*\.(\d\d\.\d\d)(?!\d)/i.exec(version)?.[1] ?? null;
  return /[.+]el(\d+)/i.exec(version)?.[1] ?? 'unknown';
}

function judge(own: PackageVersion, fixes: readonly PackageFix[]): PackageVerdict | null {
  const [first] = fixes;
  if (!first) return null;
  const versions = fixes.flatMap(({ fixedIn }) => fixedIn ?? []);
  const compare = (a: PackageVersion, b: PackageVersion) =>
    compareRevisions(comparers[first.distribution], a, b);
  // A tracker that does not know this package yet can't know that it is not fixed.
  const isNewer = fixes.some(({ newest }) => newest !== null && compare(own, readFixed(newest)) > 0);
  if (versions.length === 0) return isNewer ? null : { state: 'affected', fixedIn: null };
  if (versions.includes('0')) return { state: 'fixed', fixedIn: null };
  // A minor release of Red Hat (`.el9_2`) may have a fix of its own, which is older than that of the newest release.
  const ofStream = versions.filter((version) => streamOf(version) === streamOf(own.revision));
  const fixedIn = (ofStream.length > 0 ? ofStream : versions).toSorted((a, b) =>
    compare(readFixed(b), readFixed(a)),
  )[0]!;
  return { state: compare(own, readFixed(fixedIn)) >= 0 ? 'fixed' : 'affected', fixedIn };
}

const streamOf = (version: string) => /[.+]el\d+_\d+/i.exec(version)?.[0].toLowerCase() ?? '';
