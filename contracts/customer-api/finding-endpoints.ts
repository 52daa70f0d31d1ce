import { bodyErrors, type Endpoint } from './endpoint.ts';
import {
  EndIgnoreQuery,
  FindingList,
  IgnoredFindings,
  IgnoreFindingRequest,
  ListFindingsQuery,
} from './finding-schemas.ts';
import { SelectionRequest } from './schema-kit.ts';

/** Potential vulnerabilities of servers, and what is ignored of them. */
export const findingEndpoints = [
  {
    id: 'listServerFindings',
    method: 'GET',
    path: '/servers/{id}/findings',
    versions: ['v2'],
    summary: 'List potential vulnerabilities of a server',
    description:
      'What the National Vulnerability Database (NVD) says of the versions that scans found at the public addresses of the server. A finding is potential: it does not say that the server can be exploited, nor that a patch is missing. Services whose version is unknown, and packages of distributions, are in `unable`. Evidence of more than seven days is not shown. This product uses the NVD API but is not endorsed or certified by the NVD. While the protection views of the server are off, the answer is a `404` (`protect_disabled`).',
    params: { id: 'server' },
    query: ListFindingsQuery,
    selectsTenant: true,
    responses: {
      200: { description: 'A page of findings.', schema: FindingList, headers: ['ETag', 'Link'] },
    },
    errors: ['invalid_cursor', 'invalid_fields', 'not_found', 'protect_disabled'],
  },
  {
    id: 'ignoreServerFinding',
    method: 'POST',
    isIdempotent: true,
    path: '/servers/{id}/findings/ignores',
    versions: ['v2'],
    summary: 'Ignore a potential vulnerability',
    description:
      'The finding is `ignored` at the address, or at all addresses of the server, and not counted as active. This holds for this address assignment, port, version (`fingerprint`) and CVE: when another version is found, or the address is assigned again, the finding is active. What is ignored already stays as it is (200). A finding that the server does not have now is a `422`.',
    params: { id: 'server' },
    body: IgnoreFindingRequest,
    selectsTenant: true,
    responses: {
      200: { description: 'The finding, which was ignored already.', schema: IgnoredFindings },
      201: { description: 'The finding, ignored.', schema: IgnoredFindings },
    },
    errors: ['not_found', 'protect_disabled', 'read_only_key', ...bodyErrors],
  },
  {
    id: 'endFindingIgnore',
    method: 'DELETE',
    path: '/servers/{id}/findings/ignores',
    versions: ['v2'],
    summary: 'End the ignoring of a potential vulnerability',
    description:
      'The finding is active again. Idempotent: for a finding that is not ignored, the answer is the same.',
    params: { id: 'server' },
    query: EndIgnoreQuery,
    body: SelectionRequest,
    isBodyOptional: true,
    selectsTenant: true,
    responses: { 204: { description: 'Not ignored.' } },
    errors: ['not_found', 'protect_disabled', 'read_only_key', ...bodyErrors],
  },
] as const satisfies readonly Endpoint[];
