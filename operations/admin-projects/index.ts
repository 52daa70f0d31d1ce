/**
 * Admin projects: machines that may use the admin API, each with per-feature permissions and a scope of clusters.
 *
 * A token is shown in the answer that creates it and never again; several may be valid at once, and revoking one works
 * from the next call on. A changed permission works at once as well: a missing one needs the project edited, not a new
 * token (NET-5.1).
 */
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, requireOperator, requireStaff } from '#operations/accounts/index.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { mintCredential, parseCredential, secretMatches } from '#service-kit/credentials/index.ts';
import { sourceBucket } from '#service-kit/http/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import { type AdminProject, type AdminToken, invalid, parsePermissions } from './project.ts';
import * as store from './store.ts';

export type { AdminProject, AdminToken } from './project.ts';

export interface ProjectInput {
  name: string;
  permissions: readonly string[];
  /** null: all clusters. */
  clusterIds: readonly number[] | null;
}

export interface IssuedToken {
  /** The whole token, only here. */
  token: string;
  id: string;
}

export type AdminProjects = ReturnType<typeof createAdminProjects>;

export function createAdminProjects(deps: {
  db: () => Queryable;
  /** What a project may be granted, in the order in which it is kept and shown. */
  permissions: readonly string[];
  /** Failed authentications per source and five minutes before a 429; a valid token never meets it. */
  authFailuresMax?: number;
}) {
  const db = deps.db;
  const failuresMax = deps.authFailuresMax ?? 60;
  return {
    /** Throws `admin_projects.name_taken`, `admin_projects.invalid`. Operators only, as everything that changes. */
    async create(actor: Actor, input: ProjectInput): Promise<AdminProject> {
      requireOperator(actor);
      return named(() =>
        inTransaction(db(), async (trx) => {
          const project = await store.insertProject(trx, parseProject(input, deps.permissions));
          const { name, permissions, clusterIds } = project;
          await record(trx, actor, {
            operation: 'project.create',
            subject: subjectOf(project),
            after: { name, permissions, clusterIds },
          });
          return project;
        }),
      );
    },
    async update(actor: Actor, projectId: number, input: ProjectInput) {
      requireOperator(actor);
      await named(() =>
        inTransaction(db(), async (trx) => {
          const before = await store.findProject(trx, projectId);
          const after = parseProject(input, deps.permissions);
          if (!before || !(await store.updateProject(trx, projectId, after)))
            throw invalid('There is no such project.');
          const { name, permissions, clusterIds } = before;
          await record(trx, actor, {
            operation: 'project.update',
            subject: subjectOf(before),
            ...changedMembers({ name, permissions, clusterIds }, after),
          });
        }),
      );
    },
    async list(actor: Actor): Promise<AdminProject[]> {
      requireStaff(actor);
      return store.listProjects(db());
    },
    async find(actor: Actor, projectId: number): Promise<AdminProject | null> {
      requireStaff(actor);
      return store.findProject(db(), projectId);
    },
    async issueToken(actor: Actor, projectId: number, expiresAt: Date | null): Promise<IssuedToken> {
      requireOperator(actor);
      const { id, token, digest } = mintCredential('svcadm');
      const createdBy = actor.kind === 'staff' ? actor.personId : null;
      await inTransaction(db(), async (trx) => {
        const project = await store.findProject(trx, projectId);
        if (!project) throw invalid('There is no such project.');
        await store.insertToken(trx, { id, projectId, digest, createdBy, expiresAt });
        await record(trx, actor, {
          operation: 'project.issue_token',
          subject: subjectOf(project),
          after: { tokenId: id, expiresAt },
        });
      });
      return { id, token };
    },
    async listTokens(actor: Actor, projectId: number): Promise<AdminToken[]> {
      requireStaff(actor);
      return store.listTokens(db(), projectId);
    },
    /** False when the project has no such token. */
    async revokeToken(actor: Actor, projectId: number, tokenId: string): Promise<boolean> {
      requireOperator(actor);
      return inTransaction(db(), async (trx) => {
        if (!(await store.revokeToken(trx, projectId, tokenId))) return false;
        await record(trx, actor, {
          operation: 'project.revoke_token',
          subject: { kind: 'project', id: projectId },
          before: { tokenId },
        });
        return true;
      });
    },
    verify: (input: VerifyTokenInput) => verifyToken(db(), input, failuresMax),
  };
}

const subjectOf = ({ id, name }: AdminProject) => ({ kind: 'project', id, name });

function parseProject(
  input: ProjectInput,
  known: readonly string[],
): { name: string; permissions: string[]; clusterIds: number[] | null } {
  const name = oneLine(input.name);
  if (name.length === 0 || name.length > 120)
    throw invalid('The name of a project must have 1 to 120 characters.');
  const clusterIds = input.clusterIds === null ? null : [...new Set(input.clusterIds)];
  if (clusterIds?.some((id) => !Number.isSafeInteger(id) || id < 1)) {
    throw invalid('Clusters are given by their ids, which are whole numbers from 1.');
  }
  return { name, permissions: parsePermissions(input.permissions, known), clusterIds };
}

async function named<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (isUniqueViolation(error)) {
      throw new CodedError(
        'admin_projects.name_taken',
        'Another project has this name. Choose a different one.',
      );
    }
    throw error;
  }
}

export type TokenVerdict =
  | { outcome: 'valid'; project: AdminProject }
  | { outcome: 'refused' }
  | { outcome: 'throttled'; retryAfterSeconds: number };

interface VerifyTokenInput {
  /** What `Authorization: Bearer` carried; null when it was absent or malformed. */
  token: string | null;
  /** True when the request carried any `Authorization`: one without it is refused but is no failed attempt. */
  isAttempt: boolean;
  sourceAddress: string;
}

/**
 * Decides which project a caller of the admin API is.
 *
 * A valid token is never refused, however many failures its source address had (NET-5.2): only a failed check looks at
 * the limit. A wrong secret, an unknown id, a revoked and an expired token give the same answer in the same time.
 */
async function verifyToken(
  db: Queryable,
  input: VerifyTokenInput,
  failuresMax: number,
): Promise<TokenVerdict> {
  const presented = input.token === null ? null : parseCredential('svcadm', input.token);
  if (presented) {
    const found = await store.findToken(db, presented.id);
    const isRight = secretMatches(found?.digest ?? null, presented.secret);
    if (found && isRight && found.isActive) {
      if (found.isStaleNote) await store.noteTokenUse(db, presented.id);
      return { outcome: 'valid', project: found.project };
    }
  }
  if (!input.isAttempt) return { outcome: 'refused' };
  const { failures, retryAfterSeconds } = await store.addFailure(db, sourceBucket(input.sourceAddress));
  return failures > failuresMax ? { outcome: 'throttled', retryAfterSeconds } : { outcome: 'refused' };
}
