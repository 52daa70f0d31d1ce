/** Statements for the test of the check: the first is right, each of the others has a wrong row type. */
import { CompiledQuery, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

interface Person {
  id: number;
  name: string;
  staffRole: 'operator' | 'support' | null;
}

export async function right(db: Queryable, ids: readonly number[]): Promise<Person[]> {
  const { rows } = await sql<Person>`
    select id, name, staff_role from people where id = any(${[...ids]}::bigint[])`.execute(db);
  return rows;
}

export async function wrong(db: Queryable, id: number): Promise<void> {
  await sql<{ id: string }>`select id from people where id = ${id}`.execute(db);
  await sql<{ createdAt: string }>`select created_at from people`.execute(db);
  await sql<{ sum: number }>`select sum(id) as sum from people`.execute(db);
  await sql<{ passwordHash: string }>`select password_hash from people`.execute(db);
  await sql<{ created_at: Date }>`select created_at from people`.execute(db);
  await sql<Person>`select surname from people`.execute(db);
  await sql<Pick<Person, 'id'> & { labels: Date }>`select id, labels from servers`.execute(db);
  await db.executeQuery<{ id: string }>(CompiledQuery.raw('select id from people', []));
}

export async function withOptional(db: Queryable): Promise<void> {
  await sql<{ id: number; name?: string }>`select id from people`.execute(db);
}

export async function unseen(db: Queryable, isAsked: boolean): Promise<void> {
  if (!isAsked) await sql<Person>`select id, name, staff_role from people`.execute(db);
}
