/**
 * The order of package versions, as `dpkg --compare-versions` and rpm's `rpmvercmp` have it. Pure; below 0 when `a` is older.
 *
 * Sources: deb-version(7), https://www.debian.org/doc/debian-policy/ch-controlfields.html#version, and
 * https://rpm-software-management.github.io/rpm/man/rpm-version.7.
 */

/** A version of a package: `[epoch:]upstream[-revision]`. An epoch that is left out is 0. */
export interface PackageVersion {
  epoch: number;
  upstream: string;
  revision: string;
}

export function parsePackageVersion(text: string): PackageVersion {
  const [, epoch, rest] = /^(?:(\d{1,9}):)?(.*)$/s.exec(text) as unknown as [
    string,
    string | undefined,
    string,
  ];
  const dash = rest.lastIndexOf('-');
  return {
    epoch: Number(epoch ?? 0),
    upstream: dash < 0 ? rest : rest.slice(0, dash),
    revision: dash < 0 ? '' : rest.slice(dash + 1),
  };
}

export type ComparePart = (a: string, b: string) => number;

/** Compares whole versions, part by part. */
export function compareRevisions(comparePart: ComparePart, a: PackageVersion, b: PackageVersion): number {
  return a.epoch - b.epoch || comparePart(a.upstream, b.upstream) || comparePart(a.revision, b.revision);
}

const isDigit = (char: string | undefined) => char !== undefined && char >= '0' && char <= '9';

/** Of dpkg: texts and numbers in turn; `~` sorts before the end, letters before other characters. */
export function compareDebianPart(a: string, b: string): number {
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    while ((i < a.length && !isDigit(a[i])) || (j < b.length && !isDigit(b[j]))) {
      const difference = debianOrder(a[i]) - debianOrder(b[j]);
      if (difference !== 0) return difference;
      i += 1;
      j += 1;
    }
    const [own, other] = [digitsAt(a, i), digitsAt(b, j)];
    const difference = compareDigits(own, other);
    if (difference !== 0) return difference;
    i += own.length;
    j += other.length;
  }
  return 0;
}

function debianOrder(char: string | undefined): number {
  if (char === undefined || isDigit(char)) return 0;
  if (char === '~') return -1;
  return /[a-z]/i.test(char) ? char.charCodeAt(0) : char.charCodeAt(0) + 256;
}

function digitsAt(text: string, start: number): string {
  let end = start;
  while (isDigit(text[end])) end += 1;
  return text.slice(start, end);
}

/** Numbers of any length. */
function compareDigits(a: string, b: string): number {
  const [own, other] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return own.length - other.length || (own < other ? -1 : own > other ? 1 : 0);
}

/** Of rpm: what separates is skipped, `~` sorts before the end and `^` behind it, a number is newer than a word. */
export function compareRpmPart(a: string, b: string): number {
  let [own, other] = [a, b];
  for (;;) {
    own = own.replace(/^[^a-z0-9~^]+/i, '');
    other = other.replace(/^[^a-z0-9~^]+/i, '');
    const sign = compareRpmSigns(own, other);
    if (sign === 'same') {
      own = own.slice(1);
      other = other.slice(1);
      continue;
    }
    if (sign !== 'none') return sign;
    if (own === '' || other === '') return own.length - other.length;
    const isNumber = isDigit(own[0]);
    const segment = isNumber ? /^\d+/ : /^[a-z]+/i;
    const [first, second] = [segment.exec(own)![0], segment.exec(other)?.[0]];
    if (second === undefined) return isNumber ? 1 : -1;
    const difference = isNumber ? compareDigits(first, second) : first < second ? -1 : first > second ? 1 : 0;
    if (difference !== 0) return difference;
    own = own.slice(first.length);
    other = other.slice(second.length);
  }
}

/** What `~` and `^` at the front decide: a difference, `same` when both have it, `none` when neither has. */
function compareRpmSigns(own: string, other: string): number | 'same' | 'none' {
  const [first, second] = [own[0], other[0]];
  if (first === '~' || second === '~') return first === second ? 'same' : first === '~' ? -1 : 1;
  if (first !== '^' && second !== '^') return 'none';
  if (first === second) return 'same';
  if (own === '') return -1;
  if (other === '') return 1;
  return first === '^' ? -1 : 1;
}

/** Which package of a distribution a service shows, where it shows the whole revision. */
const distributions = ['debian', 'ubuntu', 'redhat'] as const;
export type Distribution = (typeof distributions)[number];

/** A package as a banner shows it: `9.6p1-3ubuntu13.5` of Ubuntu. Banners have no epoch. */
export interface ShownPackage {
  distribution: Distribution;
  version: string;
}

const revision = '[0-9a-z][0-9a-z.+~]*';
/** OpenSSH of Debian and Ubuntu, as nmap writes it: `9.2p1 Debian 2+deb12u3`. */
const greeting = new RegExp(`^([0-9][0-9a-z.]*) (Debian|Ubuntu)[ -](${revision})$`, 'i');
/** MySQL and MariaDB: `8.0.36-0ubuntu0.22.04.1`, `5.5.5-10.11.6-MariaDB-0+deb12u1-log`. */
const database = new RegExp(`^([0-9][0-9.]*)(?:-mariadb)?-(${revision})$`, 'i');
const rpm = /^([0-9][0-9a-z.]*)-([0-9][0-9a-z.+~^_]*[.+]el\d[0-9a-z.+~^_]*)$/i;

/** Null where the version shows no whole revision, or one of another maker: MariaDB's own packages have `+maria~`. */
export function readRevision(text: string | null): ShownPackage | null {
  const version = (text ?? '')
    .trim()
    .replace(/^5\.5\.5-(?=1[01]\.)/, '')
    .replace(/-log$/i, '');
  const [, greeted, name, greetedRevision] = greeting.exec(version) ?? [];
  // Older packages of Ubuntu greet as Debian's.
  if (greeted !== undefined) {
    const isUbuntu = /ubuntu/i.test(`${name} ${greetedRevision}`);
    return make(isUbuntu ? 'ubuntu' : 'debian', greeted, greetedRevision!);
  }
  const [, upstream, shown] = database.exec(version) ?? [];
  if (upstream !== undefined && /ubuntu/i.test(shown!)) return make('ubuntu', upstream, shown!);
  if (upstream !== undefined && /[+~]deb\d+u\d+$/i.test(shown!)) return make('debian', upstream, shown!);
  const [, packed, release] = rpm.exec(version) ?? [];
  return packed === undefined ? null : make('redhat', packed, release!);
}

const make = (distribution: Distribution, upstream: string, shown: string): ShownPackage => ({
  distribution,
  version: `${upstream}-${shown}`,
});
