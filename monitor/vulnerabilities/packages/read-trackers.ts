/**
 * Reads files of the distributions' security trackers, as far as packages of known products are concerned: Debian's JSON
 * (https://security-tracker.debian.org/tracker/data/json), Ubuntu's OSV (https://ubuntu.com/security/osv) and Red Hat's CSAF
 * with VEX (https://security.access.redhat.com/data/csaf/v2/vex/). Fields that are not named here are ignored.
 */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { products } from '../products.ts';
import {
  compareDebianPart,
  compareRevisions,
  type Distribution,
  parsePackageVersion,
} from './compare-revisions.ts';
import type { PackageFix } from './judge-package.ts';

/** A fix with the key of the product that the package is of. */
export interface ProductFix extends PackageFix {
  product: string;
}

export interface TrackerFile {
  distribution: Distribution;
  /** The file has all that the tracker knows; else it is about these CVEs. */
  about: 'everything' | readonly string[];
  fixes: readonly ProductFix[];
}

const Text = Type.String({ minLength: 1, maxLength: 256 });
const Texts = Type.Array(Type.String({ maxLength: 1_024 }), { maxItems: 200_000 });
const cvePattern = /CVE-\d{4}-\d{4,19}/;

/** Null for a file of another kind. Throws `Error` for one of a tracker that can't be read. */
export function readTracker(file: unknown): TrackerFile | null {
  if (checkVex.Check(file)) return readVex(file);
  if (checkOsv.Check(file)) return readOsv(file);
  return isDebian(file) ? readDebian(file) : null;
}

const productOf = (name: string) => products.find(({ packages }) => packages.test(name))?.key;
/** What a tracker names of a package, of Debian's kind. */
const namedOf = (versions: readonly string[]): Pick<PackageFix, 'upstreams' | 'newest'> => ({
  upstreams: [...new Set(versions.map((version) => parsePackageVersion(version).upstream))],
  newest:
    versions.toSorted((a, b) =>
      compareRevisions(compareDebianPart, parsePackageVersion(b), parsePackageVersion(a)),
    )[0] ?? null,
});

const checkDebianCve = Compile(
  Type.Object({
    releases: Type.Record(
      Type.String({ maxLength: 64 }),
      Type.Object({
        status: Text,
        fixed_version: Type.Optional(Text),
        urgency: Type.Optional(Type.String({ maxLength: 64 })),
        repositories: Type.Optional(Type.Record(Type.String({ maxLength: 64 }), Text)),
      }),
    ),
  }),
);

/** An object of packages, each an object of CVEs and temporary names. */
const isDebian = (file: unknown): file is Record<string, Record<string, unknown>> =>
  isObject(file) &&
  Object.values(file).every(isObject) &&
  Object.values(file).some((cves) => Object.keys(cves as object).some((name) => cvePattern.test(name)));

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readDebian(file: Record<string, Record<string, unknown>>): TrackerFile {
  const fixes: ProductFix[] = [];
  for (const [name, cves] of Object.entries(file)) {
    const product = productOf(name);
    if (product === undefined) continue;
    for (const [cve, entry] of Object.entries(cves)) {
      if (!cvePattern.test(cve) || !checkDebianCve.Check(entry)) continue;
      for (const [release, { status, fixed_version, urgency, repositories = {} }] of Object.entries(
        entry.releases,
      )) {
        // Undetermined ones and those that its maintainers don't count are no verdict.
        const isFixed = status === 'resolved' && fixed_version !== undefined;
        if (!isFixed && !(status === 'open' && urgency !== 'unimportant')) continue;
        const versions = [...Object.values(repositories), ...(fixed_version ? [fixed_version] : [])];
        fixes.push({
          ...{ product, distribution: 'debian', release, package: name, cve },
          ...{ status: isFixed ? 'fixed' : 'affected', fixedIn: isFixed ? fixed_version : null },
          ...namedOf(versions),
        });
      }
    }
  }
  return { distribution: 'debian', about: 'everything', fixes };
}

const OsvEvent = Type.Object({ introduced: Type.Optional(Text), fixed: Type.Optional(Text) });
const checkOsv = Compile(
  Type.Object({
    id: Text,
    withdrawn: Type.Optional(Text),
    upstream: Type.Optional(Texts),
    aliases: Type.Optional(Texts),
    related: Type.Optional(Texts),
    affected: Type.Array(
      Type.Object({
        package: Type.Object({ ecosystem: Text, name: Text }),
        ranges: Type.Optional(Type.Array(Type.Object({ events: Type.Array(OsvEvent) }))),
        versions: Type.Optional(Texts),
      }),
    ),
  }),
);
type Osv = Parameters<typeof readOsv>[0];

function readOsv(file: {
  id: string;
  withdrawn?: string;
  upstream?: string[];
  aliases?: string[];
  related?: string[];
  affected: {
    package: { ecosystem: string; name: string };
    ranges?: { events: { introduced?: string; fixed?: string }[] }[];
    versions?: string[];
  }[];
}): TrackerFile | null {
  // Packages of Ubuntu Pro (`Ubuntu:Pro:…`) are others.
  const affected = file.affected.filter(({ package: { ecosystem } }) => releasePattern.test(ecosystem));
  const cves = cvesOf(file);
  if (affected.length === 0 && !/^(UBUNTU-CVE|USN|LSN)-/.test(file.id)) return null;
  const fixes = affected.flatMap((one): ProductFix[] => {
    const product = productOf(one.package.name);
    if (product === undefined || file.withdrawn !== undefined) return [];
    const events = (one.ranges ?? []).flatMap((range) => range.events);
    // A fault that came with a later version says nothing of the earlier ones.
    if (events.some(({ introduced = '0' }) => introduced !== '0')) return [];
    const fixedIn = events.find(({ fixed }) => fixed !== undefined)?.fixed ?? null;
    const versions = [...(one.versions ?? []), ...(fixedIn === null ? [] : [fixedIn])];
    const release = releasePattern.exec(one.package.ecosystem)![1]!;
    return cves.map((cve) => ({
      ...{ product, distribution: 'ubuntu', release, package: one.package.name, cve },
      ...{ status: fixedIn === null ? 'affected' : 'fixed', fixedIn },
      ...namedOf(versions),
    }));
  });
  return { distribution: 'ubuntu', about: cves, fixes };
}

const releasePattern = /^Ubuntu:(\d\d\.\d\d)(?::LTS)?$/;

/** A record is about the CVE of its number; a notice is about those that it names. */
function cvesOf({ id, upstream = [], aliases = [], related = [] }: Osv): string[] {
  const own = cvePattern.exec(id)?.[0];
  if (own !== undefined) return [own];
  return [
    ...new Set([...upstream, ...aliases, ...related].flatMap((text) => cvePattern.exec(text)?.[0] ?? [])),
  ];
}

const VexStatus = Type.Object({
  fixed: Type.Optional(Texts),
  known_affected: Type.Optional(Texts),
  known_not_affected: Type.Optional(Texts),
});
const checkVex = Compile(
  Type.Object({
    document: Type.Object({
      category: Type.String({ pattern: '^csaf_' }),
      publisher: Type.Object({ namespace: Type.String({ pattern: '^https://www\\.redhat\\.com' }) }),
    }),
    vulnerabilities: Type.Array(
      Type.Object({
        cve: Type.Optional(Type.String({ pattern: '^CVE-[0-9]{4}-[0-9]{4,19}$' })),
        product_status: Type.Optional(VexStatus),
      }),
      { maxItems: 10_000 },
    ),
  }),
);

interface VexVulnerability {
  cve?: string;
  product_status?: { fixed?: string[]; known_affected?: string[]; known_not_affected?: string[] };
}

/** `BaseOS-9.4.0.Z.MAIN.EUS:openssh-0:8.7p1-38.el9_4.1.src`. */
const builtPattern = /:([^:/]+)-\d{1,9}:([^:-]+)-([^:-]+)\.src$/;
/** `red_hat_enterprise_linux_9:openssh`, `red_hat_enterprise_linux_8:mysql:8.0/mysql`. */
const namedPattern = /^red_hat_enterprise_linux_(\d+):(?:.*\/)?([^:/]+)$/;

function readVex({ vulnerabilities }: { vulnerabilities: VexVulnerability[] }): TrackerFile {
  const fixes = vulnerabilities.flatMap(({ cve, product_status: status = {} }): ProductFix[] => {
    if (cve === undefined) return [];
    const built = (status.fixed ?? []).flatMap((id): ProductFix[] => {
      const [, name, version, release] = builtPattern.exec(id) ?? [];
      const major = /[.+]el(\d+)/.exec(release ?? '')?.[1];
      return name === undefined || major === undefined
        ? []
        : makeFix(cve, major, name, 'fixed', `${version}-${release}`);
    });
    const named = (ids: readonly string[], state: PackageFix['status'], fixedIn: string | null) =>
      ids.flatMap((id): ProductFix[] => {
        const [, major, name] = namedPattern.exec(id) ?? [];
        return name === undefined ? [] : makeFix(cve, major!, name, state, fixedIn);
      });
    return [
      ...built,
      ...named(status.known_affected ?? [], 'affected', null),
      ...named(status.known_not_affected ?? [], 'fixed', '0'),
    ];
  });
  return { distribution: 'redhat', about: vulnerabilities.flatMap(({ cve }) => cve ?? []), fixes };
}

function makeFix(
  cve: string,
  release: string,
  name: string,
  status: PackageFix['status'],
  fixedIn: string | null,
): ProductFix[] {
  const product = productOf(name);
  if (product === undefined) return [];
  const upstreams = fixedIn === null || fixedIn === '0' ? [] : [parsePackageVersion(fixedIn).upstream];
  return [
    {
      ...{ product, distribution: 'redhat', release, package: name, cve },
      ...{ status, fixedIn, upstreams, newest: null },
    },
  ];
}
