import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Holds every upload. */
export async function beginHold(db: Queryable, id: string, seconds: number): Promise<void> {
  await sql`insert into inbox_holds (id, through, expires_at)
    values (${id}::uuid, 0, svc_now() + make_interval(secs => ${seconds}))
    on conflict (is_only) do update set id = excluded.id, through = excluded.through, expires_at = excluded.expires_at`.execute(
    db,
  );
}

/** Lets pass what has a number by now; a number is given before its upload is stored. */
export async function openHold(db: Queryable, id: string): Promise<void> {
  await sql`update inbox_holds
    set through = coalesce(pg_sequence_last_value(pg_get_serial_sequence('inbox_uploads', 'id')::regclass), 0)
    where id = ${id}::uuid`.execute(db);
}

export async function renewHold(db: Queryable, id: string, seconds: number): Promise<boolean> {
  const { rows } = await sql`update inbox_holds set expires_at = svc_now() + make_interval(secs => ${seconds})
    where id = ${id}::uuid and expires_at > svc_now() returning 1`.execute(db);
  return rows.length === 1;
}

/** Whether the hold lasts; it stays so until the end of the transaction. */
export async function lockHold(trx: Queryable, id: string): Promise<boolean> {
  const { rows } =
    await sql`select 1 from inbox_holds where id = ${id}::uuid and expires_at > svc_now() for update`.execute(
      trx,
    );
  return rows.length === 1;
}

export async function countBefore(db: Queryable, id: string): Promise<number> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*)::int as waiting from inbox_uploads u join inbox_holds h on u.id <= h.through
    where h.id = ${id}::uuid and u.state = 'pending'`.execute(db);
  return rows[0]!.waiting;
}

export async function endHold(db: Queryable, id: string): Promise<void> {
  await sql`delete from inbox_holds where id = ${id}::uuid`.execute(db);
}
