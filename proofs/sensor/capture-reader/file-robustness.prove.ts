/**
 * Proof with broken files: for any content, `sensor read` ends with exit code 0 or 2, prints parsable output, counts
 * every packet once, does bounded work and leaks no memory.
 *
 * `n` broken files of every format, with varying options, as tables and as JSON, in a thread; one in 2,000 also in its
 * own process, which must print the same. Work is counted, not timed: executed blocks of code, bytes read, live memory
 * (`proofs/sensor/capture-reader/break-files-thread.ts`). The same run with a fault planted between the command and the checks must
 * fail, or the proof shows nothing.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type BreakFilesInput, type BreakFilesResult, plantedFaults } from './planted-readings.ts';

export { plantedFaults };

export const name = 'file-robustness';

const plantedFiles = 150;
/** Limit of one reading's live objects; above it the thread ends. */
const heapMiBMax = 256;

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

/** Runs everything, then a small run with each planted fault. */
export async function prove({ n, seed, report }: ProveOptions) {
  const folder = mkdtempSync(join(inMemory(), 'svc-file-robustness-'));
  try {
    const run = await breakFiles({ folder, n, seed, fault: null }, report);
    for (const offence of run.offences.slice(0, 20)) report(offence);
    const { most, grownKiB } = run;
    report(`${run.read} files were read, ${run.refused} refused; ${run.processes} in processes of their own`);
    report(
      `at most ${most.blocksOfFile} blocks of code a file, ${most.readShare.toFixed(2)} times its bytes`,
    );
    report(`live memory grew by ${grownKiB} KiB`);
    let caught = 0;
    for (const fault of plantedFaults) {
      const { offences } = await breakFiles({ folder, n: Math.min(plantedFiles, n), seed, fault }, () => {});
      report(`planted ${fault}: ${offences[0]?.slice(0, 300) ?? 'NOT NOTICED'}`);
      if (offences.length > 0) caught += 1;
    }
    return {
      claim: `a broken capture file of any format is read or refused (${run.read} and ${run.refused}): exit code 0 or 2, JSON that parses, every packet counted once, at most ${most.blocksOfFile} blocks of code a file, each byte read once, live memory grew by ${grownKiB} KiB; ${run.processes} in processes of their own print the same`,
      tried: run.tried,
      failures: run.offences.length,
      plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A directory in memory: on a disk, truncating a file takes longer than reading it. */
function inMemory(): string {
  const shared = '/dev/shm';
  return process.env.SVC_PROOF_MEMORY ?? (existsSync(shared) ? shared : tmpdir());
}

async function breakFiles(input: BreakFilesInput, report: (line: string) => void): Promise<BreakFilesResult> {
  const worker = new Worker(new URL('./break-files-thread.ts', import.meta.url), {
    workerData: input,
    resourceLimits: { maxOldGenerationSizeMb: heapMiBMax },
  });
  let last: BreakFilesResult | null = null;
  return new Promise((resolve) => {
    worker.on('message', (result: BreakFilesResult) => {
      last = result;
      report(`${result.tried} files, ${result.offences.length} offences`);
    });
    const end = (why: string | null) => {
      const result = last ?? noResult();
      if (why !== null) result.offences.push(`after file ${result.tried} of seed ${input.seed}: ${why}`);
      resolve(result);
    };
    worker.once('error', (error) => end(`the thread died: ${error.stack ?? String(error)}`));
    worker.once('exit', () => end(last === null ? 'the thread ended without a result' : null));
  });
}

const noResult = (): BreakFilesResult => ({
  ...{ offences: [], tried: 0, read: 0, refused: 0, processes: 0 },
  ...{ most: { blocksOfFile: 0, readShare: 0 }, grownKiB: 0 },
});
