/**
 * Makes records in the format of the NVD's CVE API 2.0 from short texts.
 *
 * A criterion is `vendor:product`, `vendor:product:version` or `vendor:product:version:update`, after `o:` for an operating
 * system or `h:` for hardware, and then its range: `openbsd:openssh >=8.6 <9.8`.
 */

export interface NvdMatch {
  vulnerable: boolean;
  criteria: string;
  versionStartIncluding?: string;
  versionStartExcluding?: string;
  versionEndIncluding?: string;
  versionEndExcluding?: string;
}

export interface NvdConfiguration {
  operator?: 'AND' | 'OR';
  negate?: boolean;
  nodes: { operator: 'AND' | 'OR'; negate: boolean; cpeMatch: NvdMatch[] }[];
}

export interface NvdRecord {
  cve: {
    id: string;
    sourceIdentifier: string;
    published: string;
    lastModified: string;
    vulnStatus: string;
    cveTags: { sourceIdentifier: string; tags: string[] }[];
    cisaExploitAdd?: string;
    descriptions: { lang: string; value: string }[];
    metrics: Record<string, object[]>;
    configurations?: NvdConfiguration[];
  };
}

const bounds = {
  '>=': 'versionStartIncluding',
  '>': 'versionStartExcluding',
  '<=': 'versionEndIncluding',
  '<': 'versionEndExcluding',
} as const;

/** Something vulnerable. */
export function match(text: string): NvdMatch {
  const [name, ...range] = text.split(' ') as [string, ...string[]];
  const made: NvdMatch = { vulnerable: true, criteria: toCpe(name) };
  for (const part of range) {
    const [, sign, version] = /^([<>]=?)(.+)$/.exec(part)!;
    made[bounds[sign as keyof typeof bounds]] = version!;
  }
  return made;
}

function toCpe(name: string): string {
  if (name.startsWith('cpe:')) return name;
  const fields = name.split(':');
  const named = fields[0]!.length === 1 ? fields : ['a', ...fields];
  return ['cpe', '2.3', ...named, ...Array.from({ length: 11 - named.length }, () => '*')].join(':');
}

/** One node of alternatives. */
export function anyOf(...texts: string[]): NvdConfiguration {
  return { nodes: [{ operator: 'OR', negate: false, cpeMatch: texts.map(match) }] };
}

/** Something vulnerable that runs on or with one of these. */
export function runningOn(vulnerable: string[], platforms: string[]): NvdConfiguration {
  const needed = platforms.map((text) => ({ ...match(text), vulnerable: false }));
  return {
    operator: 'AND',
    nodes: [
      { operator: 'OR', negate: false, cpeMatch: vulnerable.map(match) },
      { operator: 'OR', negate: false, cpeMatch: needed },
    ],
  };
}

interface Extra {
  /** Day on which it joined CISA's catalog. */
  exploited?: string;
  tags?: string[];
  status?: string;
  modified?: string;
  /** Further scores, such as `4.0 8.7`. */
  scores?: string[];
}

/** `score` is a version of CVSS and its base score: `3.1 8.1`. */
export function record(
  id: string,
  published: string,
  score: string,
  summary: string,
  configurations: NvdConfiguration[],
  extra: Extra = {},
): NvdRecord {
  const source = 'nvd@nist.gov';
  return {
    cve: {
      id,
      sourceIdentifier: source,
      published: `${published}T12:15:00.000`,
      lastModified: `${extra.modified ?? '2025-12-01'}T10:00:00.000`,
      vulnStatus: extra.status ?? 'Analyzed',
      cveTags: extra.tags ? [{ sourceIdentifier: source, tags: extra.tags }] : [],
      ...(extra.exploited ? { cisaExploitAdd: extra.exploited } : {}),
      descriptions: [
        { lang: 'es', value: `(${id})` },
        { lang: 'en', value: summary },
      ],
      metrics: Object.fromEntries([score, ...(extra.scores ?? [])].map(toMetric)),
      ...(configurations.length > 0 ? { configurations } : {}),
    },
  };
}

function toMetric(score: string): [string, object[]] {
  const [version, points] = score.split(' ') as [string, string];
  const baseScore = Number(points);
  const baseSeverity = baseScore < 4 ? 'LOW' : baseScore < 7 ? 'MEDIUM' : baseScore < 9 ? 'HIGH' : 'CRITICAL';
  const name = {
    '2.0': 'cvssMetricV2',
    '3.0': 'cvssMetricV30',
    '3.1': 'cvssMetricV31',
    '4.0': 'cvssMetricV40',
  }[version]!;
  const inside = {
    version,
    vectorString: 'not kept',
    baseScore,
    ...(version === '2.0' ? {} : { baseSeverity }),
  };
  const own = {
    source: 'nvd@nist.gov',
    type: 'Primary',
    cvssData: inside,
    ...(version === '2.0' ? { baseSeverity } : {}),
  };
  const other = {
    source: 'cna@example.com',
    type: 'Secondary',
    cvssData: { ...inside, baseScore: 1.1, baseSeverity: 'LOW' },
  };
  return [name, [other, own]];
}
