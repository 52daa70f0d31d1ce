/**
 * The vulnerability feed (NET-2.6.5, NET-4.d): what the monitor's copy of a public database says of the services that scans
 * found at an address.
 *
 * A projection is all that is known of one allocation generation at the time of one check; the next one takes its place. It
 * names the scan and the evidence of each service, so that nothing of it is believed of another owner, scan or version.
 */
import { type Static, Type } from 'typebox';
import { findingSeverities, unableReasons } from '../findings.ts';
import { ScanId, ScanTransport, scanServicesMax } from '../port-scan/index.ts';
import { Count, Id, Nullable, Strict, Timestamp } from '../scalars.ts';
import type { FeedContract } from './contract.ts';

const strict = { additionalProperties: false } as const;
/** What a service says of itself is written by a stranger: bounded, in one line. */
const Answer = Nullable(Type.String({ minLength: 1, maxLength: 256 }));

export const projectionsMax = 50;
/** Findings of one service; `counts.truncated` says how many were left out. */
export const findingsMax = 500;
export const findingSummaryMax = 2_000;

/** A potential vulnerability. Severity, score and vector are null while the database has not rated it. */
export const ProjectedFinding = Strict({
  cve_id: Type.String({ pattern: '^CVE-[0-9]{4}-[0-9]{4,19}$' }),
  severity: Nullable(Type.Enum([...findingSeverities])),
  score: Nullable(Type.Number({ minimum: 0, maximum: 10 })),
  cvss_version: Nullable(Type.Enum(['2.0', '3.0', '3.1', '4.0'])),
  cvss_vector: Nullable(Type.String({ minLength: 1, maxLength: 512 })),
  summary: Type.String({ maxLength: findingSummaryMax }),
  published_at: Timestamp,
  modified_at: Timestamp,
  incomplete: Type.Union([Type.Enum(['platform', 'bounded']), Type.Null()], {
    description:
      '`platform`: what scans do not see, such as the operating system, decides; `bounded`: the record or the version is not exact enough.',
  }),
  disputed: Type.Boolean(),
  known_exploited: Type.Boolean(),
  package: Type.Optional(
    Type.Object(
      { fixed_in: Nullable(Type.String({ minLength: 1, maxLength: 256 })) },
      {
        ...strict,
        description:
          "Of a package that the security tracker of its distribution calls affected: the first version of the package with the fix, null where there is none yet. Absent: the record's versions decide.",
      },
    ),
  ),
});
export type ProjectedFinding = Static<typeof ProjectedFinding>;

/**
 * One open port with the evidence that was assessed. `fingerprint`: of product and version, as `fingerprintSoftware` makes it.
 * Receivers make it themselves, because earlier monitors send another one. Findings of a service that is `unable` are those of the original of a package; they are never
 * active ones.
 */
export const ProjectedService = Strict({
  transport: ScanTransport,
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  scan_id: ScanId,
  observed_at: Timestamp,
  fingerprint: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  product: Answer,
  version: Answer,
  assessment: Type.Enum(['assessed', 'unable']),
  reason: Nullable(Type.Enum([...unableReasons])),
  findings: Type.Array(ProjectedFinding, { maxItems: findingsMax }),
});
export type ProjectedService = Static<typeof ProjectedService>;

export const Projection = Strict({
  allocation_id: Id,
  address: Type.String({ minLength: 2, maxLength: 45 }),
  assigned_at: Timestamp,
  scan_id: ScanId,
  checked_at: Timestamp,
  database_at: Type.Union([Timestamp, Type.Null()], {
    description:
      'Age of the oldest records that were compared. Null: records of no product of these services are stored.',
  }),
  services: Type.Array(ProjectedService, { maxItems: scanServicesMax }),
  counts: Type.Object(
    { active: Count, ignored: Count, unable: Count, truncated: Count },
    {
      ...strict,
      description:
        'As the monitor counts: `ignored` by its own operators, independent of customers. `truncated`: findings that were left out.',
    },
  ),
});
export type Projection = Static<typeof Projection>;

export const VulnerabilitiesRequest = Strict({
  contract_version: Type.Literal(1),
  source_site_id: Id,
  cluster_ids: Type.Array(Id, { maxItems: 100 }),
  projections: Type.Array(Projection, { maxItems: projectionsMax }),
});
export type VulnerabilitiesRequest = Static<typeof VulnerabilitiesRequest>;

/**
 * `unchanged`: this check, or evidence that has expired; `superseded`: a newer check is held; `unmatched`: the address, the
 * assignment or a scan is not this server's, and nothing was stored.
 */
export const ProjectionOutcome = Type.Enum([
  'accepted',
  'unchanged',
  'superseded',
  'unmatched',
  'source_conflict',
]);
export type ProjectionOutcome = Static<typeof ProjectionOutcome>;

/** Acknowledgements in the order of the projections. */
export const ProjectionAcknowledgements = Type.Object({
  acknowledgements: Type.Array(
    Type.Object({ allocation_id: Id, scan_id: ScanId, outcome: ProjectionOutcome }),
  ),
});
export type ProjectionAcknowledgements = Static<typeof ProjectionAcknowledgements>;

export const vulnerabilitiesContract = {
  permission: 'protect_vulnerability_ingest',
  required: { protect_vulnerability_ingest: true, protect_vulnerability_contract_version: 1 },
  path: '/protect/vulnerabilities/',
  request: VulnerabilitiesRequest,
  answer: ProjectionAcknowledgements,
  bodyBytesMax: 8 * 1024 * 1024,
} as const satisfies FeedContract;
