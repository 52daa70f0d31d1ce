import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function replaceLinks(
  db: Queryable,
  personId: number,
  digest: Buffer,
  hours: number,
): Promise<void> {
  await sql`delete from access_links where person_id = ${personId} or expires_at < svc_now()`.execute(db);
  await sql`insert into access_links (digest, person_id, expires_at)
    values (${digest}, ${personId}, svc_now() + make_interval(hours => ${hours}))`.execute(db);
}

export async function findLink(db: Queryable, digest: Buffer): Promise<number | null> {
  const { rows } = await sql<{ personId: number }>`
    select person_id from access_links
    where digest = ${digest} and expires_at > svc_now()`.execute(db);
  return rows[0]?.personId ?? null;
}

export async function takeLink(tx: Queryable, digest: Buffer): Promise<number | null> {
  const { rows } = await sql<{ personId: number }>`
    delete from access_links where digest = ${digest} and expires_at > svc_now()
    returning person_id`.execute(tx);
  return rows[0]?.personId ?? null;
}

export async function deleteLinks(db: Queryable, personId: number): Promise<void> {
  await sql`delete from access_links where person_id = ${personId}`.execute(db);
}
