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
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import type { ScanResult, ScanStarted } from '#contracts/sensor-api/port-scans.ts';
import { LedgerStore } from './store.ts';

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
