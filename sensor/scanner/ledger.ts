/**
 * The durable record of scans: which ids were used, when each target was scanned last, and reports that wait for their
 * receipt.
 *
 * Guarantees: an attempt is on disk before its first process starts, so a scan id runs once however often the sensor is
 * killed. A result is on disk in the commit that ends its attempt, and leaves it only with the monitor's receipt. An attempt
 * that a kill interrupted ends at the next start as a partial result with what its last note had found.
 *
 * Bounds (NET-8.5): 128 MiB of pending reports, a file of 160 MiB, 8,192 attempts, 8,192 withdrawals. Ids are forgotten after
 * seven days in which the sensor ran, and never while a plan names them: a wall clock that jumps forgets none.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import type { ScanResult, ScanStarted } from '#contracts/sensor-api/port-scans.ts';

const rowsMax = 8192;
const pendingBytesMax = 128 * 1024 * 1024;
/** Room for the largest result of each scan that may run. */
const reserveBytes = 12 * 2 * 1024 * 1024;
const keptMs = 7 * 86_400_000;
const fileName = 'scans.sqlite';

export type Ledger = ReturnType<typeof openLedger>;

/** Ids that a plan names. */
export interface NamedRequests {
  requested: readonly string[];
  withdrawn: readonly string[];
}

export interface LedgerOptions {
  directory: string;
  clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  /** A damaged file was put aside. */
  onDamaged(why: string): void;
}

/** Opens the ledger, and ends attempts that a kill interrupted. Throws where the directory can not be written. */
export function openLedger(options: LedgerOptions) {
  const { directory, clock } = options;
  makeFolders(directory, 0o700);
  const store = openStore(options);
  const ages = createAges(store, clock);
  let named: ReadonlySet<string> = new Set();

  function addReport(body: ScanStarted | ScanResult): void {
    store.insertReport(body.scan_id, JSON.stringify(body));
  }

  for (const attempt of store.openAttempts())
    store.inTransaction(() => {
      const result = JSON.parse(attempt.body) as ScanResult;
      // The clock may have been set back since.
      const atMs = Math.max(clock.nowMs(), Date.parse(result.finished_at));
      addReport({ ...result, at: new Date(atMs).toISOString() });
      store.endAttempt(attempt.scanId, ages.now());
    });

  return {
    wasStarted: (scanId: string) => store.hasAttempt(scanId) || store.isWithdrawn(scanId),
    lastStartedAtMs: (targetId: string, profile: 'common' | 'full') =>
      store.lastStartedAtMs(targetId, profile),
    /** Whether another attempt has room for its reports. */
    hasRoom: () => store.pendingReports().bytes < pendingBytesMax - reserveBytes,
    /**
     * Records the attempt and its first report. False when the id was used or is withdrawn. `interrupted` is the result that
     * stands if the sensor is killed.
     */
    begin(started: ScanStarted, interrupted: ScanResult): boolean {
      const { scan_id: scanId, scan_request_id: requestId, target_id: targetId, profile } = started;
      let isNew = false;
      store.inTransaction(() => {
        ages.save();
        forgetOld(store, ages.now() - keptMs, named);
        if (store.hasAttempt(scanId) || store.isWithdrawn(scanId)) return;
        if (requestId === null) store.removeEarlierRoutine(targetId, profile);
        makeRoom(store, named);
        if (store.countAttempts() >= rowsMax) return;
        const body = JSON.stringify(interrupted);
        store.insertAttempt({ scanId, requestId, targetId, profile, startedAtMs: clock.nowMs(), body });
        addReport(started);
        isNew = true;
      });
      return isNew;
    },
    /** Replaces the result that stands if the sensor is killed. */
    note: (interrupted: ScanResult) => store.updateBody(interrupted.scan_id, JSON.stringify(interrupted)),
    end(result: ScanResult) {
      store.inTransaction(() => {
        addReport(result);
        store.endAttempt(result.scan_id, ages.now());
      });
    },
    /** Remembers which requests the newest plan names; those that it cancels never start. */
    follow({ requested, withdrawn }: NamedRequests) {
      named = new Set([...requested, ...withdrawn]);
      const added = withdrawn.filter((scanId) => !store.isWithdrawn(scanId));
      if (added.length === 0) return;
      store.inTransaction(() => {
        ages.save();
        // A plan cancels at most half as many, so none of those is removed.
        store.removeOldestWithdrawn(store.countWithdrawn() + added.length - rowsMax, [...named]);
        for (const scanId of added) store.insertWithdrawn(scanId, ages.now());
      });
    },
    nextReport: () => store.nextReport(),
    removeReport: (id: number) => store.removeReport(id),
    pending: () => store.pendingReports(),
    close: () => store.close(),
  };
}

/**
 * Time that ids grow old by: it passes only while the sensor runs. Time since the last attempt is lost when the sensor
 * ends; ids are kept longer then, never shorter.
 */
function createAges(store: LedgerStore, clock: Pick<Clock, 'monotonicMs'>) {
  const beforeMs = store.readAge();
  const startedMs = clock.monotonicMs();
  const now = () => Math.floor(beforeMs + clock.monotonicMs() - startedMs);
  return { now, save: () => store.writeAge(now()) };
}

function forgetOld(store: LedgerStore, beforeMs: number, named: ReadonlySet<string>): void {
  for (const scanId of store.attemptsEndedBefore(beforeMs))
    if (!named.has(scanId)) store.removeAttempt(scanId);
  for (const scanId of store.withdrawnBefore(beforeMs)) if (!named.has(scanId)) store.removeWithdrawn(scanId);
}

/** Room for one attempt: routine ones go first. A request that the plan names must not run again, so it stays. */
function makeRoom(store: LedgerStore, named: ReadonlySet<string>): void {
  const excess = () => store.countAttempts() + 1 - rowsMax;
  if (excess() > 0) store.removeOldestRoutine(excess());
  if (excess() > 0) store.removeOldestRequests(excess(), [...named]);
}

/** A damaged file is put aside: what it held can be scanned again, and a sensor that can't scan helps no one. */
function openStore({ directory, onDamaged }: LedgerOptions): LedgerStore {
  const path = join(directory, fileName);
  try {
    return new LedgerStore(path);
  } catch (error) {
    if (!/malformed|not a database|corrupt/i.test(describeError(error))) throw error;
    onDamaged(describeError(error));
    for (const suffix of ['', '-wal', '-shm']) {
      try {
        renameSync(`${path}${suffix}`, `${path}.damaged${suffix}`);
      } catch {
        // There is none.
      }
    }
    return new LedgerStore(path);
  }
}

// SQL of the scan ledger. Its file is its own, so that a full ledger takes no room of the spool (NET-8.5).

const pageBytes = 4096;
const fileBytesMax = 160 * 1024 * 1024;
const walBytesMax = 4 * 1024 * 1024;

const schemaSql = `
  CREATE TABLE IF NOT EXISTS attempts (
    scan_id TEXT PRIMARY KEY,
    request_id TEXT,
    target_id TEXT NOT NULL,
    profile TEXT NOT NULL,
    -- By the wall clock, as plans are; the time of its end and of withdrawals is an age, as in table age.
    started_at_ms INTEGER NOT NULL,
    ended_at_ms INTEGER,
    -- What a result would say if the sensor were killed now; empty once it has ended.
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS attempts_target ON attempts (target_id, profile, started_at_ms);
  CREATE TABLE IF NOT EXISTS reports (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scan_id TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS withdrawn (scan_id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT;
  -- How long the sensor ran in all. A ledger of an older sensor has wall times instead, and goes on from its newest.
  CREATE TABLE IF NOT EXISTS age (only INTEGER PRIMARY KEY CHECK (only = 1), ms INTEGER NOT NULL) STRICT;
  INSERT OR IGNORE INTO age SELECT 1, max(
    (SELECT coalesce(max(ended_at_ms), 0) FROM attempts), (SELECT coalesce(max(at_ms), 0) FROM withdrawn));
`;

export interface AttemptRow {
  scanId: string;
  requestId: string | null;
  targetId: string;
  profile: string;
  startedAtMs: number;
  body: string;
}

export interface ReportRow {
  id: number;
  scanId: string;
  body: string;
}

/** The ledger's statements. Every commit is durable when it returns. */
export class LedgerStore {
  readonly #db: DatabaseSync;

  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    try {
      this.#db.exec(`PRAGMA page_size = ${pageBytes}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        PRAGMA max_page_count = ${fileBytesMax / pageBytes}; PRAGMA journal_size_limit = ${walBytesMax};
        PRAGMA auto_vacuum = NONE;`);
      this.#db.exec(schemaSql);
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  inTransaction(change: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      change();
      this.#db.exec('COMMIT');
    } catch (error) {
      // A full disk may have ended it already.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  hasAttempt(scanId: string): boolean {
    return this.#db.prepare('SELECT 1 FROM attempts WHERE scan_id = ?').get(scanId) !== undefined;
  }

  isWithdrawn(scanId: string): boolean {
    return this.#db.prepare('SELECT 1 FROM withdrawn WHERE scan_id = ?').get(scanId) !== undefined;
  }

  /** Of the attempt that was written last: its time is not the latest where the clock was set back. */
  lastStartedAtMs(targetId: string, profile: string): number | null {
    const row = this.#db
      .prepare(
        `SELECT started_at_ms AS at FROM attempts WHERE target_id = ? AND profile = ? ORDER BY rowid DESC LIMIT 1`,
      )
      .get(targetId, profile);
    return (row?.at as number | undefined) ?? null;
  }

  insertAttempt(row: AttemptRow): void {
    this.#db
      .prepare(
        `INSERT INTO attempts (scan_id, request_id, target_id, profile, started_at_ms, body) VALUES (?, ?, ?, ?, ?, ?)`,
      )
      .run(row.scanId, row.requestId, row.targetId, row.profile, row.startedAtMs, row.body);
  }

  /** Routine attempts before the newest are of no use: only the time of the last one counts. */
  removeEarlierRoutine(targetId: string, profile: string): void {
    this.#db
      .prepare(
        `DELETE FROM attempts WHERE target_id = ? AND profile = ? AND request_id IS NULL AND ended_at_ms IS NOT NULL`,
      )
      .run(targetId, profile);
  }

  countAttempts(): number {
    return this.#db.prepare('SELECT count(*) AS n FROM attempts').get()!.n as number;
  }

  readAge(): number {
    return this.#db.prepare('SELECT ms FROM age').get()!.ms as number;
  }

  writeAge(ms: number): void {
    this.#db.prepare('UPDATE age SET ms = ?').run(ms);
  }

  attemptsEndedBefore(ms: number): string[] {
    return this.#ids(this.#db.prepare('SELECT scan_id FROM attempts WHERE ended_at_ms < ?').all(ms));
  }

  withdrawnBefore(ms: number): string[] {
    return this.#ids(this.#db.prepare('SELECT scan_id FROM withdrawn WHERE at_ms < ?').all(ms));
  }

  removeAttempt(scanId: string): void {
    this.#db.prepare('DELETE FROM attempts WHERE scan_id = ?').run(scanId);
  }

  removeWithdrawn(scanId: string): void {
    this.#db.prepare('DELETE FROM withdrawn WHERE scan_id = ?').run(scanId);
  }

  /** Makes room among routine attempts, oldest first. */
  removeOldestRoutine(count: number): void {
    this.#db
      .prepare(
        `DELETE FROM attempts WHERE scan_id IN (SELECT scan_id FROM attempts WHERE request_id IS NULL
         AND ended_at_ms IS NOT NULL ORDER BY rowid LIMIT ?)`,
      )
      .run(count);
  }

  removeOldestRequests(count: number, except: readonly string[]): void {
    this.#db
      .prepare(
        `DELETE FROM attempts WHERE scan_id IN (SELECT scan_id FROM attempts WHERE request_id IS NOT NULL
         AND ended_at_ms IS NOT NULL AND scan_id NOT IN (SELECT value FROM json_each(?)) ORDER BY rowid LIMIT ?)`,
      )
      .run(JSON.stringify(except), count);
  }

  /** Nothing where the count is not positive. */
  removeOldestWithdrawn(count: number, except: readonly string[]): void {
    if (count <= 0) return;
    this.#db
      .prepare(
        `DELETE FROM withdrawn WHERE scan_id IN (SELECT scan_id FROM withdrawn
         WHERE scan_id NOT IN (SELECT value FROM json_each(?)) ORDER BY rowid LIMIT ?)`,
      )
      .run(JSON.stringify(except), count);
  }

  updateBody(scanId: string, body: string): void {
    this.#db.prepare('UPDATE attempts SET body = ? WHERE scan_id = ?').run(body, scanId);
  }

  endAttempt(scanId: string, ageMs: number): void {
    this.#db.prepare(`UPDATE attempts SET ended_at_ms = ?, body = '' WHERE scan_id = ?`).run(ageMs, scanId);
  }

  openAttempts(): AttemptRow[] {
    return this.#db
      .prepare(
        `SELECT scan_id AS scanId, request_id AS requestId, target_id AS targetId, profile, started_at_ms AS startedAtMs,
         body FROM attempts WHERE ended_at_ms IS NULL`,
      )
      .all() as unknown as AttemptRow[];
  }

  insertReport(scanId: string, body: string): void {
    this.#db.prepare('INSERT INTO reports (scan_id, body) VALUES (?, ?)').run(scanId, body);
  }

  nextReport(): ReportRow | null {
    const row = this.#db.prepare('SELECT id, scan_id AS scanId, body FROM reports ORDER BY id LIMIT 1').get();
    return (row as unknown as ReportRow | undefined) ?? null;
  }

  removeReport(id: number): void {
    this.#db.prepare('DELETE FROM reports WHERE id = ?').run(id);
  }

  pendingReports(): { count: number; bytes: number } {
    const row = this.#db
      .prepare('SELECT count(*) AS n, coalesce(sum(length(body)), 0) AS bytes FROM reports')
      .get()!;
    return { count: row.n as number, bytes: row.bytes as number };
  }

  insertWithdrawn(scanId: string, ageMs: number): void {
    this.#db.prepare('INSERT OR IGNORE INTO withdrawn (scan_id, at_ms) VALUES (?, ?)').run(scanId, ageMs);
  }

  countWithdrawn(): number {
    return this.#db.prepare('SELECT count(*) AS n FROM withdrawn').get()!.n as number;
  }

  close(): void {
    this.#db.close();
  }

  #ids(rows: readonly Record<string, unknown>[]): string[] {
    return rows.map((row) => row.scan_id as string);
  }
}
