import type { FastifyRequest } from 'fastify';
import { canonicalAddress } from '#common/ip/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import { type CountedSeverity, findingSeverities } from '#contracts/findings.ts';
import type { Features } from '#operations/features.ts';
import type { FindingKey } from '#operations/protect/index.ts';
import type { FindingPlace, FindingRow, UnableRow } from '#operations/views/finding-store.ts';
import type { Handlers } from '../call.ts';
import { bodyReader, invalidCursor, pageOfFound, queryReader, readSelection } from '../request-parts.ts';
import { invalidFields } from '../validate-input.ts';
import { findProtected } from './incidents.routes.ts';

const readListQuery = queryReader(schemas.ListFindingsQuery);
const readIgnore = bodyReader(schemas.IgnoreFindingRequest);
const readEndQuery = queryReader(schemas.EndIgnoreQuery);
const limitDefault = 50;
/** Of one finding; servers have far fewer. */
const addressesMax = 1_000;
const severityFilters: readonly string[] = [...findingSeverities, 'unrated'];
const cursorPattern =
  /^findings:([01]):(-1|\d{1,2}(?:\.\d{1,9})?):(CVE-\d{4}-\d{4,19}):(\d{1,15}):(tcp|udp):(\d{1,5})$/;

/** Potential vulnerabilities of a server, and what is ignored; a 404 while its protection views are off (NET-1.6). */
export function findingHandlers(deps: Features) {
  const { protectFindings } = deps;
  return {
    async listServerFindings(call, request, reply) {
      const { actor } = call;
      const subject = await findProtected(deps, call, request);
      const { limit, after, ...filter } = readQuery(request);
      const [found, total, { summary, unable }] = await Promise.all([
        protectFindings.list(actor, subject, { ...filter, after, limit: limit + 1 }),
        protectFindings.count(actor, subject, filter),
        protectFindings.read(actor, subject),
      ]);
      const { page, pagination } = pageOfFound(request, reply, found, {
        limit,
        total,
        cursorOf: writeCursor,
      });
      return {
        findings: page.map(showFinding),
        unable: unable.map(showUnable),
        counts: {
          active: summary.active,
          ignored: summary.ignored,
          unable: summary.unable,
          truncated: summary.truncated,
        },
        checked_at: summary.checkedAt?.toISOString() ?? null,
        database_at: summary.databaseAt?.toISOString() ?? null,
        pagination,
      };
    },

    async ignoreServerFinding(call, request, reply) {
      const subject = await findProtected(deps, call, request);
      const { reason, until, ...named } = readIgnore(call, request);
      const key = keyOf(named);
      const { isNew } = await protectFindings.ignore(call.actor, subject.serverId, {
        ...{ ...key, reason, until: until === undefined || until === null ? null : new Date(until) },
      });
      reply.code(isNew ? 201 : 200);
      const findings = await protectFindings.list(call.actor, subject, { ...key, limit: addressesMax });
      return { findings: findings.map(showFinding) };
    },

    async endFindingIgnore(call, request, reply) {
      const subject = await findProtected(deps, call, request);
      const query = readEndQuery(request);
      readSelection(call, request);
      await protectFindings.endIgnore(call.actor, subject.serverId, keyOf(query));
      return reply.code(204).send();
    },
  } satisfies Handlers;
}

/** The 422 for a finding that the server does not have now. */
export const noFinding = () =>
  invalidFields([
    {
      ...{ path: 'cve_id', code: 'unknown_value' },
      message:
        'The server has no such finding now: address, transport, port, fingerprint and CVE must be those of one.',
    },
  ]);

function keyOf(named: schemas.EndIgnoreQuery): FindingKey {
  const { address, transport, port, fingerprint, cve_id: cveId } = named;
  // As it is stored; what is no address names none.
  const stored = address === undefined ? null : (canonicalAddress(address) ?? address);
  return { address: stored, transport, port, fingerprint, cveId };
}

function readQuery(request: FastifyRequest) {
  const given = request.query as { severity?: unknown };
  // Before the schema, because this says what would be right.
  if (typeof given.severity === 'string') severitiesOf(given.severity);
  const { state, severity, limit = limitDefault, cursor } = readListQuery(request);
  return {
    limit,
    state,
    severities: severity === undefined ? undefined : severitiesOf(severity),
    after: cursor === undefined ? undefined : readCursor(cursor),
  };
}

function severitiesOf(text: string): CountedSeverity[] {
  const named = text.split(',').map((one) => one.trim());
  const isSeverity = (one: string): one is CountedSeverity => severityFilters.includes(one);
  if (named.every(isSeverity)) return named;
  throw invalidFields([
    {
      ...{ path: 'severity', code: 'unknown_value', message: 'There is no such severity.' },
      allowed: [...severityFilters],
    },
  ]);
}

/** Opaque to callers: where the page ended. */
function writeCursor({ isKnownExploited, score, cveId, allocationId, transport, port }: FindingRow): string {
  const place = [Number(isKnownExploited), score ?? -1, cveId, allocationId, transport, port];
  return Buffer.from(`findings:${place.join(':')}`).toString('base64url');
}

function readCursor(cursor: string): FindingPlace {
  const [, exploited, score, cveId, allocationId, transport, port] =
    cursorPattern.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (cveId === undefined || transport === undefined) throw invalidCursor();
  return {
    isKnownExploited: exploited === '1',
    score: Number(score),
    cveId,
    allocationId: Number(allocationId),
    transport,
    port: Number(port),
  };
}

function showFinding(finding: FindingRow): schemas.Finding {
  const { state, ignoreReason, ignoredAt } = finding;
  return {
    ...serviceOf(finding),
    cve_id: finding.cveId,
    state,
    severity: finding.severity,
    score: finding.score,
    cvss_version: finding.cvssVersion,
    cvss_vector: finding.cvssVector,
    summary: finding.summary,
    published_at: finding.publishedAt.toISOString(),
    modified_at: finding.modifiedAt.toISOString(),
    incomplete: finding.incomplete,
    disputed: finding.isDisputed,
    known_exploited: finding.isKnownExploited,
    package: finding.package,
    first_found_at: finding.firstFoundAt?.toISOString() ?? null,
    checked_at: finding.checkedAt.toISOString(),
    ignore:
      ignoreReason === null || ignoredAt === null
        ? null
        : {
            reason: ignoreReason,
            created_at: ignoredAt.toISOString(),
            until: finding.ignoredUntil?.toISOString() ?? null,
            created_by: finding.ignoredBy,
            by_key: finding.isIgnoredByKey === true,
          },
  };
}

function showUnable(row: UnableRow): schemas.UnableService {
  return {
    ...serviceOf(row),
    reason: row.reason as schemas.UnableService['reason'],
    upstream_count: row.upstreamCount,
  };
}

const serviceOf = (row: FindingRow | UnableRow) => ({
  address: row.address,
  transport: row.transport,
  port: row.port,
  product: row.product,
  version: row.version,
  fingerprint: row.fingerprint,
  scan_id: row.scanId,
  observed_at: row.observedAt.toISOString(),
});
