import type { FastifyRequest } from 'fastify';
import type { AdminProject, AdminProjects } from '#operations/admin-projects/index.ts';
import { hasAuthorization, readBearer } from '#service-kit/credentials/index.ts';
import { HttpError } from '#service-kit/http/index.ts';

/** A hook that puts the caller's project on the request, or refuses: every refusal is the same 401. */
export function authenticateProject(adminProjects: AdminProjects) {
  return async (request: FastifyRequest): Promise<void> => {
    const { rawHeaders } = request.raw;
    const verdict = await adminProjects.verify({
      token: readBearer(rawHeaders),
      isAttempt: hasAuthorization(rawHeaders),
      sourceAddress: request.ip,
    });
    if (verdict.outcome === 'valid') {
      request.adminProject = verdict.project;
      return;
    }
    if (verdict.outcome === 'throttled') {
      throw new HttpError(
        429,
        {
          code: 'rate_limited',
          reason: 'auth_rate',
          message: 'Too many failed authentications from this address. Try again later.',
          retryable: true,
        },
        { 'retry-after': String(verdict.retryAfterSeconds) },
      );
    }
    throw new HttpError(
      401,
      { code: 'unauthorized', message: 'The request carries no valid admin API token.' },
      { 'www-authenticate': 'Bearer' },
    );
  };
}

/** The request's project; throws a 403 that names the first permission when it has none of them. */
export function requireProject(
  request: FastifyRequest,
  ...oneOf: readonly [string, ...string[]]
): AdminProject {
  const project = request.adminProject!;
  if (oneOf.some((permission) => project.permissions.includes(permission))) return project;
  throw new HttpError(403, {
    code: 'permission_missing',
    reason: 'permission_missing',
    message: `The project lacks the permission ${oneOf[0]}. Edit the project; its token stays as it is.`,
    details: { permission: oneOf[0] },
  });
}

/** The clusters of a project as a query's part: absent means all. */
export function clusterScope(project: AdminProject): { clusterIds?: readonly number[] } {
  return project.clusterIds === null ? {} : { clusterIds: project.clusterIds };
}
