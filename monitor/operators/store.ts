import { sql } from 'kysely';
import { endAccessLinks } from '#service-kit/access-links/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { endSteps } from '#service-kit/second-factors/index.ts';
import { endSessions } from '#service-kit/sessions/index.ts';
import type { Operator } from './operator.ts';

/** Adds a person, or gives the one with this email a new password, which ends sessions and links. */
export async function upsertOperator(
  tx: Queryable,
  person: Omit<Operator, 'id'>,
  passwordHash: string,
): Promise<Operator> {
  const { rows } = await sql<Operator>`
    insert into operators (email, name, role, password_hash)
    values (${person.email}, ${person.name}, ${person.role}, ${passwordHash})
    on conflict (lower(email)) do update set
      name = excluded.name, role = excluded.role, password_hash = excluded.password_hash, disabled_at = null
    returning id, email, name, role`.execute(tx);
  const operator = rows[0]!;
  await endAccessLinks(tx, operator.id);
  await endSteps(tx, operator.id);
  await endSessions(tx, operator.id);
  return operator;
}

/**
 * `email` was folded by `foldEmail`. The database must not fold it again, or one person would have two counts of
 * failures.
 */
export async function findByEmail(
  db: Queryable,
  email: string,
): Promise<{ operator: Operator; passwordHash: string | null } | null> {
  // PostgreSQL refuses text with a zero byte, and no stored address has one.
  if (email.includes('\0')) return null;
  const { rows } = await sql<Operator & { passwordHash: string | null }>`
    select id, email, name, role, password_hash
    from operators where lower(email) = ${email} and disabled_at is null`.execute(db);
  const row = rows[0];
  if (!row) return null;
  const { passwordHash, ...operator } = row;
  return { operator, passwordHash };
}

/** Also of people whose access has ended. `email` was folded by `foldEmail`. */
export async function isEmailTaken(db: Queryable, email: string): Promise<boolean> {
  const { rows } = await sql`select 1 from operators where lower(email) = ${email}`.execute(db);
  return rows.length > 0;
}

export async function findOperator(db: Queryable, id: number): Promise<Operator | null> {
  const { rows } = await sql<Operator>`
    select id, email, name, role from operators where id = ${id} and disabled_at is null`.execute(db);
  return rows[0] ?? null;
}

/** A person without a password; null when the email is taken. */
export async function insertOperator(db: Queryable, person: Omit<Operator, 'id'>): Promise<Operator | null> {
  const { rows } = await sql<Operator>`
    insert into operators (email, name, role) values (${person.email}, ${person.name}, ${person.role})
    on conflict (lower(email)) do nothing returning id, email, name, role`.execute(db);
  return rows[0] ?? null;
}

export async function findPasswordHash(db: Queryable, id: number): Promise<string | null> {
  const { rows } = await sql<{ passwordHash: string | null }>`
    select password_hash from operators where id = ${id}
      and disabled_at is null`.execute(db);
  return rows[0]?.passwordHash ?? null;
}

/** Sets a password. Links that would set another, and sign-ins that were begun with the former one, end. */
export async function updatePassword(
  tx: Queryable,
  id: number,
  passwordHash: string,
): Promise<Operator | null> {
  const { rows } = await sql<Operator>`
    update operators set password_hash = ${passwordHash} where id = ${id}
    returning id, email, name, role`.execute(tx);
  await endAccessLinks(tx, id);
  await endSteps(tx, id);
  return rows[0] ?? null;
}

/** A person of the list, including those whose access has ended. */
export interface ListedOperator extends Operator {
  createdAtMs: number;
  disabledAtMs: number | null;
}

/** Enabled ones first, by name. */
export async function listOperators(db: Queryable): Promise<ListedOperator[]> {
  const { rows } = await sql<ListedOperator>`
    select id, email, name, role, (extract(epoch from created_at) * 1000)::float8 as created_at_ms,
      (extract(epoch from disabled_at) * 1000)::float8 as disabled_at_ms
    from operators order by disabled_at is not null, lower(name), id`.execute(db);
  return rows;
}

/**
 * Changes role or access; `last` when no enabled operator would remain. The enabled operators are locked in order, so
 * that two who end each other's access can not both succeed.
 */
export async function updateOperator(
  tx: Queryable,
  id: number,
  change: { role?: Operator['role']; isDisabled?: boolean },
): Promise<Operator | 'last' | null> {
  const { role = null, isDisabled = null } = change;
  const able = await sql<{ id: number }>`
    select id from operators where role = 'operator' and disabled_at is null
    order by id for update`.execute(tx);
  const staysAble = role !== 'viewer' && isDisabled !== true;
  if (!staysAble && able.rows.every((row) => row.id === id)) return 'last';
  const { rows } = await sql<Operator>`
    update operators set role = coalesce(${role}, role),
      disabled_at = case ${isDisabled}::boolean when true then coalesce(disabled_at, svc_now()) when false then null else disabled_at end
    where id = ${id} returning id, email, name, role`.execute(tx);
  return rows[0] ?? null;
}
