/**
 * The durable record of scans: which ids were used, when each target was scanned last, and reports that wait for their
 * receipt.
 *
 * Guarantees: an attempt is on disk before its first process starts, so a scan id runs once however often the sensor is
 * killed. A result is on disk in the commit that ends its attempt, and leaves it only with the monitor's receipt. An attempt
 * that a kill interrupted ends at the next start as a partial result with what its last note had found.
 *
 * Bounds (NET-8.5): 128 MiB of pending reports, a file of 160 MiB, 8,192 attempts, withdrawals for seven days.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { describeError } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import type { ScanResult, ScanStarted } from '#contracts/sensor-api/port-scans.ts';
import { LedgerStore, type ReportRow } from './store.ts';

const attemptsMax = 8192;
const pendingBytesMax = 128 * 1024 * 1024;
/** Room for the largest result of each scan that may run. */
const reserveBytes = 12 * 2 * 1024 * 1024;
const keptMs = 7 * 86_400_000;
const fileName = 'scans.sqlite';

export interface Ledger {
  wasStarted(scanId: string): boolean;
  lastStartedAtMs(targetId: string, profile: 'common' | 'full'): number | null;
  /** Whether another attempt has room for its reports. */
  hasRoom(): boolean;
  /**
   * Records the attempt and its first report. False when the id was used or is withdrawn. `interrupted` is the result that
   * stands if the sensor is killed.
   */
  begin(started: ScanStarted, interrupted: ScanResult): boolean;
  /** Replaces the result that stands if the sensor is killed. */
  note(interrupted: ScanResult): void;
  end(result: ScanResult): void;
  /** Remembers requests that are cancelled: they never start. */
  withdraw(scanIds: readonly string[]): void;
  nextReport(): ReportRow | null;
  removeReport(id: number): void;
  pending(): { count: number; bytes: number };
  close(): void;
}

export interface LedgerOptions {
  directory: string;
  nowMs(): number;
  /** A damaged file was put aside. */
  onDamaged(why: string): void;
}

/** Opens the ledger, and ends attempts that a kill interrupted. Throws where the directory can not be written. */
export function openLedger(options: LedgerOptions): Ledger {
  const { directory, nowMs } = options;
  makeFolders(directory, 0o700);
  const store = openStore(options);
  const isoNow = () => new Date(nowMs()).toISOString();

  function addReport(body: ScanStarted | ScanResult): void {
    store.insertReport(body.scan_id, JSON.stringify(body));
  }

  for (const attempt of store.openAttempts())
    store.inTransaction(() => {
      const result = JSON.parse(attempt.body) as ScanResult;
      addReport({ ...result, at: isoNow() });
      store.endAttempt(attempt.scanId, nowMs());
    });

  return {
    wasStarted: (scanId) => store.hasAttempt(scanId) || store.isWithdrawn(scanId),
    lastStartedAtMs: (targetId, profile) => store.lastStartedAtMs(targetId, profile),
    hasRoom: () => store.pendingReports().bytes < pendingBytesMax - reserveBytes,
    begin(started, interrupted) {
      const { scan_id: scanId, scan_request_id: requestId, target_id: targetId, profile } = started;
      let isNew = false;
      store.inTransaction(() => {
        store.removeEndedBefore(nowMs() - keptMs);
        if (store.hasAttempt(scanId) || store.isWithdrawn(scanId)) return;
        if (requestId === null) store.removeEarlierRoutine(targetId, profile);
        const excess = store.countAttempts() + 1 - attemptsMax;
        if (excess > 0) store.removeOldestRoutine(excess);
        if (store.countAttempts() >= attemptsMax) return;
        const body = JSON.stringify(interrupted);
        store.insertAttempt({ scanId, requestId, targetId, profile, startedAtMs: nowMs(), body });
        addReport(started);
        isNew = true;
      });
      return isNew;
    },
    note: (interrupted) => store.updateBody(interrupted.scan_id, JSON.stringify(interrupted)),
    end(result) {
      store.inTransaction(() => {
        addReport(result);
        store.endAttempt(result.scan_id, nowMs());
      });
    },
    withdraw(scanIds) {
      const added = scanIds.filter((scanId) => !store.isWithdrawn(scanId));
      if (added.length === 0) return;
      store.inTransaction(() => {
        for (const scanId of added)
          if (store.countWithdrawn() < attemptsMax) store.insertWithdrawn(scanId, nowMs());
      });
    },
    nextReport: () => store.nextReport(),
    removeReport: (id) => store.removeReport(id),
    pending: () => store.pendingReports(),
    close: () => store.close(),
  };
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
