/** Bodies about potential vulnerabilities. A finding is never a confirmed one. */
import { type Static, Type } from 'typebox';
import { type CountedSeverity, findingSeverities, unableReasons } from '#contracts/findings.ts';
import { transports } from '#contracts/ip-protocols.ts';
import { Nullable } from '../scalars.ts';
import { type EndpointDeclaration, page } from './endpoint.ts';
import {
  momentPattern,
  OneOf,
  Pagination,
  pageQuery,
  plainTextPattern,
  RequestBody,
  SelectionRequest,
  Titled,
} from './schema-kit.ts';

export const findingReasonMax = 500;

const time = (description: string, example: string) =>
  Type.String({ format: 'date-time', description, examples: [example] });
const text = (description: string, example: string) =>
  Nullable(Type.String({ description, examples: [example] }));
const count = (description: string, example: number) =>
  Type.Integer({ minimum: 0, description, examples: [example] });

const address = Type.String({ description: 'Address of the server.', examples: ['203.0.113.10'] });
const transport = OneOf(transports);
const port = Type.Integer({ minimum: 1, maximum: 65_535, examples: [22] });
const cveId = Type.String({ description: 'The record of the database.', examples: ['CVE-2024-6387'] });
const fingerprint = Type.String({
  description: 'Identifies the software and its version. It changes when another version is found.',
  examples: ['4df8f9251ce7582b636c01bf8cb94e035f58d0ed46d01ef3772a76dd17fee549'],
});
const service = {
  ...{ address, transport, port },
  product: text('As the scan found it.', 'OpenSSH'),
  version: text('As the scan found it.', '9.6p1'),
  fingerprint,
  scan_id: Type.String({ format: 'uuid', description: 'The scan that found this version.' }),
  observed_at: time('Observation of this version.', '2026-11-22T10:02:11.000Z'),
};

export const Finding = Titled('Finding', {
  ...service,
  cve_id: cveId,
  state: OneOf(['active', 'ignored'], '`ignored`: by your choice.'),
  severity: Nullable(
    OneOf(
      findingSeverities,
      'Rating of the database itself, else another of the record, by the newest version of CVSS. Null: not rated.',
    ),
  ),
  score: Nullable(Type.Number({ minimum: 0, maximum: 10, description: 'CVSS score.', examples: [8.1] })),
  cvss_version: text('Version of CVSS.', '3.1'),
  cvss_vector: text('CVSS vector.', 'CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:H/I:H/A:H'),
  summary: Type.String({ description: 'Text of the record.' }),
  published_at: time('Publication of the record.', '2024-07-01T13:15:00.000Z'),
  modified_at: time('Last change of the record.', '2025-09-30T13:52:00.000Z'),
  incomplete: Nullable(
    OneOf(
      ['platform', 'bounded'],
      'Null: the version alone decides. `platform`: something that scans do not see, such as the operating system, decides. `bounded`: record or version is not exact enough.',
    ),
  ),
  disputed: Type.Boolean({ description: 'True: the record is disputed.', examples: [false] }),
  known_exploited: Type.Boolean({
    description: 'True: in the catalog of known exploited vulnerabilities of CISA.',
    examples: [false],
  }),
  package: Nullable(
    Type.Object(
      {
        fixed_in: text('The first version of the package with the fix. Null: none yet.', '1:9.2p1-2+deb12u3'),
      },
      { description: 'The security tracker of the distribution calls this version of its package affected.' },
    ),
  ),
  first_found_at: Nullable(time('First check that found it for this version.', '2026-11-20T04:00:00.000Z')),
  checked_at: time('Newest check of the address.', '2026-11-22T11:00:00.000Z'),
  ignore: Nullable(
    Type.Object({
      reason: Type.String({ examples: ['Only reachable from our office'] }),
      created_at: time('Begin.', '2026-11-21T09:00:00.000Z'),
      until: Nullable(time('End. Null: until it is ended.', '2031-01-01T00:00:00.000Z')),
      created_by: text('The person. Null: deleted.', 'Casey Customer'),
      by_key: Type.Boolean({ description: 'True: through the API.', examples: [false] }),
    }),
  ),
});
export type Finding = Static<typeof Finding>;

export const UnableService = Titled('UnableService', {
  ...service,
  reason: OneOf(
    unableReasons,
    '`distribution_package`: a distribution keeps the version of a package and fixes it, so the version says nothing about faults. `likely_packaged`: another service of the server is such a package. `no_database`: no records of the product are stored yet.',
  ),
  upstream_count: count(
    'Potential vulnerabilities of the original of a package. They are no findings of this server.',
    0,
  ),
});
export type UnableService = Static<typeof UnableService>;

export const FindingList = Titled('FindingList', {
  findings: Type.Array(Finding, { description: 'Known exploited ones first, then by score.' }),
  unable: Type.Array(UnableService, { description: 'Services that can not be assessed. On every page.' }),
  counts: Type.Object(
    {
      active: count('Active findings of all pages.', 3),
      ignored: count('Ignored findings of all pages.', 1),
      unable: count('Services that can not be assessed.', 2),
      truncated: count('Findings that were left out, because a service has at most 500.', 0),
    },
    { description: 'Independent of the filter of this call.' },
  ),
  checked_at: Nullable(
    time(
      'Every address was checked at or after this time; null before the first check.',
      '2026-11-22T11:00:00.000Z',
    ),
  ),
  database_at: Nullable(
    time('The records are not older than this; null: unknown.', '2026-11-22T03:00:00.000Z'),
  ),
  pagination: Pagination,
});

const severities: readonly CountedSeverity[] = [...findingSeverities, 'unrated'];
const oneSeverity = `(${severities.join('|')})`;

export const ListFindingsQuery = Type.Object(
  {
    state: Type.Optional(OneOf(['active', 'ignored'], 'Default: both.')),
    severity: Type.Optional(
      Type.String({
        maxLength: 60,
        pattern: `^${oneSeverity}( ?, ?${oneSeverity})*$`,
        description: `One or more of ${severities.map((name) => `\`${name}\``).join(', ')}, separated by commas.`,
      }),
    ),
    ...pageQuery(50).properties,
  },
  { additionalProperties: false },
);
export type ListFindingsQuery = Static<typeof ListFindingsQuery>;

/** What names a finding of a server. */
const findingKey = {
  address: Type.Optional(
    Type.String({
      maxLength: 45,
      description: 'Absent: at every address of the server.',
      examples: ['203.0.113.10'],
    }),
  ),
  transport,
  port,
  fingerprint: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description: 'As in the finding.',
    examples: ['4df8f9251ce7582b636c01bf8cb94e035f58d0ed46d01ef3772a76dd17fee549'],
  }),
  cve_id: Type.String({
    pattern: '^CVE-[0-9]{4}-[0-9]{4,19}$',
    description: 'As in the finding.',
    examples: ['CVE-2024-6387'],
    'x-resource': 'catalog',
  }),
};

export const IgnoreFindingRequest = RequestBody('IgnoreFindingRequest', {
  ...findingKey,
  reason: Type.String({
    minLength: 1,
    maxLength: findingReasonMax,
    pattern: plainTextPattern,
    description: 'Shown beside the finding.',
    examples: ['Only reachable from our office'],
  }),
  until: Type.Optional(
    Type.Union([Type.String({ maxLength: 40, pattern: momentPattern }), Type.Null()], {
      description: 'End, within five years. Absent or null: until it is ended.',
      examples: ['2031-01-01T00:00:00Z'],
    }),
  ),
});
export type IgnoreFindingRequest = Static<typeof IgnoreFindingRequest>;

export const IgnoredFindings = Titled('IgnoredFindings', {
  findings: Type.Array(Finding, { description: 'The finding at each of these addresses.' }),
});

export const EndIgnoreQuery = Type.Object(findingKey, { additionalProperties: false });
export type EndIgnoreQuery = Static<typeof EndIgnoreQuery>;

/** Potential vulnerabilities of servers, and what is ignored of them. */
export const findingEndpoints = [
  {
    id: 'listServerFindings',
    call: 'GET /servers/{id}/findings',
    summary: 'List potential vulnerabilities of a server',
    description:
      'What the National Vulnerability Database (NVD) says of the versions that scans found at the public addresses of the server. A finding is potential: it does not say that the server can be exploited, nor that a patch is missing. Services whose version is unknown, and packages of distributions, are in `unable`. Evidence of more than seven days is not shown. This product uses the NVD API but is not endorsed or certified by the NVD. While the protection views of the server are off, the answer is a `404` (`protect_disabled`).',
    params: { id: 'server' },
    query: ListFindingsQuery,
    responses: page(FindingList, 'A page of findings.'),
    errors: ['protect_disabled'],
  },
  {
    id: 'ignoreServerFinding',
    call: 'POST /servers/{id}/findings/ignores',
    isIdempotent: true,
    summary: 'Ignore a potential vulnerability',
    description:
      'The finding is `ignored` at the address, or at all addresses of the server, and not counted as active. This holds for this address assignment, port, version (`fingerprint`) and CVE: when another version is found, or the address is assigned again, the finding is active. What is ignored already stays as it is (200). A finding that the server does not have now is a `422`.',
    params: { id: 'server' },
    body: IgnoreFindingRequest,
    responses: {
      200: { description: 'The finding, which was ignored already.', schema: IgnoredFindings },
      201: { description: 'The finding, ignored.', schema: IgnoredFindings },
    },
    errors: ['protect_disabled'],
  },
  {
    id: 'endFindingIgnore',
    call: 'DELETE /servers/{id}/findings/ignores',
    summary: 'End the ignoring of a potential vulnerability',
    description:
      'The finding is active again. Idempotent: for a finding that is not ignored, the answer is the same.',
    params: { id: 'server' },
    query: EndIgnoreQuery,
    body: SelectionRequest,
    responses: { 204: { description: 'Not ignored.' } },
    errors: ['protect_disabled'],
  },
] as const satisfies readonly EndpointDeclaration[];
