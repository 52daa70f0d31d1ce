/**
 * Proof by full storage: while the monitor is away minutes fill a disk of 4, 8 or 16 MiB, or the spool's own limits,
 * until collection pauses; then there is room again, by delivery or on the disk.
 *
 * Nothing that was pending may be lost, what was refused must be one gap for each minute and no other, the pause must be
 * said, and the log must stay within its bound. Needs root to mount the disks.
 */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestClock } from '#common/clock/index.ts';
import { seededRandom } from '#common/random/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { MinuteCollector } from '#sensor/collection/minute-collector.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool, type Spool } from '#sensor/spool/index.ts';
import { firstMinute, sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';

export const name = 'sensor-storage-full';

const mebibyte = 1024 * 1024;
const minutesMax = 6000;
const retainedLogMax = 4 * mebibyte;

export interface StorageLimit {
  label: string;
  /** Size of the disk; null for the machine's own. */
  diskMiB: number | null;
  spoolMiB: number;
  /** Text in a minute that does not compress, which decides whether payloads or pages run out first. */
  textBytes: number;
}

export const storageLimits: readonly StorageLimit[] = [
  { label: 'a disk of 4 MiB', diskMiB: 4, spoolMiB: 64, textBytes: 30_000 },
  { label: 'a disk of 8 MiB', diskMiB: 8, spoolMiB: 64, textBytes: 60_000 },
  { label: 'a disk of 16 MiB', diskMiB: 16, spoolMiB: 64, textBytes: 90_000 },
  { label: 'four fifths of 4 MiB in payloads', diskMiB: null, spoolMiB: 4, textBytes: 60_000 },
  { label: 'the pages of 1 MiB', diskMiB: null, spoolMiB: 1, textBytes: 2300 },
];

type Plant = 'oldest_dropped' | 'gap_forgotten' | null;

export interface StorageFullOptions {
  /** Rounds of each limit. */
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove(options: StorageFullOptions) {
  const { offences, paused, stored } = fillStorages(options, null);
  for (const offence of offences) options.report(offence);
  let caught = 0;
  for (const plant of ['oldest_dropped', 'gap_forgotten'] as const) {
    const found = fillStorages({ ...options, n: 1 }, plant).offences;
    options.report(`planted ${plant}: ${found[0] ?? 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim: `${storageLimits.length} limits: ${stored} pending minutes kept, ${paused} paused ones are exactly the gaps`,
    tried: options.n * storageLimits.length,
    failures: offences.length,
    plantedBugsCaught: `${caught} of 2`,
  };
}

export interface StorageFullResult {
  offences: string[];
  stored: number;
  paused: number;
}

/** Fills each storage `n` times. */
export function fillStorages({ n, seed, report }: StorageFullOptions, plant: Plant): StorageFullResult {
  const random = seededRandom(seed);
  const sum: StorageFullResult = { offences: [], stored: 0, paused: 0 };
  for (const limit of storageLimits) {
    for (let round = 0; round < n; round += 1) {
      const one = withDisk(limit, (directory, enlarge) => fillOnce(limit, directory, enlarge, random, plant));
      sum.stored += one.stored;
      sum.paused += one.paused;
      sum.offences.push(...one.offences.map((what) => `${limit.label}, round ${round + 1}: ${what}`));
    }
    report(`${limit.label}: ${sum.stored} minutes kept so far, ${sum.paused} paused`);
  }
  return sum;
}

/** Runs `work` with a folder on the limit's disk; `enlarge` doubles the disk, or is null where there is none. */
function withDisk<T>(limit: StorageLimit, work: (directory: string, enlarge: (() => void) | null) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'svc-full-'));
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  const mount = (options: string) => {
    const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`no disk: ${stderr}`);
  };
  if (limit.diskMiB !== null) mount(`size=${limit.diskMiB}m`);
  try {
    const enlarge = limit.diskMiB === null ? null : () => mount(`remount,size=${limit.diskMiB! * 2}m`);
    return work(join(disk, 'state'), enlarge);
  } finally {
    if (limit.diskMiB !== null) spawnSync('umount', [disk]);
    rmSync(folder, { recursive: true, force: true });
  }
}

function fillOnce(
  limit: StorageLimit,
  directory: string,
  enlarge: (() => void) | null,
  random: () => number,
  plant: Plant,
): StorageFullResult {
  const clock = createTestClock(firstMinute * 1000);
  const log: string[] = [];
  const reporter = createReporter({ program: 'sensor', write: (line) => log.push(line) });
  const bytesMax = limit.spoolMiB * mebibyte;
  const spool = createSpool({
    directory,
    bytesMax,
    kinds: recordKinds,
    sensorVersion: '0.1.0',
    clock,
    reporter,
  });
  spool.open();
  const refused = new Set<number>();
  const collector = new MinuteCollector({
    captures: ['eth0'],
    reporter,
    onCommitted: () => {},
    spool: watch(spool, refused, plant),
  });
  const offences: string[] = [];
  let minute = firstMinute;
  const collect = () => {
    if (minute === firstMinute) collector.start(steadyMoment(minute * 1000));
    collector.listening('eth0', minute * 1000, 0);
    collector.report(minuteOf(minute, limit.textBytes), null);
    minute += 60;
    collector.tick(steadyMoment(minute * 1000 + 2500));
    const logFile = join(directory, 'spool-1.sqlite-wal');
    if (existsSync(logFile) && statSync(logFile).size > retainedLogMax)
      offences.push(`the log has ${statSync(logFile).size} bytes`);
  };
  while (refused.size === 0 && minute < firstMinute + minutesMax * 60) collect();
  const stored = spool.status().pendingUploads;
  if (refused.size === 0) offences.push(`${stored} minutes did not fill it`);
  const pausedMinutes = 1 + Math.floor(random() * 5);
  for (let i = 0; i < pausedMinutes; i += 1) collect();
  if (!log.some((line) => line.includes('collection pauses'))) offences.push('the pause is not said');
  if (spool.status().pendingUploads < stored) offences.push('a pending upload is gone');
  const uploads: TelemetryUpload[] = [];
  // Room comes back by delivery of some, or from the disk.
  if (enlarge && random() < 0.5) enlarge();
  else deliver(spool, uploads, Math.ceil(stored / 3), plant);
  for (let i = 0; i < 3; i += 1) collect();
  deliver(spool, uploads, Number.POSITIVE_INFINITY, plant);
  // A small disk may need all of its room back first.
  for (let i = 0; i < 3; i += 1) collect();
  if (!log.some((line) => line.includes('collecting again'))) offences.push('that it goes on is not said');
  deliver(spool, uploads, Number.POSITIVE_INFINITY, plant);
  spool.close();
  offences.push(...compare(uploads, minute, refused));
  return { offences, stored, paused: refused.size };
}

/** The spool; a minute is refused when its last attempt to be stored failed. */
function watch(spool: Spool, refused: Set<number>, plant: Plant): Spool {
  return {
    ...spool,
    append(minutes, gaps) {
      try {
        spool.append(
          minutes,
          plant === 'gap_forgotten' ? gaps.filter((gap) => gap.reason !== 'storage_full') : gaps,
        );
        for (const { minute } of minutes) refused.delete(minute);
      } catch (error) {
        for (const { minute } of minutes) refused.add(minute);
        throw error;
      }
    },
  };
}

function deliver(spool: Spool, uploads: TelemetryUpload[], count: number, plant: Plant): void {
  for (let i = 0; i < count; i += 1) {
    const next = spool.oldest();
    if (!next) return;
    if (plant !== 'oldest_dropped' || uploads.length > 0 || i > 0)
      uploads.push(decodeUpload(decompressUpload(next.body, 'zstd')));
    spool.acknowledge(next, 'accepted');
  }
}

function compare(
  uploads: readonly TelemetryUpload[],
  endMinute: number,
  refused: ReadonlySet<number>,
): string[] {
  const offences: string[] = [];
  const arrived = uploads.flatMap((upload) => upload.minutes.map((one) => one.minute));
  const counts = new Map<number, number>();
  for (const minute of arrived) counts.set(minute, (counts.get(minute) ?? 0) + 1);
  const gaps = new Set<number>();
  for (const { fromMinute, toMinute } of uploads.flatMap((upload) => upload.gaps))
    for (let minute = fromMinute; minute <= toMinute; minute += 60) gaps.add(minute);
  for (let minute = firstMinute; minute < endMinute; minute += 60) {
    const at = `minute ${(minute - firstMinute) / 60}`;
    const count = counts.get(minute) ?? 0;
    if (count > 1) offences.push(`${at} arrived ${count} times`);
    if (count === 0 && !gaps.has(minute)) offences.push(`${at} is missing without a gap`);
    if (gaps.has(minute) !== refused.has(minute))
      offences.push(
        `${at} ${gaps.has(minute) ? 'is a gap though it was stored' : 'was refused and is no gap'}`,
      );
  }
  return offences;
}

function minuteOf(minute: number, textBytes: number): TelemetryMinute {
  const nameBytes = 64;
  const usage = Array.from({ length: Math.ceil(textBytes / nameBytes) }, (_, i) => ({
    client: '192.0.2.1',
    server: '192.0.2.2',
    protocol: 6,
    serverPort: 443,
    direction: 'outbound' as const,
    // A checksum of so many bytes does not compress.
    name: createHash('sha512').update(`${minute} ${i}`).digest('hex'),
    evidence: 'tls_sni' as const,
    clientBytes: 1,
    serverBytes: 1,
    packets: 2,
    clientLastSentMs: 0,
    serverLastSentMs: 0,
  }));
  return { ...sampleMinute(minute, minute), usage };
}
