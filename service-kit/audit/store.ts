import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { StoredActor, StoredEntry } from './entry.ts';

/** What is searched for; absent members match everything. */
export interface AuditFilter {
  /** Part of the actor's name, or exactly an id, a source address or a request id. */
  who?: string | undefined;
  /** The person whom `who` names; finds what their keys did as well. */
  whoPersonId?: number | undefined;
  /** `server`, `server 12`, an exact id, or part of the subject's name. */
  subject?: string | undefined;
  /** An operation such as `server.destroy`, or the first part of one, such as `server`. */
  operation?: string | undefined;
  fromMs?: number | undefined;
  toMs?: number | undefined;
  /**
   * Entries of these organizations and tenants alone, and what this person did that belongs to no organization, such as
   * signing in. With nothing in it nothing is found.
   */
  scope?:
    | { organizationIds: readonly number[]; tenantIds: readonly number[]; personId?: number | undefined }
    | undefined;
}

export async function insertEntry(
  trx: Queryable,
  actor: StoredActor,
  origin: { address: string; requestId: string } | null,
  entry: {
    operation: string;
    subjectKind: string;
    subjectId: string;
    subjectName: string | null;
    organizationId: number | null;
    tenantId: number | null;
    before: string | null;
    after: string | null;
  },
): Promise<void> {
  await sql`
    insert into audit_entries (operation, actor_kind, actor_id, actor_name, person_id, source_address, request_id,
      subject_kind, subject_id, subject_name, organization_id, tenant_id, before, after)
    values (${entry.operation}, ${actor.kind}, ${actor.id}, ${actor.name}, ${actor.personId},
      ${origin?.address ?? null}, ${origin?.requestId ?? null}, ${entry.subjectKind}, ${entry.subjectId},
      ${entry.subjectName}, ${entry.organizationId}, ${entry.tenantId}, ${entry.before}::jsonb,
      ${entry.after}::jsonb)`.execute(trx);
}

/** Entries before this id (all where null), newest first. */
export async function listEntries(
  db: Queryable,
  filter: AuditFilter,
  beforeId: number | null,
  limit: number,
): Promise<StoredEntry[]> {
  const { rows } = await sql<StoredEntry>`
    select id, (extract(epoch from occurred_at) * 1000)::float8 as occurred_at_ms, operation, actor_kind, actor_id,
      actor_name, person_id, source_address, request_id, subject_kind, subject_id, subject_name, organization_id,
      tenant_id, before, after
    from audit_entries
    where ${sql.join(conditions(filter, beforeId), sql` and `)}
    order by id desc limit ${limit}`.execute(db);
  return rows;
}

function conditions(filter: AuditFilter, beforeId: number | null): RawBuilder<unknown>[] {
  const all: RawBuilder<unknown>[] = [sql`true`];
  if (beforeId !== null) all.push(sql`id < ${beforeId}`);
  if (filter.scope) {
    const { organizationIds, tenantIds, personId = null } = filter.scope;
    all.push(sql`(organization_id = any(${organizationIds}) or tenant_id = any(${tenantIds})
      or (organization_id is null and tenant_id is null and person_id = ${personId}::bigint
        and actor_kind = 'person'))`);
  }
  if (filter.who) {
    const { who } = filter;
    all.push(sql`(actor_name ilike ${contains(who)} or actor_id = ${who} or person_id::text = ${who}
      or source_address = ${who} or request_id = ${who} or person_id = ${filter.whoPersonId ?? null}::bigint)`);
    // Customers see what operators did, and not which of them: nor may a search tell.
    if (filter.scope) all.push(sql`actor_kind <> 'staff'`);
  }
  if (filter.subject) {
    const { subject } = filter;
    all.push(sql`(subject_name ilike ${contains(subject)} or subject_id = ${subject} or subject_kind = ${subject}
      or subject_kind || ' ' || subject_id = ${subject})`);
  }
  if (filter.operation)
    all.push(sql`(operation = ${filter.operation} or operation like ${`${escapeLike(filter.operation)}.%`})`);
  if (filter.fromMs !== undefined)
    all.push(sql`occurred_at >= to_timestamp(${filter.fromMs / 1000}::float8)`);
  if (filter.toMs !== undefined) all.push(sql`occurred_at < to_timestamp(${filter.toMs / 1000}::float8)`);
  return all;
}

const escapeLike = (text: string) => text.replace(/[\\%_]/g, '\\$&');
const contains = (text: string) => `%${escapeLike(text)}%`;

/** Deletes up to `limit` entries that are older than a year, as the owner of the table; the program's role may not. */
export async function deleteExpired(db: Queryable, limit: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`select audit_entries_expire(${limit}) as count`.execute(db);
  return rows[0]!.count;
}
