import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Operator } from './operator.ts';

export async function upsertOperator(
  db: Queryable,
  person: Omit<Operator, 'id'>,
  passwordHash: string,
): Promise<Operator> {
  const { rows } = await sql<Operator>`
    insert into operators (email, name, role, password_hash)
    values (${person.email}, ${person.name}, ${person.role}, ${passwordHash})
    on conflict (lower(email)) do update set
      name = excluded.name, role = excluded.role, password_hash = excluded.password_hash, disabled_at = null
    returning id, email, name, role`.execute(db);
  return rows[0]!;
}

export async function findByEmail(
  db: Queryable,
  email: string,
): Promise<{ operator: Operator; passwordHash: string } | null> {
  const { rows } = await sql<Operator & { passwordHash: string }>`
    select id, email, name, role, password_hash as "passwordHash"
    from operators where lower(email) = lower(${email}) and disabled_at is null`.execute(db);
  const row = rows[0];
  if (!row) return null;
  const { passwordHash, ...operator } = row;
  return { operator, passwordHash };
}

export async function findOperator(db: Queryable, id: number): Promise<Operator | null> {
  const { rows } = await sql<Operator>`
    select id, email, name, role from operators where id = ${id} and disabled_at is null`.execute(db);
  return rows[0] ?? null;
}
