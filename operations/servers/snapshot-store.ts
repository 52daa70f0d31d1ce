/** Every statement on snapshots that changes them, or looks at what is no customer's. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface NewSnapshot {
  id: number;
  serverId: number;
  actionId: number;
  imageId: number;
  name: string;
  diskGb: number;
}

/** A fresh id, drawn before the row exists, because its action names it. */
export async function nextSnapshotId(tx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('server_snapshots', 'id')) as id`.execute(tx);
  return rows[0]!.id;
}

export async function insertSnapshot(tx: Queryable, given: NewSnapshot): Promise<void> {
  await sql`insert into server_snapshots (id, server_id, action_id, image_id, name, state, disk_gb)
    overriding system value
    values (${given.id}, ${given.serverId}, ${given.actionId}, ${given.imageId}, ${given.name}, 'creating', ${given.diskGb})`.execute(
    tx,
  );
}

export async function findByAction(tx: Queryable, actionId: number): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select id from server_snapshots where action_id = ${actionId}`.execute(tx);
  return rows[0]!.id;
}

export async function setState(tx: Queryable, id: number, state: 'ready' | 'deleting'): Promise<void> {
  await sql`update server_snapshots set state = ${state} where id = ${id}`.execute(tx);
}

/** Notes that the copy is complete, and what it takes. */
export async function noteCopied(db: Queryable, id: number, bytes: number): Promise<void> {
  await sql`update server_snapshots set size_bytes = ${bytes} where id = ${id}`.execute(db);
}

export async function isCopied(db: Queryable, id: number): Promise<boolean> {
  const { rows } =
    await sql`select 1 from server_snapshots where id = ${id} and size_bytes is not null`.execute(db);
  return rows.length > 0;
}

export async function isKnown(db: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql`select 1 from server_snapshots where id = ${id}`.execute(db);
  return rows.length > 0;
}

/** Copies that are no snapshots any more. */
export async function listDiscarded(db: Queryable, serverId: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select id from server_snapshots where server_id = ${serverId} and state = 'deleting' order by id`.execute(
    db,
  );
  return rows.map(({ id }) => id);
}

export async function deleteSnapshot(db: Queryable, id: number): Promise<void> {
  await sql`delete from server_snapshots where id = ${id} and state = 'deleting'`.execute(db);
}

export async function deleteAll(tx: Queryable, serverId: number): Promise<void> {
  await sql`delete from server_snapshots where server_id = ${serverId}`.execute(tx);
}
