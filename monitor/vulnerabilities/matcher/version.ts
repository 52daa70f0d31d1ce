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
/** Names of builds that change nothing of the version. */
const buildTags = /(-(log|debug|community|standard|enterprise|commercial|mariadb|nt))+$/;

/** Reads a version; null when its order can't be known. `update` is the field of a CPE behind the version, such as `p1`. */
export function parseVersion(scheme: VersionScheme, version: string, update = ''): Version | null {
  let text = version.toLowerCase();
  if (scheme === 'tagged') text = text.replace(/^5\.5\.5-(?=10\.|11\.)/, '').replace(buildTags, '');
  const match = versionPattern.exec(text);
  if (!match) return null;
  const numbers = match[1]!.split('.').map(Number);
  const suffix = parseSuffix(scheme, match[2]!);
  if (update === '' || suffix === null) return suffix && { numbers, ...suffix };
  // A suffix in both fields is one that the order does not know.
  if (suffix.stage !== 0) return null;
  const updated = parseSuffix(scheme, update.toLowerCase());
  return updated && { numbers, ...updated };
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
export function compareNumbers(a: Version, b: Version): number {
  const length = Math.max(a.numbers.length, b.numbers.length);
  for (let i = 0; i < length; i += 1) {
    const difference = (a.numbers[i] ?? 0) - (b.numbers[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * Compares a service's version with a bound of a range; null when that can't be known.
 *
 * OpenSSH: a bound without patch level (`9.6`) means all of its portable releases (`9.6p1`), which are how the release is
 * published. A service without patch level may be any of them, because the banner of the original hides it.
 */
export function compareToBound(scheme: VersionScheme, own: Version, bound: Version): number | null {
  const difference = compareNumbers(own, bound);
  if (scheme !== 'portable' || difference !== 0) return compareVersions(own, bound);
  if (bound.stage === 0) return 0;
  return own.stage === 0 ? null : compareVersions(own, bound);
}
