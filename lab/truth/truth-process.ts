/**
 * Writes the truth ledger: a process of its own inside the hypervisor, which shares nothing with the sensor but the
 * wire. Each minute's rows are on disk before the next minute is a second old.
 */
import { appendFileSync, existsSync, fsyncSync, openSync, renameSync, statSync } from 'node:fs';
import { systemClock } from '#common/clock/index.ts';
import { runChild } from '../traffic/run-child.ts';
import { readCounters } from './counters.ts';
import { createMinuteLedger, type Reading } from './minute-ledger.ts';

export interface TruthProcessInput {
  ledger: string;
}

/** The readings lie inside the traffic's rest, which is half a second to each side. */
const beforeMs = 350;
const afterMs = 300;
const ledgerBytesMax = 64 * 1024 * 1024;

async function takeReading(): Promise<Reading> {
  const counts = await readCounters([]);
  return { atMs: systemClock.nowMs(), counts };
}

async function keepLedger(path: string, signal: AbortSignal): Promise<void> {
  const file = openSync(path, 'a', 0o600);
  const ledger = createMinuteLedger(await takeReading());
  while (!signal.aborted) {
    const nowMs = systemClock.nowMs();
    const boundaryMs = (Math.floor((nowMs + beforeMs) / 60_000) + 1) * 60_000;
    await systemClock.wait(boundaryMs - beforeMs - nowMs, signal);
    const before = await takeReading();
    await systemClock.wait(boundaryMs + afterMs - systemClock.nowMs(), signal);
    const rows = ledger.close(boundaryMs, before, await takeReading());
    if (rows.length === 0) continue;
    appendFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    fsyncSync(file);
  }
}

await runChild<TruthProcessInput>(async (input, signal) => {
  // One old ledger is kept; a world that runs for months does not fill the disk.
  if (existsSync(input.ledger) && statSync(input.ledger).size > ledgerBytesMax) {
    renameSync(input.ledger, `${input.ledger}.old`);
  }
  void keepLedger(input.ledger, signal).catch((error: unknown) => {
    process.stderr.write(`truth ledger: ${(error as Error).message}\n`);
    process.exit(1);
  });
});
