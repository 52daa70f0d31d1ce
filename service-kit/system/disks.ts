/** Disks that hold a program's data: sampled once a minute, and judged by what is free and by how fast that falls. */
import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { formatBytes, formatDuration, formatPercent } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type DiskState, insertDiskSample } from './store.ts';

const sampleEveryMs = 60_000;
/** A sample of a machine that has stopped says nothing about its disk now. */
const currentSeconds = 300;
/** Free part of a disk, and hours until it is full. Between the two limits nothing changes, so that an alert does not flap. */
export const diskLimits = { share: { bad: 0.05, good: 0.07 }, hours: { bad: 12, good: 16 } };
/** A shorter observation says nothing about the hours that are left: a backup that is written takes minutes. */
const observedSecondsMin = 3600;

export interface DiskWatchDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  /** Data folder of the program. */
  folder: string;
  /** Bytes of the disk with this folder; `statfs` outside of tests. */
  readDisk?: (folder: string) => Promise<{ freeBytes: number; totalBytes: number }>;
}

/** Samples the disk of this process's data folder; may run in every process of a machine. */
export function createDiskWatch({ db, clock, reporter, folder, readDisk = readFree }: DiskWatchDeps): Part & {
  /** One sample now. */
  sample(): Promise<void>;
} {
  let abort = new AbortController();
  let finished: Promise<void> = Promise.resolve();
  const sample = async () =>
    insertDiskSample(db(), { host: hostname(), path: folder, ...(await readDisk(folder)) });
  async function loop(): Promise<void> {
    while (!abort.signal.aborted) {
      await sample().catch((error) =>
        reporter.debug('no sample of the disk', { folder, error: describeError(error) }),
      );
      await clock.wait(sampleEveryMs, abort.signal);
    }
  }
  return {
    name: 'disk watch',
    sample,
    async start() {
      abort = new AbortController();
      finished = loop();
    },
    async stop() {
      abort.abort();
      await finished;
    },
  };
}

/** A program with a database by URL may not have made its folder yet. */
async function readFree(folder: string): Promise<{ freeBytes: number; totalBytes: number }> {
  const { bavail, blocks, bsize } = await statfs(folder).catch(() => statfs(dirname(folder)));
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** Hours until the disk is full at the speed of the last six hours; null where it does not fill, or is watched for under an hour. */
export function hoursLeft({ freeBytes, lostBytes, observedSeconds }: DiskState): number | null {
  if (observedSeconds < observedSecondsMin || lostBytes <= 0) return null;
  return (freeBytes / lostBytes) * (observedSeconds / 3600);
}

export function judgeDisk(disk: DiskState): SystemSubject {
  const share = disk.freeBytes / Math.max(1, disk.totalBytes);
  const hours = hoursLeft(disk) ?? Number.POSITIVE_INFINITY;
  const { share: shares, hours: times } = diskLimits;
  const isBad = share <= shares.bad || hours <= times.bad;
  const isGood = share >= shares.good && hours >= times.good;
  return {
    kind: 'disk_filling',
    key: `disk:${disk.host}:${disk.path}`,
    name: `${disk.path} on ${disk.host}`,
    verdict: disk.ageSeconds > currentSeconds ? 'unknown' : isBad ? 'bad' : isGood ? 'good' : 'unknown',
    details: {
      free_bytes: disk.freeBytes,
      free_share: Math.round(share * 10_000) / 10_000,
      hours_left: Number.isFinite(hours) ? Math.round(hours * 10) / 10 : null,
    },
  };
}

// What can fail in a program itself, judged from stored facts, for alerts and pages of both programs.

export type SystemKind = 'disk_filling' | 'loop_failing';

/** `unknown` is also what lies between the limits: it neither opens nor resolves an alert. */
export interface SystemSubject {
  kind: SystemKind;
  /** `disk:HOST:PATH`, `loop:NAME`. */
  key: string;
  name: string;
  verdict: 'bad' | 'good' | 'unknown';
  /** Measured values, for people and receivers of webhooks. */
  details: Record<string, string | number | boolean | null>;
}

/** The measured values in one sentence without its full stop. */
export function measuredOfSystem(kind: SystemKind, details: SystemSubject['details']): string {
  if (kind === 'disk_filling') {
    const free = `${formatBytes(Number(details.free_bytes))} free (${formatPercent(Number(details.free_share))})`;
    const hours = details.hours_left === null ? null : Number(details.hours_left);
    return hours === null ? free : `${free}, full in ${formatDuration(hours * 3600)} at the present speed`;
  }
  const since = formatDuration(Number(details.seconds));
  return details.error === null
    ? `it has not run for ${since}`
    : `it has failed for ${since}: ${details.error}`;
}

export const systemKindNames: Readonly<Record<SystemKind, string>> = {
  disk_filling: 'Disk almost full',
  loop_failing: 'Background task failing',
};
