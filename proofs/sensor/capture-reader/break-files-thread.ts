/**
 * The thread of the proof `file-robustness`: breaks files, reads them, and checks the output and the work.
 *
 * It counts only what other programs on the machine do not affect: executed blocks of our code, bytes read from the
 * file, and live memory of this thread.
 */
import { spawnSync } from 'node:child_process';
import fs, { writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { ReadOptions } from '#sensor/capture-reader/index.ts';
import { startBlockCoverage } from '#sensor/testing/block-coverage.ts';
import type { SeedFile } from '#sensor/testing/file-mutations.ts';
import type { PrintedReading } from '#sensor/testing/read-in-process.ts';
import { liveKiB } from '../live-memory.ts';
import type { BreakFilesInput, BreakFilesResult } from './planted-readings.ts';

/** Files between two looks at the counts; a look costs as much as two files. */
const batchSize = 50;
const filesPerProcess = 2000;
/** Blocks of our code per file and per byte of it: some four times the usual for broken files. */
const blocksPerFile = 8_000;
const blocksPerByte = 8;
/** A file is read once, and its header twice. */
const readTwiceBytes = 64;
/** Allowed growth of live memory after the first tenth of the files. */
const growthKiB = 16 * 1024;
const filesShown = 3;

const { folder, n, seed, fault } = workerData as BreakFilesInput;
/** One offence is enough for a planted fault. */
const offencesMax = fault === null ? 100 : 1;
const coverage = startBlockCoverage();
const { fileOfBrokenFrames, mutateFile, seedFiles } = await import('#sensor/testing/file-mutations.ts');
const { judgeReading } = await import('./judge-reading.ts');
const { seededRandom } = await import('#common/random/index.ts');
const { readInProcess } = await import('#sensor/testing/read-in-process.ts');

const path = join(folder, 'broken');
let readBytes = 0;
let descriptorOfBroken = -1;
const { openSync, readSync, closeSync } = fs;
fs.openSync = (name, ...how) => {
  const descriptor = openSync(name, ...how);
  if (name === path) descriptorOfBroken = descriptor;
  return descriptor;
};
fs.readSync = ((...call: Parameters<typeof readSync>) => {
  const bytes = readSync(...call);
  // Do not count bytes of modules that the first reading loads.
  if (call[0] === descriptorOfBroken) readBytes += bytes;
  return bytes;
}) as typeof readSync;
fs.closeSync = (descriptor) => {
  // The descriptor number is reused.
  if (descriptor === descriptorOfBroken) descriptorOfBroken = -1;
  closeSync(descriptor);
};
syncBuiltinESMExports();

interface Attempt {
  file: number;
  broken: SeedFile;
  options: ReadOptions;
}

interface Taken {
  printed: PrintedReading | null;
  why: string | null;
  readBytes: number;
}

const kept: Uint8Array[] = [];
const result: BreakFilesResult = {
  ...{ offences: [], tried: 0, read: 0, refused: 0, processes: 0 },
  ...{ most: { blocksOfFile: 0, readShare: 0 }, grownKiB: 0 },
};

const random = seededRandom(seed);
const seeds = seedFiles(random);
let floorKiB: number | null = null;
while (result.tried < n && result.offences.length < offencesMax) {
  const batch = Array.from({ length: Math.min(batchSize, n - result.tried) }, (_, i) => ({
    file: result.tried + i,
    broken: random() < 0.1 ? fileOfBrokenFrames(random) : mutateFile(seeds, random),
    options: anyOptions(),
  }));
  coverage.takeBlocks();
  const taken: Taken[] = [];
  for (const attempt of batch) taken.push(await readBroken(attempt));
  const blocks = coverage.takeBlocks();
  for (const [i, attempt] of batch.entries()) judge(attempt, taken[i]!);
  await judgeWork(batch, blocks);
  result.tried += batch.length;
  // Threads that decompressed a file are freed in a turn of the event loop, which reading alone never reaches.
  await nextTurn();
  if (floorKiB === null && result.tried >= n / 10) floorKiB = liveKiB();
  if (result.tried % 10_000 < batchSize) parentPort!.postMessage(result);
}
result.grownKiB = liveKiB() - floorKiB!;
if (result.grownKiB > growthKiB) result.offences.push(`live memory grew by ${result.grownKiB} KiB`);
coverage.stop();
parentPort!.postMessage(result);

/** Tables and JSON alternately, with and without minutes, filters and time spans. */
function anyOptions(): ReadOptions {
  const all: readonly ReadOptions[] = [
    {},
    { top: '0' },
    { minutes: true },
    { minutes: true, top: '3', sort: 'name' },
    { sort: 'time', name: ['*example*'] },
    { local: ['192.0.2.0/24'], port: ['443'] },
  ];
  const chosen = { ...all[Math.floor(random() * all.length)]! };
  if (random() < 0.5) chosen.json = true;
  if (random() < 0.1) chosen.from = '+10s';
  if (random() < 0.1) chosen.to = '23:59';
  return chosen;
}

async function readBroken({ broken, options }: Attempt): Promise<Taken> {
  writeFileSync(path, broken.bytes);
  readBytes = 0;
  try {
    if (fault === 'leaks') kept.push(new Uint8Array(1 << 18).fill(1));
    const printed = spoil(await readInProcess([path], options));
    return { printed, why: null, readBytes };
  } catch (error) {
    const why = `it threw ${error instanceof Error ? error.stack : String(error)}`;
    return { printed: null, why, readBytes };
  }
}

/** Applies the planted fault to the output and to the work. */
function spoil(printed: PrintedReading): PrintedReading {
  if (printed.status !== 0) return printed;
  const { stdout } = printed;
  if (fault === 'throws' && stdout.length % 7 === 0) throw new RangeError('planted');
  if (fault === 'exits-with-1' && stdout.length % 7 === 0) return { ...printed, status: 1 };
  if (fault === 'breaks-json') return { ...printed, stdout: stdout.replace(/:null/, ':NaN') };
  if (fault === 'counts-twice')
    return {
      ...printed,
      stdout: stdout.replace(/"ip_packets":(\d+)/, (_, count) => `"ip_packets":${Number(count) + 1}`),
    };
  if (fault === 'repeats-work') {
    const counts = /"packets":\d+,("bytes":\d+),"ip_packets":\d+,"non_ip":\d+,"parser_dropped":\d+/;
    const repeated = '"packets":1000000,$1,"ip_packets":1000000,"non_ip":0,"parser_dropped":0';
    return { ...printed, stdout: stdout.replace(counts, repeated) };
  }
  if (fault === 'works-in-vain' && stdout.length % 7 === 0) {
    let sum = 0;
    for (let i = 0; i < 3_000_000; i += 1) sum += i;
    return sum < 0 ? { ...printed, status: 1 } : printed;
  }
  if (fault === 'reads-again' && stdout.length % 7 === 0) {
    const descriptor = fs.openSync(path, 'r');
    fs.readSync(descriptor, new Uint8Array(1 << 16), 0, 1 << 16, 0);
    fs.closeSync(descriptor);
  }
  return printed;
}

function offend({ file, broken, options }: Attempt, why: string): void {
  const shown =
    result.offences.length < filesShown
      ? `; the file in base64: ${Buffer.from(broken.bytes).toString('base64')}`
      : '';
  result.offences.push(
    `file ${file} of seed ${seed} (${broken.format}, ${JSON.stringify(options)}): ${why}${shown}`,
  );
}

function judge(attempt: Attempt, taken: Taken): void {
  const { file, broken, options } = attempt;
  const { printed } = taken;
  let why = taken.why ?? judgeReading(printed!, options, broken);
  if (printed?.status === 0) result.read += 1;
  else result.refused += 1;
  const size = broken.bytes.length;
  result.most.readShare = Math.max(result.most.readShare, taken.readBytes / Math.max(size, 64));
  if (why === null && taken.readBytes > size + readTwiceBytes)
    why = `${taken.readBytes} bytes were read of a file of ${size}`;
  if (why === null && fault === null && file % filesPerProcess === 0) {
    result.processes += 1;
    writeFileSync(path, broken.bytes);
    why = judgeProcess(options, printed!);
  }
  if (why !== null) offend(attempt, why);
}

/** In a batch that exceeded the limit, each file is read again alone. */
async function judgeWork(batch: readonly Attempt[], blocks: number): Promise<void> {
  result.most.blocksOfFile = Math.max(result.most.blocksOfFile, Math.round(blocks / batch.length));
  const bytes = batch.reduce((sum, { broken }) => sum + broken.bytes.length, 0);
  if (blocks <= blocksPerFile * batch.length + blocksPerByte * bytes) return;
  const found = result.offences.length;
  for (const attempt of batch) {
    coverage.takeBlocks();
    await readBroken(attempt);
    const own = coverage.takeBlocks();
    if (own > blocksPerFile * 5 + blocksPerByte * attempt.broken.bytes.length)
      offend(attempt, `reading it ran ${own} blocks of code`);
  }
  if (result.offences.length === found)
    offend(batch[0]!, `reading it and the ${batch.length - 1} after it ran ${blocks} blocks of code`);
}

/** The same file through the real command line. */
function judgeProcess(asked: ReadOptions, expected: PrintedReading): string | null {
  const words = Object.entries(asked).flatMap(([option, value]) =>
    value === true ? [`--${option}`] : [value].flat().map((text) => `--${option}=${text}`),
  );
  const program = fileURLToPath(new URL('../../../svc.ts', import.meta.url));
  const { status, signal, stdout } = spawnSync(
    process.execPath,
    [program, 'sensor', 'read', path, ...words],
    { encoding: 'utf8', env: { ...process.env, NODE_NO_WARNINGS: '1' } },
  );
  if (status !== expected.status) return `the process ended with ${status ?? signal}, not ${expected.status}`;
  return stdout === expected.stdout ? null : 'the process printed something else';
}
