import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { findingSeverities } from '#contracts/findings.ts';
import type { Advisory, Condition, Criterion, Severity } from '../matcher/advisory.ts';

const summaryMax = 2_000;
const vectorPattern = /^[A-Za-z0-9:./]{1,512}$/;

/** A record as it is kept; `rejected` for one that its database took back, null for one that can't be read. */
export function readRecord(given: unknown): Advisory | 'rejected' | null {
  const record = withoutNulls(given);
  if (!checkRecord.Check(record)) return null;
  const { cve } = record;
  if (cve.vulnStatus?.toLowerCase() === 'rejected') return 'rejected';
  const publishedAt = readTime(cve.published);
  const modifiedAt = readTime(cve.lastModified);
  if (publishedAt === null || modifiedAt === null) return null;
  return {
    cve: cve.id,
    status: cve.vulnStatus ?? 'Unknown',
    summary: cleanSummary(cve.descriptions.find(({ lang }) => lang === 'en')?.value ?? ''),
    publishedAt,
    modifiedAt,
    severity: readSeverity(cve.metrics ?? {}),
    isKnownExploited: cve.cisaExploitAdd !== undefined,
    isDisputed: cve.cveTags?.some(({ tags }) => tags.includes('disputed')) ?? false,
    configurations: (cve.configurations ?? []).map(readConfiguration),
  };
}

/** A field that is null is one that is absent: a record of the database has both. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => (inner === null ? [] : [[name, withoutNulls(inner)]])),
  );
}

/** Times of the database are UTC without saying so. */
function readTime(text: string): string | null {
  const isZoned = /(z|[+-]\d\d:?\d\d)$/i.test(text);
  const ms = Date.parse(isZoned ? text : `${text}Z`);
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

/** Text of strangers: one line without control characters, bounded. */
function cleanSummary(text: string): string {
  return text
    .slice(0, 4 * summaryMax)
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, summaryMax)
    .replace(/[\ud800-\udbff]$/, '');
}

/** The database's own score (`Primary`) before that of another (`Secondary`), each by the newest version of CVSS. */
function readSeverity(metrics: NonNullable<WireRecord['cve']['metrics']>): Severity | null {
  const versions = [
    ['4.0', metrics.cvssMetricV40],
    ['3.1', metrics.cvssMetricV31],
    ['3.0', metrics.cvssMetricV30],
    ['2.0', metrics.cvssMetricV2],
  ] as const;
  const all = versions.flatMap(([version, scored = []]) => scored.map((metric) => ({ version, metric })));
  const chosen = all.find(({ metric }) => metric.type === 'Primary') ?? all[0];
  if (!chosen) return null;
  const { version, metric } = chosen;
  const { baseScore: score, vectorString = '' } = metric.cvssData;
  const vector = vectorPattern.test(vectorString) ? { vector: vectorString } : {};
  return { version, score, rating: readRating(metric), ...vector };
}

function readRating({ cvssData, baseSeverity }: WireMetric): Severity['rating'] {
  const said = (cvssData.baseSeverity ?? baseSeverity ?? '').toLowerCase();
  const score = cvssData.baseScore;
  const byScore = score === 0 ? 0 : score < 4 ? 1 : score < 7 ? 2 : score < 9 ? 3 : 4;
  return findingSeverities.find((rating) => rating === said) ?? findingSeverities[byScore]!;
}

function readConfiguration({ operator, negate, nodes }: WireConfiguration): Condition {
  return {
    operator: operator ?? 'OR',
    isNegated: negate ?? false,
    parts: nodes.map((node) => ({
      operator: node.operator,
      isNegated: node.negate ?? false,
      parts: node.cpeMatch.map(readMatch),
    })),
  };
}

function readMatch(match: WireMatch): Criterion {
  const { versionStartIncluding, versionStartExcluding, versionEndIncluding, versionEndExcluding } = match;
  return {
    cpe: match.criteria,
    isVulnerable: match.vulnerable,
    ...(versionStartIncluding === undefined ? {} : { startIncluding: versionStartIncluding }),
    ...(versionStartExcluding === undefined ? {} : { startExcluding: versionStartExcluding }),
    ...(versionEndIncluding === undefined ? {} : { endIncluding: versionEndIncluding }),
    ...(versionEndExcluding === undefined ? {} : { endExcluding: versionEndExcluding }),
  };
}

// The answers of the NVD's CVE API 2.0 and its yearly feed files, as far as they are read. Fields that are not named here are
// ignored. One record that does not fit is set aside alone.

const Text = (maxLength: number) => Type.String({ minLength: 1, maxLength });

const WireMatch = Type.Object({
  vulnerable: Type.Boolean(),
  criteria: Text(1024),
  versionStartIncluding: Type.Optional(Text(128)),
  versionStartExcluding: Type.Optional(Text(128)),
  versionEndIncluding: Type.Optional(Text(128)),
  versionEndExcluding: Type.Optional(Text(128)),
});
type WireMatch = Static<typeof WireMatch>;

const Operator = Type.Enum(['AND', 'OR']);

const WireNode = Type.Object({
  operator: Operator,
  negate: Type.Optional(Type.Boolean()),
  // A node without criteria says nothing, and a nested one is of the old format 1.0.
  cpeMatch: Type.Array(WireMatch, { minItems: 1, maxItems: 20_000 }),
});

const WireConfiguration = Type.Object({
  operator: Type.Optional(Operator),
  negate: Type.Optional(Type.Boolean()),
  nodes: Type.Array(WireNode, { minItems: 1, maxItems: 1_000 }),
});
type WireConfiguration = Static<typeof WireConfiguration>;

const WireMetric = Type.Object({
  type: Type.Optional(Type.String({ maxLength: 32 })),
  baseSeverity: Type.Optional(Type.String({ maxLength: 16 })),
  cvssData: Type.Object({
    baseScore: Type.Number({ minimum: 0, maximum: 10 }),
    baseSeverity: Type.Optional(Type.String({ maxLength: 16 })),
    vectorString: Type.Optional(Type.String()),
  }),
});
type WireMetric = Static<typeof WireMetric>;

const Metrics = Type.Optional(Type.Array(WireMetric, { maxItems: 100 }));

const WireRecord = Type.Object({
  cve: Type.Object({
    id: Type.String({ pattern: '^CVE-[0-9]{4}-[0-9]{4,19}$' }),
    published: Text(40),
    lastModified: Text(40),
    vulnStatus: Type.Optional(Text(40)),
    cveTags: Type.Optional(
      Type.Array(Type.Object({ tags: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 100 }) }), {
        maxItems: 100,
      }),
    ),
    cisaExploitAdd: Type.Optional(Text(40)),
    descriptions: Type.Array(Type.Object({ lang: Type.String(), value: Type.String() }), { maxItems: 100 }),
    metrics: Type.Optional(
      Type.Object({
        cvssMetricV40: Metrics,
        cvssMetricV31: Metrics,
        cvssMetricV30: Metrics,
        cvssMetricV2: Metrics,
      }),
    ),
    configurations: Type.Optional(Type.Array(WireConfiguration, { maxItems: 1_000 })),
  }),
});
type WireRecord = Static<typeof WireRecord>;

const checkRecord = Compile(WireRecord);
