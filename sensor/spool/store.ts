/** The spool's SQL. `format.md` describes the file. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { fromStored, type SpoolState, toStored } from './spool-state.ts';
import type { UploadIdentity } from './upload-row.ts';

const pageBytes = 4096;
/** Bounds the log that stays after a checkpoint (NET-8). */
const walBytesMax = 4 * 1024 * 1024;
/** The log is written back into the file at this size, so that it rarely grows beyond it. */
const walCheckpointBytes = 1024 * 1024;

/** One row of the queue. Readers check the digests. */
export interface UploadRow extends UploadIdentity {
  /** `minutes`, the name of an urgent kind of record, or `gaps` for anything else. */
  kind: string;
  /** JSON of the gaps that stand for this upload when it can't be delivered. */
  covers: string;
  coversSha256: Uint8Array;
  payload: Uint8Array;
  sha256: Uint8Array;
}

const schemaSql = `
  CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL, sha256 BLOB NOT NULL) STRICT;
  CREATE TABLE uploads (
    position INTEGER PRIMARY KEY,
    spool_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence > 0),
    made_at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    covers TEXT NOT NULL,
    covers_sha256 BLOB NOT NULL,
    payload BLOB NOT NULL,
    sha256 BLOB NOT NULL
  ) STRICT;
  CREATE TABLE state_copy (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL, sha256 BLOB NOT NULL) STRICT;
`;
const stateCopies = ['state', 'state_copy'];
const uploadColumns = `position, spool_id AS spoolId, sequence, made_at_ms AS madeAtMs, kind, covers,
  covers_sha256 AS coversSha256, payload, sha256`;
const totalsSql = `SELECT count(*) AS uploads, coalesce(sum(length(payload)), 0) AS bytes,
  min(CASE WHEN kind IN (SELECT value FROM json_each(?)) THEN position END) AS firstUrgent FROM uploads`;

/** What waits. */
export interface Totals {
  uploads: number;
  bytes: number;
  firstUrgent: number | null;
}

/** Opens or makes a file that may grow to `bytesMax`. One process at a time: a second one gets SQLITE_BUSY. */
export function openSpoolStore(path: string, bytesMax: number): SpoolStore {
  const db = new DatabaseSync(path);
  try {
    db.exec(`
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA page_size = ${pageBytes};
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA journal_size_limit = ${walBytesMax};
      PRAGMA wal_autocheckpoint = ${walCheckpointBytes / pageBytes};
      PRAGMA max_page_count = ${Math.floor(bytesMax / pageBytes)};
    `);
  } catch (error) {
    // Left open, a handle that failed half-way would hold the lock, and no later attempt could get it.
    db.close();
    throw error;
  }
  return new SpoolStore(db);
}

/** The statements on one open file. */
export class SpoolStore {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** True for a file that nothing was ever stored in. */
  isEmpty(): boolean {
    const row = this.#prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number };
    return row.tables === 0;
  }

  create(state: SpoolState): void {
    this.transaction(() => {
      this.#db.exec(schemaSql);
      this.writeState(state);
    });
  }

  /** False when SQLite finds the file's structure damaged. */
  isSound(): boolean {
    const row = this.#prepare('PRAGMA quick_check(1)').get() as { quick_check: string } | undefined;
    return row?.quick_check === 'ok';
  }

  /** The first copy whose digest fits. Throws when the table can't be read at all. */
  readState(): SpoolState | null {
    let failure: unknown = null;
    for (const table of stateCopies) {
      try {
        const row = this.#prepare(`SELECT body, sha256 FROM ${table} WHERE id = 1`).get();
        const state = fromStored(row as { body: unknown; sha256: unknown } | undefined);
        if (state) return state;
      } catch (error) {
        failure = error;
      }
    }
    if (failure) throw failure;
    return null;
  }

  writeState(state: SpoolState): void {
    const { body, sha256 } = toStored(state);
    for (const table of stateCopies) {
      this.#prepare(`INSERT INTO ${table} (id, body, sha256) VALUES (1, ?, ?)
                ON CONFLICT (id) DO UPDATE SET body = excluded.body, sha256 = excluded.sha256`).run(
        body,
        sha256,
      );
    }
  }

  insertUpload(row: UploadRow): void {
    this.#prepare(`INSERT INTO uploads (position, spool_id, sequence, made_at_ms, kind, covers, covers_sha256,
                                   payload, sha256)
              VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`).run(
      row.position,
      row.spoolId,
      row.sequence,
      row.madeAtMs,
      row.kind,
      row.covers,
      row.coversSha256,
      row.payload,
      row.sha256,
    );
  }

  replaceUpload(row: UploadRow): void {
    this.deleteUpload(row.position);
    this.insertUpload(row);
  }

  deleteUpload(position: number): void {
    this.#prepare('DELETE FROM uploads WHERE position = ?').run(position);
  }

  /** The first upload of no such kind. */
  firstUploadExcept(kinds: readonly string[]): UploadRow | null {
    return this.#upload(
      'WHERE kind NOT IN (SELECT value FROM json_each(?)) ORDER BY position LIMIT 1',
      JSON.stringify(kinds),
    );
  }

  firstUpload(): UploadRow | null {
    return this.#upload('ORDER BY position LIMIT 1');
  }

  uploadAt(position: number): UploadRow | null {
    return this.#upload('WHERE position = ?', position);
  }

  uploadAfter(position: number): UploadRow | null {
    return this.#upload('WHERE position > ? ORDER BY position LIMIT 1', position);
  }

  /** Every row without its payload, which is left empty. */
  outlines(): UploadRow[] {
    const outline = uploadColumns.replace(', payload', ", x'' AS payload");
    return this.#prepare(`SELECT ${outline} FROM uploads ORDER BY position`).all() as unknown as UploadRow[];
  }

  lastPosition(): number {
    const row = this.#prepare('SELECT coalesce(max(position), 0) AS last FROM uploads').get();
    return (row as { last: number }).last;
  }

  /** `firstUrgent`: position of the first upload of these kinds. */
  totals(urgentKinds: readonly string[]): Totals {
    return this.#prepare(totalsSql).get(JSON.stringify(urgentKinds)) as unknown as Totals;
  }

  /** Mean payload of the latest uploads with minutes, or null. */
  payloadBytesPerMinute(): number | null {
    const row = this.#prepare(`SELECT avg(length(payload)) AS mean
      FROM (SELECT payload FROM uploads WHERE kind = 'minutes' ORDER BY position DESC LIMIT 60)`).get();
    return (row as { mean: number | null }).mean;
  }

  /** Bytes of pages in the file that nothing uses. */
  unusedBytes(): number {
    const row = this.#prepare('PRAGMA freelist_count').get() as { freelist_count: number };
    return row.freelist_count * pageBytes;
  }

  /** Bytes of pages in the file that something uses. */
  usedBytes(): number {
    const row = this.#prepare('PRAGMA page_count').get() as { page_count: number };
    return row.page_count * pageBytes - this.unusedBytes();
  }

  transaction(work: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      try {
        this.#db.exec('ROLLBACK');
      } catch {
        // SQLite has rolled back by itself, as it does when the disk is full.
      }
      throw error;
    }
  }

  truncateWal(): void {
    this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  close(): void {
    this.#db.close();
  }

  /** Prepared at first use: a damaged file may refuse some statements and still answer others. */
  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #upload(where: string, ...values: (number | string)[]): UploadRow | null {
    const row = this.#prepare(`SELECT ${uploadColumns} FROM uploads ${where}`).get(...values);
    return (row as UploadRow | undefined) ?? null;
  }
}
