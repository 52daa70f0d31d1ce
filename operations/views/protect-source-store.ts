/** Sources of observed traffic with the addresses that they own. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A source and what it owns, for operators. */
export interface SourceRow {
  siteId: number;
  generations: number;
  seenAt: Date;
  takenOverAt: Date | null;
}

/** Sites of a project that own generations whose address is still assigned. */
export async function listSources(db: Queryable, projectId: number): Promise<SourceRow[]> {
  const { rows } = await sql<SourceRow>`
    select source_site_id as site_id, count(*)::int as generations, max(source_seen_at) as seen_at,
      max(taken_over_at) as taken_over_at
    from protect_series s join allocations a on a.id = s.allocation_id
    where source_project_id = ${projectId} and a.released_at is null
    group by 1 order by 1`.execute(db);
  return rows;
}

/** A source of a project that is refused, and who owns what it delivers. */
export interface ConflictRow {
  siteId: number;
  /** Null: from before projects were kept. */
  ownerProjectId: number | null;
  ownerProjectName: string | null;
  ownerSiteId: number;
  generations: number;
  ownerSeenAt: Date;
  refusedAt: Date;
}

/** Refusals of the last day. */
export async function listConflicts(db: Queryable, projectId: number): Promise<ConflictRow[]> {
  const { rows } = await sql<ConflictRow>`
    select waiting_site_id as site_id, source_project_id as owner_project_id, p.name as owner_project_name,
      source_site_id as owner_site_id, count(*)::int as generations, max(source_seen_at) as owner_seen_at,
      max(waiting_at) as refused_at
    from protect_series s join allocations a on a.id = s.allocation_id
    left join admin_projects p on p.id = s.source_project_id
    where waiting_project_id = ${projectId} and a.released_at is null and waiting_at > svc_now() - interval '1 day'
    group by 1, 2, 3, 4 order by 1, 2, 4`.execute(db);
  return rows;
}

/** A minute that was set aside, for operators. */
export interface SetAsideRow {
  address: string;
  minute: Date;
  siteId: number;
  reason: string;
}

/** The newest minutes of a project that were set aside. */
export async function listSetAside(db: Queryable, projectId: number, limit: number): Promise<SetAsideRow[]> {
  const { rows } = await sql<SetAsideRow>`
    select host(a.address) as address, minute, source_site_id as site_id, reason
    from protect_set_aside s join allocations a on a.id = s.allocation_id
    where project_id = ${projectId} order by s.received_at desc, minute desc limit ${limit}`.execute(db);
  return rows;
}
