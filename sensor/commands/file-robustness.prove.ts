/**
 * Proof by broken files: whatever a file holds, `sensor read` ends with exit code 0 or 2, prints what can be parsed,
 * counts every packet once, does bounded work and keeps no memory.
 *
 * `n` broken files of every format, each with other options, as tables and as JSON, in this process; one in 2,000 also
 * in a process of its own, which must print the same. The same run with a fault planted between the command and the
 * judge must fail, or the proof shows nothing.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileOfBrokenFrames, mutateFile, type SeedFile, seedFiles } from '#sensor/testing/file-mutations.ts';
import { createRandom } from '#sensor/testing/mixed-capture.ts';
import { type PrintedReading, readInProcess } from '#sensor/testing/read-in-process.ts';
import type { ReadOptions } from './read.ts';

export const name = 'file-robustness';

/** A reading of a few kilobytes takes a few milliseconds; on a crowded machine many times that. */
const hungMs = 120_000;
/** Growth after the first tenth of the files. */
const growthMiB = 256;
const filesPerProcess = 2000;
const plantedFiles = 400;

export type PlantedFault =
  | 'throws'
  | 'exits-with-1'
  | 'breaks-json'
  | 'counts-twice'
  | 'repeats-work'
  | 'leaks';
export const plantedFaults: readonly PlantedFault[] = [
  'throws',
  'exits-with-1',
  'breaks-json',
  'counts-twice',
  'repeats-work',
  'leaks',
];

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

/** Runs everything, then a little with each planted fault. */
export async function prove({ n, seed, report }: ProveOptions) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-file-robustness-'));
  try {
    const run = await breakFiles(folder, n, seed, null);
    for (const offence of run.offences.slice(0, 20)) report(offence);
    report(`${run.read} files were read, ${run.refused} refused; ${run.processes} in processes of their own`);
    let caught = 0;
    for (const fault of plantedFaults) {
      const { offences } = await breakFiles(folder, Math.min(plantedFiles, n), seed, fault);
      report(`planted ${fault}: ${offences[0] ?? 'NOT NOTICED'}`);
      if (offences.length > 0) caught += 1;
    }
    return {
      claim: `a broken capture file of any format is read or refused (${run.read} and ${run.refused}): exit code 0 or 2, JSON that parses, every packet counted once, bounded work and memory; ${run.processes} in processes of their own print the same`,
      tried: n,
      failures: run.offences.length,
      plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Run {
  offences: string[];
  read: number;
  refused: number;
  processes: number;
}

async function breakFiles(folder: string, n: number, seed: number, fault: PlantedFault | null): Promise<Run> {
  const random = createRandom(seed);
  const seeds = seedFiles(random);
  const path = join(folder, 'broken');
  const run: Run = { offences: [], read: 0, refused: 0, processes: 0 };
  const kept: Uint8Array[] = [];
  let floorMiB = Number.NaN;
  for (let file = 0; file < n; file += 1) {
    const broken = random() < 0.1 ? fileOfBrokenFrames(random) : mutateFile(seeds, random);
    writeFileSync(path, broken.bytes);
    const options = anyOptions(random);
    const started = performance.now();
    let why: string | null;
    try {
      if (fault === 'leaks') kept.push(new Uint8Array(1 << 20).fill(1));
      const printed = spoil(await readInProcess([path], options), fault);
      why = judge(printed, options, broken);
      if (printed.status === 0) run.read += 1;
      else run.refused += 1;
      if (why === null && fault === null && file % filesPerProcess === 0) {
        run.processes += 1;
        why = judgeProcess(path, options, printed);
      }
    } catch (error) {
      why = `it threw ${error instanceof Error ? error.stack : String(error)}`;
    }
    if (why === null && performance.now() - started > hungMs) why = 'it hung';
    if (why !== null)
      run.offences.push(`file ${file} (${broken.format}, ${JSON.stringify(options)}): ${why}`);
    if (file === Math.floor(n / 10)) floorMiB = residentMiB();
    if (run.offences.length > 100) break;
  }
  const grownMiB = residentMiB() - floorMiB;
  if (grownMiB > growthMiB) run.offences.push(`memory grew by ${grownMiB} MiB`);
  return run;
}

const options: readonly ReadOptions[] = [
  {},
  { top: '0' },
  { minutes: true },
  { minutes: true, top: '3', sort: 'name' },
  { sort: 'time', name: ['*example*'] },
  { local: ['192.0.2.0/24'], port: ['443'] },
];

/** Tables and JSON by turns, with and without minutes, filters and spans of time. */
function anyOptions(random: () => number): ReadOptions {
  const chosen = { ...options[Math.floor(random() * options.length)]! };
  if (random() < 0.5) chosen.json = true;
  if (random() < 0.1) chosen.from = '+10s';
  if (random() < 0.1) chosen.to = '23:59';
  return chosen;
}

/** The fault that is planted, put into what was printed. */
function spoil(printed: PrintedReading, fault: PlantedFault | null): PrintedReading {
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
  return printed;
}

/** What is wrong with what was printed, null when nothing is. */
function judge(
  { status, stdout, stderr }: PrintedReading,
  asked: ReadOptions,
  file: SeedFile,
): string | null {
  if (status === 2)
    return stdout === '' && stderr !== '' ? null : 'it printed something and refused the file';
  if (status !== 0) return `exit code ${status}`;
  const counted = asked.json ? countsOfJson(stdout, asked) : countsOfTables(stdout);
  if (typeof counted === 'string') return counted;
  const { packets, ip, nonIp, dropped } = counted;
  if (packets !== ip + nonIp + dropped) return `${packets} packets are not ${ip} + ${nonIp} + ${dropped}`;
  // A packet takes 16 bytes of a file at least; what is packed may be smaller.
  const isPacked = /gzip|zstd/.test(file.format);
  if (!isPacked && packets * 16 > file.bytes.length)
    return `${packets} packets in ${file.bytes.length} bytes`;
  return null;
}

interface Counts {
  packets: number;
  ip: number;
  nonIp: number;
  dropped: number;
}

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(\d{3})?Z$/;

function countsOfJson(stdout: string, asked: ReadOptions): Counts | string {
  let document: Record<string, { [field: string]: unknown }[]> & { capture: Record<string, number> };
  try {
    document = JSON.parse(stdout);
  } catch (error) {
    return `the JSON does not parse: ${(error as Error).message}`;
  }
  const { capture } = document;
  const lists = [
    'flows',
    'dns',
    'hosts',
    'conversations',
    'applications',
    ...(asked.minutes ? ['minutes'] : []),
  ];
  for (const list of lists) if (!Array.isArray(document[list])) return `the JSON has no ${list}`;
  const times = [capture.first_at, capture.last_at];
  if (capture.packets! > 0 && !times.every((time) => timePattern.test(String(time))))
    return `times ${times.join(', ')}`;
  const sum = (list: string, field: string) =>
    document[list]!.reduce((total, row) => total + (row[field] as number), 0);
  if (asked.minutes && sum('minutes', 'packets') !== capture.packets) return 'the minutes are not the whole';
  const isWhole = !asked.name && !asked.port;
  if (
    isWhole &&
    sum('applications', 'inbound_bytes') + sum('applications', 'outbound_bytes') !== capture.bytes
  )
    return 'the applications are not complete';
  if (
    isWhole &&
    sum('conversations', 'bytes_a_to_b') + sum('conversations', 'bytes_b_to_a') !== capture.bytes
  )
    return 'the conversations are not complete';
  return {
    packets: capture.packets!,
    ip: capture.ip_packets!,
    nonIp: capture.non_ip!,
    dropped: capture.parser_dropped!,
  };
}

function countsOfTables(stdout: string): Counts | string {
  const lines = stdout.split('\n');
  const numbers = (line: string | undefined) =>
    [...(line ?? '').matchAll(/[\d,]+(?= (?:packets|IP|not IP|malformed))/g)].map(([text]) =>
      Number(text.replaceAll(',', '')),
    );
  const [packets] = numbers(lines[0]);
  const [ip, nonIp, dropped] = numbers(lines.find((line) => line.endsWith('malformed or cut')));
  if (packets === undefined || ip === undefined || nonIp === undefined || dropped === undefined)
    return `no summary: ${lines.slice(0, 3).join(' / ')}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: nothing from a file may steer a terminal.
  if (/[\u0000-\u0009\u000b-\u001f\u007f]/.test(stdout)) return 'a control character was printed';
  if (/NaN|undefined|Infinity|\[object/.test(stdout)) return 'a value has no text';
  return { packets, ip, nonIp, dropped };
}

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The same file through the real command line. */
function judgeProcess(path: string, asked: ReadOptions, expected: PrintedReading): string | null {
  const words = Object.entries(asked).flatMap(([option, value]) =>
    value === true ? [`--${option}`] : [value].flat().map((text) => `--${option}=${text}`),
  );
  const { status, signal, stdout } = spawnSync(
    process.execPath,
    [join(root, 'svc.ts'), 'sensor', 'read', path, ...words],
    { encoding: 'utf8', env: { ...process.env, NODE_NO_WARNINGS: '1' } },
  );
  if (status !== expected.status) return `the process ended with ${status ?? signal}, not ${expected.status}`;
  return stdout === expected.stdout ? null : 'the process printed something else';
}

function residentMiB(): number {
  globalThis.gc?.();
  return Math.round(process.memoryUsage().rss / 1_048_576);
}
