/** Every statement on admin projects, their tokens, and failed authentications. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AdminProject, AdminToken } from './project.ts';

const projectColumns = sql`
  admin_projects.id, admin_projects.name, admin_projects.permissions, admin_projects.cluster_ids,
  admin_projects.created_at`;

export async function insertProject(
  db: Queryable,
  project: { name: string; permissions: string[]; clusterIds: number[] | null },
): Promise<AdminProject> {
  const { rows } = await sql<AdminProject>`
    insert into admin_projects (name, permissions, cluster_ids)
    values (${project.name}, ${project.permissions}, ${project.clusterIds}::bigint[])
    returning ${projectColumns}`.execute(db);
  return toProject(rows[0]!);
}

export async function updateProject(
  db: Queryable,
  projectId: number,
  project: { name: string; permissions: string[]; clusterIds: number[] | null },
): Promise<boolean> {
  const result = await sql`
    update admin_projects
    set name = ${project.name}, permissions = ${project.permissions},
        cluster_ids = ${project.clusterIds}::bigint[]
    where id = ${projectId}`.execute(db);
  return result.numAffectedRows === 1n;
}

export async function listProjects(db: Queryable): Promise<AdminProject[]> {
  const { rows } = await sql<AdminProject>`
    select ${projectColumns} from admin_projects order by id`.execute(db);
  return rows.map(toProject);
}

export async function findProject(db: Queryable, projectId: number): Promise<AdminProject | null> {
  const { rows } = await sql<AdminProject>`
    select ${projectColumns} from admin_projects where id = ${projectId}`.execute(db);
  return rows[0] ? toProject(rows[0]) : null;
}

export async function insertToken(
  db: Queryable,
  token: { id: string; projectId: number; digest: Buffer; createdBy: number | null; expiresAt: Date | null },
): Promise<void> {
  await sql`insert into admin_tokens (id, project_id, digest, created_by, expires_at)
    values (${token.id}, ${token.projectId}, ${token.digest}, ${token.createdBy}, ${token.expiresAt})`.execute(
    db,
  );
}

export async function listTokens(db: Queryable, projectId: number): Promise<AdminToken[]> {
  const { rows } = await sql<AdminToken>`
    select id, project_id, created_at, expires_at, revoked_at, last_used_at,
           revoked_at is null and (expires_at is null or expires_at > svc_now()) as is_active
    from admin_tokens where project_id = ${projectId} order by created_at desc, id`.execute(db);
  return rows;
}

/** The first revocation's time stands. False when the project has no such token. */
export async function revokeToken(db: Queryable, projectId: number, tokenId: string): Promise<boolean> {
  const result = await sql`
    update admin_tokens set revoked_at = coalesce(revoked_at, svc_now())
    where id = ${tokenId} and project_id = ${projectId}`.execute(db);
  return result.numAffectedRows === 1n;
}

export interface FoundToken {
  digest: Buffer;
  isActive: boolean;
  isStaleNote: boolean;
  project: AdminProject;
}

/** One look-up by id answers token and project, so nothing about either is ever cached. */
export async function findToken(db: Queryable, tokenId: string): Promise<FoundToken | null> {
  const { rows } = await sql<Omit<FoundToken, 'project'> & AdminProject>`
    select admin_tokens.digest,
           admin_tokens.revoked_at is null
             and (admin_tokens.expires_at is null or admin_tokens.expires_at > svc_now()) as is_active,
           coalesce(admin_tokens.last_used_at < svc_now() - interval '1 minute', true) as is_stale_note,
           ${projectColumns}
    from admin_tokens join admin_projects on admin_projects.id = admin_tokens.project_id
    where admin_tokens.id = ${tokenId}`.execute(db);
  const row = rows[0];
  if (!row) return null;
  const { digest, isActive, isStaleNote, ...project } = row;
  return { digest, isActive, isStaleNote, project: toProject(project) };
}

export async function noteTokenUse(db: Queryable, tokenId: string): Promise<void> {
  await sql`update admin_tokens set last_used_at = svc_now() where id = ${tokenId}`.execute(db);
}

/** Notes one failure, and says how many this source had in the last five minutes and when the oldest minute ends. */
export async function addFailure(
  db: Queryable,
  bucket: string,
): Promise<{ failures: number; retryAfterSeconds: number }> {
  await sql`delete from admin_auth_failures where window_start < svc_now() - interval '1 hour'`.execute(db);
  await sql`insert into admin_auth_failures as kept (bucket, window_start, failures)
    values (${bucket}, date_trunc('minute', svc_now()), 1)
    on conflict (bucket, window_start) do update set failures = kept.failures + 1`.execute(db);
  const { rows } = await sql<{ failures: number; retryAfterSeconds: number }>`
    select coalesce(sum(failures), 0)::int as failures,
           greatest(1, ceil(extract(epoch from min(window_start) + interval '5 minutes' - svc_now())))::int
             as retry_after_seconds
    from admin_auth_failures
    where bucket = ${bucket} and window_start > svc_now() - interval '5 minutes'`.execute(db);
  return rows[0]!;
}

// Elements of a bigint array arrive as text: the parser of single values does not see them.
function toProject(row: AdminProject): AdminProject {
  return {
    ...row,
    clusterIds: row.clusterIds === null ? null : row.clusterIds.map(Number),
  };
}
