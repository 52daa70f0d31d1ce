/** The spool's SQL. `format.md` describes the file. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { fromStored, type SpoolState, toStored } from './spool-state.ts';

const pageBytes = 4096;
/** Bounds the log that stays after a checkpoint (NET-8). */
const walBytesMax = 4 * 1024 * 1024;
/** The log is written back into the file at this size, so that it rarely grows beyond it. */
const walCheckpointBytes = 1024 * 1024;
/** One row of the queue. Readers check the digests. */
export interface UploadRow {
  position: number;
  spoolId: string;
  sequence: number;
  madeAtMs: number;
  /** `minutes`, the name of an urgent kind of record, or `gaps` for anything else. */
  kind: string;
  /** JSON of the gaps that stand for this upload when it can't be delivered. */
  covers: string;
  coversSha256: Uint8Array;
  payload: Uint8Array;
  sha256: Uint8Array;
}

const totalsSql = `SELECT count(*) AS uploads, coalesce(sum(length(payload)), 0) AS bytes,
  min(CASE WHEN kind IN (SELECT value FROM json_each(?)) THEN position END) AS firstUrgent FROM uploads`;

/** What waits. */
export interface Totals {
  uploads: number;
  bytes: number;
  firstUrgent: number | null;
}

export interface SpoolStore {
  /** True for a file that nothing was ever stored in. */
  isEmpty(): boolean;
  create(state: SpoolState): void;
  /** False when SQLite finds the file's structure damaged. */
  isSound(): boolean;
  /** The first copy whose digest fits. Throws when the table can't be read at all. */
  readState(): SpoolState | null;
  writeState(state: SpoolState): void;
  insertUpload(row: UploadRow): void;
  replaceUpload(row: UploadRow): void;
  deleteUpload(position: number): void;
  firstUpload(): UploadRow | null;
  uploadAt(position: number): UploadRow | null;
  uploadAfter(position: number): UploadRow | null;
  /** Every row without its payload, which is left empty. */
  outlines(): UploadRow[];
  lastPosition(): number;
  /** `firstUrgent`: position of the first upload of these kinds. */
  totals(urgentKinds: readonly string[]): Totals;
  /** Mean payload of the latest uploads with minutes, or null. */
  payloadBytesPerMinute(): number | null;
  /** Bytes of pages in the file that nothing uses. */
  unusedBytes(): number;
  /** Bytes of pages in the file that something uses. */
  usedBytes(): number;
  transaction(work: () => void): void;
  truncateWal(): void;
  close(): void;
}

/** Opens or makes a file that may grow to `pagesMax` pages. One process at a time: a second one gets SQLITE_BUSY. */
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
  return storeOf(db);
}

function storeOf(db: DatabaseSync): SpoolStore {
  const statements = new Map<string, StatementSync>();
  // Prepared at first use: a damaged file may refuse some statements and still answer others.
  const prepared = (sql: string): StatementSync => {
    const known = statements.get(sql);
    if (known) return known;
    const statement = db.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  const columns = `position, spool_id AS spoolId, sequence, made_at_ms AS madeAtMs, kind, covers,
    covers_sha256 AS coversSha256, payload, sha256`;
  const upload = (sql: string, ...values: number[]): UploadRow | null =>
    (prepared(`SELECT ${columns} FROM uploads ${sql}`).get(...values) as UploadRow | undefined) ?? null;
  const stateCopies = ['state', 'state_copy'];

  return {
    isEmpty() {
      const row = prepared('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number };
      return row.tables === 0;
    },
    create(state) {
      this.transaction(() => {
        db.exec(`
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
        `);
        this.writeState(state);
      });
    },
    isSound() {
      const row = prepared('PRAGMA quick_check(1)').get() as { quick_check: string } | undefined;
      return row?.quick_check === 'ok';
    },
    readState() {
      let failure: unknown = null;
      for (const table of stateCopies) {
        try {
          const row = prepared(`SELECT body, sha256 FROM ${table} WHERE id = 1`).get();
          const state = fromStored(row as { body: unknown; sha256: unknown } | undefined);
          if (state) return state;
        } catch (error) {
          failure = error;
        }
      }
      if (failure) throw failure;
      return null;
    },
    writeState(state) {
      const { body, sha256 } = toStored(state);
      for (const table of stateCopies) {
        prepared(`INSERT INTO ${table} (id, body, sha256) VALUES (1, ?, ?)
                  ON CONFLICT (id) DO UPDATE SET body = excluded.body, sha256 = excluded.sha256`).run(
          body,
          sha256,
        );
      }
    },
    insertUpload(row) {
      prepared(`INSERT INTO uploads (position, spool_id, sequence, made_at_ms, kind, covers, covers_sha256,
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
    },
    replaceUpload(row) {
      this.deleteUpload(row.position);
      this.insertUpload(row);
    },
    deleteUpload(position) {
      prepared('DELETE FROM uploads WHERE position = ?').run(position);
    },
    firstUpload: () => upload('ORDER BY position LIMIT 1'),
    uploadAt: (position) => upload('WHERE position = ?', position),
    uploadAfter: (position) => upload('WHERE position > ? ORDER BY position LIMIT 1', position),
    outlines: () =>
      prepared(
        `SELECT ${columns.replace(', payload', ", x'' AS payload")} FROM uploads ORDER BY position`,
      ).all() as unknown as UploadRow[],
    lastPosition() {
      const row = prepared('SELECT coalesce(max(position), 0) AS last FROM uploads').get();
      return (row as { last: number }).last;
    },
    totals(urgentKinds) {
      return prepared(totalsSql).get(JSON.stringify(urgentKinds)) as unknown as Totals;
    },
    unusedBytes() {
      const row = prepared('PRAGMA freelist_count').get() as { freelist_count: number };
      return row.freelist_count * pageBytes;
    },
    payloadBytesPerMinute() {
      const row = prepared(`SELECT avg(length(payload)) AS mean
        FROM (SELECT payload FROM uploads WHERE kind = 'minutes' ORDER BY position DESC LIMIT 60)`).get();
      return (row as { mean: number | null }).mean;
    },
    usedBytes() {
      const row = prepared('PRAGMA page_count').get() as { page_count: number };
      return row.page_count * pageBytes - this.unusedBytes();
    },
    transaction(work) {
      db.exec('BEGIN IMMEDIATE');
      try {
        work();
        db.exec('COMMIT');
      } catch (error) {
        try {
          db.exec('ROLLBACK');
        } catch {
          // SQLite has rolled back by itself, as it does when the disk is full.
        }
        throw error;
      }
    },
    truncateWal() {
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    },
    close() {
      db.close();
    },
  };
}
