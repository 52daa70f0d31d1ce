/**
 * Versions as each product writes them, and their order.
 *
 * A version is its numbers and one suffix: `9.3p2`, `1.3.5e`, `17beta1`. Missing numbers are 0, and a suffix stands before
 * its release (alpha, beta, rc) or behind it (patch levels, letters). What can't be read is never compared as text.
 */

/**
 * How a product writes versions. `portable`: OpenSSH, `9.3p1`. `lettered`: ProFTPD, `1.3.5e` is newer than `1.3.5`. `tagged`: MySQL
 * and MariaDB, with the names of builds behind the version (`5.7.33-log`).
 */
export type VersionScheme = 'dotted' | 'portable' | 'lettered' | 'tagged';

export interface Version {
  numbers: readonly number[];
  /** The order of the suffix: below 0 before the release, 0 none, 1 behind it. */
  stage: number;
  /** The number of the suffix, or of its letter. */
  step: number;
}

const stages: Readonly<Record<string, number>> = {
  ...{ dev: -5, alpha: -4, beta: -3, pre: -2, preview: -2, rc: -1 },
  ...{ p: 1, pl: 1, patch: 1, sp: 1 },
};
const suffixPattern = /^[-_.~]?([a-z]+)[-_.]?(\d{1,9})?$/;
const versionPattern = /^v?(\d{1,9}(?:\.\d{1,9}){0,7})(.*)$/;
const leadingPattern = /^v?(\d{1,9}(?:\.\d{1,9}){0,7})(?!\d)/;
/** Names of builds that change nothing of the version. */
const buildTags = /(-(log|debug|community|standard|enterprise|commercial|mariadb|nt))+$/;

/** Reads a version; null when its order can't be known. `update` is the field of a CPE behind the version, such as `p1`. */
export function parseVersion(scheme: VersionScheme, version: string, update = ''): Version | null {
  const match = versionPattern.exec(withoutTags(scheme, version));
  if (!match) return null;
  const numbers = match[1]!.split('.').map(Number);
  const suffix = parseSuffix(scheme, match[2]!);
  if (update === '' || suffix === null) return suffix && { numbers, ...suffix };
  // A suffix in both fields is one that the order does not know.
  if (suffix.stage !== 0) return null;
  const updated = parseSuffix(scheme, update.toLowerCase());
  return updated && { numbers, ...updated };
}

function withoutTags(scheme: VersionScheme, version: string): string {
  const text = version.toLowerCase();
  return scheme === 'tagged' ? text.replace(/^5\.5\.5-(?=10\.|11\.)/, '').replace(buildTags, '') : text;
}

/** A version as a record states it: exact, or as far as it can be read. */
export interface StatedVersion {
  /** Null where its order is not known. */
  version: Version | null;
  /** Of a version that can't be read the numbers that it begins with; null where it begins with none. */
  leading: readonly number[] | null;
  /** It is no version of the product, which all begin with a number: `r27` is a release of another product line. */
  isForeign: boolean;
}

export function parseStated(scheme: VersionScheme, text: string): StatedVersion {
  const version = parseVersion(scheme, text);
  const leading = version ? null : (leadingPattern.exec(withoutTags(scheme, text))?.[1] ?? null);
  return { version, leading: leading?.split('.').map(Number) ?? null, isForeign: !/^v?\d/i.test(text) };
}

function parseSuffix(scheme: VersionScheme, text: string): Pick<Version, 'stage' | 'step'> | null {
  if (text === '') return { stage: 0, step: 0 };
  const match = suffixPattern.exec(text);
  if (!match) return null;
  const [, word, digits] = match as unknown as [string, string, string | undefined];
  if (scheme === 'lettered' && /^[a-z]$/.test(text)) return { stage: 1, step: text.charCodeAt(0) - 96 };
  const stage = Object.hasOwn(stages, word) ? stages[word]! : null;
  return stage === null ? null : { stage, step: Number(digits ?? 0) };
}

/** Below 0 when `a` is older than `b`. */
export function compareVersions(a: Version, b: Version): number {
  return compareNumbers(a, b) || a.stage - b.stage || a.step - b.step;
}

/** The same of the numbers alone, without suffixes. */
export function compareNumbers(a: Pick<Version, 'numbers'>, b: Pick<Version, 'numbers'>): number {
  const length = Math.max(a.numbers.length, b.numbers.length);
  for (let i = 0; i < length; i += 1) {
    const difference = (a.numbers[i] ?? 0) - (b.numbers[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * Compares a service's version with one that a record states, such as the bound of a range; null when that can't be known. Of a
 * version that can't be read (`5.0.51a`) the numbers at its begin decide where they differ.
 *
 * OpenSSH: a bound without patch level (`9.6`) means all of its portable releases (`9.6p1`), which are how the release is
 * published. A service without patch level may be any of them, because the banner of the original hides it.
 */
export function compareToBound(
  scheme: VersionScheme,
  own: Version,
  { version: bound, leading }: Omit<StatedVersion, 'isForeign'>,
): number | null {
  if (!bound) {
    const begin = own.numbers.slice(0, leading?.length ?? 0);
    return (leading && compareNumbers({ numbers: begin }, { numbers: leading })) || null;
  }
  const difference = compareNumbers(own, bound);
  if (scheme !== 'portable' || difference !== 0) return compareVersions(own, bound);
  if (bound.stage === 0) return 0;
  return own.stage === 0 ? null : compareVersions(own, bound);
}
