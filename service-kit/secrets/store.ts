import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface StoredKey {
  id: number;
  wrapped: string;
  wrappedBy: string;
  checkValue: Buffer;
}

export async function readKeys(db: Queryable): Promise<StoredKey[]> {
  const { rows } = await sql<StoredKey>`
    select id, wrapped, wrapped_by, check_value
    from data_keys order by id`.execute(db);
  return rows;
}

/** No key is added, deleted or wrapped anew beside this transaction; sealing goes on. */
export async function lockKeys(trx: Queryable): Promise<void> {
  await sql`lock table data_keys in share row exclusive mode`.execute(trx);
}

export async function nextKeyId(trx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('data_keys', 'id'))::int as id`.execute(trx);
  return rows[0]!.id;
}

export async function insertKey(trx: Queryable, key: StoredKey): Promise<void> {
  await sql`
    insert into data_keys (id, wrapped, wrapped_by, check_value) overriding system value
    values (${key.id}, ${key.wrapped}, ${key.wrappedBy}, ${key.checkValue})`.execute(trx);
}

/**
 * The key that seals from now on, held until the transaction ends: `deleteKeysBefore` waits for it, so a key is never
 * deleted while a row that it has just sealed is not yet to be seen. Null: the newest key was deleted while this waited for
 * it, or there is none.
 */
export async function holdNewestKey(trx: Queryable): Promise<number | null> {
  const { rows } = await sql<{ id: number }>`
    select id from data_keys order by id desc limit 1 for key share`.execute(trx);
  return rows[0]?.id ?? null;
}

/** Waits for the transactions that seal with an older key, and keeps others from choosing one. */
export async function holdKeysBefore(trx: Queryable, id: number): Promise<void> {
  await sql`select 1 from data_keys where id < ${id} order by id for update`.execute(trx);
}

export async function deleteKeysBefore(trx: Queryable, id: number): Promise<number> {
  const { rows } = await sql`delete from data_keys where id < ${id} returning 1`.execute(trx);
  return rows.length;
}

export async function rewrapKey(
  trx: Queryable,
  id: number,
  key: { wrapped: string; wrappedBy: string },
): Promise<void> {
  await sql`update data_keys set wrapped = ${key.wrapped}, wrapped_by = ${key.wrappedBy}
    where id = ${id}`.execute(trx);
}

/** Whether any row holds a sealed secret. */
export async function hasSealed(db: Queryable, column: SecretColumn): Promise<boolean> {
  const { table, sealed } = refs(column);
  const { rows } = await sql<{ found: boolean }>`
    select exists (select 1 from ${table} where ${sealed} is not null) as found`.execute(db);
  return rows[0]!.found;
}

/** Rows with a clear value, locked until the transaction ends. Rows that others hold are left out unless it `waits`. */
export async function lockClear(
  trx: Queryable,
  column: SecretColumn,
  limit: number,
  waits: boolean,
): Promise<{ row: number; secret: Buffer }[]> {
  const { table, key, clear } = refs(column);
  const { rows } = await sql<{ row: number; secret: Buffer }>`
    select ${key} as "row", ${clear} as secret from ${table} where ${clear} is not null
    order by ${key} limit ${limit} for update ${waits ? sql`` : sql`skip locked`}`.execute(trx);
  return rows;
}

export async function writeSealed(
  trx: Queryable,
  column: SecretColumn,
  row: number,
  bytes: Buffer,
): Promise<void> {
  const { table, key, sealed, clear } = refs(column);
  await sql`update ${table} set ${sealed} = ${bytes}, ${clear} = null where ${key} = ${row}`.execute(trx);
}

/** Rows after this one that were sealed with an older key than the one of `header`, the first ones in order. */
export async function listSealedBefore(
  db: Queryable,
  column: SecretColumn,
  header: Buffer,
  afterRow: number,
  limit: number,
): Promise<{ row: number; sealed: Buffer }[]> {
  const { table, key, sealed } = refs(column);
  const { rows } = await sql<{ row: number; sealed: Buffer }>`
    select ${key} as "row", ${sealed} as sealed from ${table}
    where ${key} > ${afterRow} and substr(${sealed}, 1, ${header.length}) < ${header}
    order by ${key} limit ${limit}`.execute(db);
  return rows;
}

/** False when the row was changed or deleted since `before` was read: what is there now is newer. */
export async function replaceSealed(
  trx: Queryable,
  column: SecretColumn,
  row: number,
  before: Buffer,
  after: Buffer,
): Promise<boolean> {
  const { table, key, sealed } = refs(column);
  const { rows } = await sql`
    update ${table} set ${sealed} = ${after} where ${key} = ${row}
      and ${sealed} = ${before} returning 1`.execute(trx);
  return rows.length === 1;
}

/** A transaction's number that is higher than those of all transactions that have ended. */
export async function readTransactionMark(db: Queryable): Promise<string> {
  const { rows } = await sql<{ mark: string }>`select pg_current_xact_id()::text as mark`.execute(db);
  return rows[0]!.mark;
}

/** Whether every transaction with a number up to this one has ended, in every database of the server. */
export async function haveEnded(db: Queryable, mark: string): Promise<boolean> {
  const { rows } = await sql<{ ended: boolean }>`
    select pg_snapshot_xmin(pg_current_snapshot()) > ${mark}::xid8 as ended`.execute(db);
  return rows[0]!.ended;
}

/** Writes the table's file and its columns' statistics anew, under an exclusive lock, without rows that are gone. */
export async function rewriteTable(db: Queryable, table: string): Promise<void> {
  await sql`vacuum (full, analyze) ${sql.table(table)}`.execute(db);
}

/** Writes the file of all statistics anew: the former ones hold samples of columns. */
export async function rewriteStatistics(db: Queryable): Promise<void> {
  await sql`vacuum (full) pg_statistic`.execute(db);
}

function refs({ table, key, sealed, clear }: SecretColumn) {
  return { table: sql.table(table), key: sql.ref(key), sealed: sql.ref(sealed), clear: sql.ref(clear) };
}

/** Where a feature keeps sealed secrets. Its `store.ts` declares it; the composition hands it to `createSecrets`. */
export interface SecretColumn {
  table: string;
  /** The integer column that names a row. */
  key: string;
  /** Sealed bytes. */
  sealed: string;
  /** Clear bytes of before there was sealing; the program seals them at its start and leaves null. */
  clear: string;
}
