/**
 * Proof by model: simulated lives of a sensor whose host's clock is set forwards and backwards by seconds to decades,
 * and which is suspended, killed and restarted, while the monitor is away or its answers are lost
 * (`proofs/sensor/collection/clock-history.ts`).
 *
 * At the end every heard frame is checked. It is stored once, or was lost with the sensor before its minute was
 * committed. A frame stamped by a right clock is in its own minute; so is one stamped by a clock that was ahead, once
 * the clock was set. A minute without a gap spans one minute. No gap covers a completely heard minute or future time.
 * Time that was not heard while the clock was right has a gap. No upload stays pending.
 */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import { captureNames } from './clock-capture.ts';
import { playLife } from './clock-history.ts';
import type { Frame, Life, StoredMinute } from './clock-life.ts';
import { type ClockPlant, clockPlants } from './clock-plants.ts';

export const name = 'clock-steps';

/** Number of lives in which each planted fault must be found. */
const plantedLives = 400;
const aheadSecondsMax = 300;

export interface ClockStepsOptions {
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: ClockStepsOptions) {
  const result = await runLives(n, seed, null);
  for (const offence of result.offences.slice(0, 20)) report(offence);
  let caught = 0;
  for (const plant of clockPlants) {
    const planted = await runLives(Math.min(plantedLives, n), seed, plant);
    report(`planted ${plant}: ${planted.offences[0] ?? 'NOT NOTICED'}`);
    if (planted.offences.length > 0) caught += 1;
  }
  return {
    claim: `clocks set ahead and back by up to 30 years, sleeps, kills: each of ${result.frames} frames is stored once in its minute or was lost uncommitted; no gap covers heard time, and one covers all other time`,
    tried: n,
    failures: result.failed,
    plantedBugsCaught: `${caught} of ${clockPlants.length}`,
  };
}

/** Replays one life by the number in its offence. */
export async function replay({ only, report }: { only: number; report(line: string): void }) {
  const result = await runLives(1, 0, null, () => only);
  for (const offence of result.offences) report(offence);
  return { failures: result.failed };
}

/**
 * No life includes a power loss, and a killed sensor keeps the data that the kernel has taken; so a folder in memory is
 * enough.
 */
function lifeFolder(): string {
  const memory = process.env.SVC_PROOF_MEMORY ?? '/dev/shm';
  return mkdtempSync(join(existsSync(memory) ? memory : tmpdir(), 'svc-clock-'));
}

/** Simulates lives; with a planted fault until one is found. */
export async function runLives(
  n: number,
  seed: number,
  plant: ClockPlant | null,
  seedOf = (i: number) => seed * 1_000_003 + i,
) {
  const folder = lifeFolder();
  const result = { frames: 0, failed: 0, offences: [] as string[] };
  try {
    for (let i = 0; i < n && (plant === null || result.failed === 0); i += 1) {
      const lifeSeed = seedOf(i);
      const life = await playLife(seededRandom(lifeSeed), join(folder, String(i)), plant);
      const offences = judgeLife(life);
      result.frames += life.frames.length;
      if (offences.length > 0) result.failed += 1;
      result.offences.push(...offences.map((offence) => `life ${lifeSeed}: ${offence}`));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return result;
}

const minuteOf = (ms: number) => Math.floor(ms / 60_000) * 60;

/** All errors in the stored data. */
export function judgeLife(life: Life): string[] {
  return [...judgeFrames(life), ...judgeMinutes(life), ...judgeGaps(life), ...judgeDowntimes(life)];
}

function judgeFrames(life: Life): string[] {
  const offences: string[] = life.pending > 0 ? [`${life.pending} uploads stay pending`] : [];
  const found = new Map<number, StoredMinute[]>();
  for (const stored of life.stored) {
    for (const { address } of stored.minute.hosts) {
      const id = idOf(address);
      found.set(id, [...(found.get(id) ?? []), stored]);
    }
  }
  for (const frame of life.frames) {
    const minutes = found.get(frame.id) ?? [];
    if (minutes.length > 1) offences.push(`frame ${frame.id} is stored in ${minutes.length} minutes`);
    // In a boot without a known time, data that seems too old is refused as such (NET-7.1).
    const isTooOld =
      frame.aheadMs < -89 * 86_400_000 &&
      frame.bootId !== life.lastBootId &&
      !life.contacts.has(frame.bootId);
    if (minutes.length === 0 && !frame.mayBeLost && !isTooOld)
      offences.push(`frame ${frame.id}, heard ${frame.aheadMs / 1000} s ahead, is lost`);
    if (minutes.length === 1) offences.push(...judgePlace(frame, minutes[0]!, life));
  }
  return offences;
}

function judgePlace(frame: Frame, { minute: { minute }, upload }: StoredMinute, life: Life): string[] {
  if (frame.isNearEvent) return [];
  const own = minuteOf(frame.trueMs);
  const off = Math.abs(minute - own);
  if (frame.aheadMs === 0 && off > 0) return [`frame ${frame.id} of a right clock lies ${off} s off`];
  const isMoved =
    frame.aheadMs > aheadSecondsMax * 1000 && frame.bootId === life.lastBootId && !life.uncertain.has(upload);
  // A clock within minutes of the right time is accepted, and may have moved the minute.
  const isOffBy = life.frames.some(
    (one) => one.aheadMs !== 0 && Math.abs(one.aheadMs) <= aheadSecondsMax * 1000,
  );
  if (isMoved && off > (isOffBy ? 60 + aheadSecondsMax : 60))
    return [`frame ${frame.id}, heard ${frame.aheadMs / 1000} s ahead, lies ${off} s off`];
  return [];
}

/** A minute without a gap spans at most one minute, by any clock. */
function judgeMinutes(life: Life): string[] {
  const parts = new Map<string, number[]>();
  for (const { minute } of life.stored) {
    const key = `${minute.capture} ${minute.minute}`;
    const times = minute.hosts.map((host) => life.frames[idOf(host.address) - 1]!.trueMs);
    parts.set(key, [...(parts.get(key) ?? []), ...times]);
  }
  const offences: string[] = [];
  for (const [key, times] of parts) {
    const [capture, minute] = [key.slice(0, key.indexOf(' ')), Number(key.slice(key.indexOf(' ') + 1))];
    const span = Math.max(...times) - Math.min(...times);
    if (times.length > 1 && span > 62_000 && !isNamed(life, capture, minute))
      offences.push(`minute ${minute} of ${capture} spans ${span / 1000} s without a gap`);
  }
  return offences;
}

function judgeGaps(life: Life): string[] {
  const offences: string[] = [];
  for (const { gap, storedAtMs } of life.gaps) {
    if (gap.toMinute * 1000 > storedAtMs + aheadSecondsMax * 1000) offences.push('a gap is in the future');
  }
  // Minutes of a right clock, far from all events, must be stored once and complete.
  const counts = new Map<string, number>();
  for (const { minute } of life.stored) {
    const key = `${minute.capture} ${minute.minute}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  for (const { minute } of life.stored) {
    const { minute: start, capture, observedMs, hosts } = minute;
    const isQuiet = life.events.every((at) => Math.abs(at - (start + 30) * 1000) > 95_000);
    const isRight =
      hosts.length > 0 && hosts.every((host) => life.frames[idOf(host.address) - 1]!.aheadMs === 0);
    if (!isQuiet || !isRight || observedMs < 60_000 || counts.get(`${capture} ${start}`) !== 1) continue;
    if (isNamed(life, capture, start))
      offences.push(`minute ${start} of ${capture} was heard completely but has a gap`);
  }
  return offences;
}

/** Time that was not heard has a gap, unless a minute of another clock has its place. */
function judgeDowntimes(life: Life): string[] {
  const known = new Set(life.stored.map(({ minute }) => `${minute.capture} ${minute.minute}`));
  const offences: string[] = [];
  for (const { fromMs, toMs } of life.downtimes) {
    for (let minute = Math.ceil(fromMs / 60_000) * 60; (minute + 60) * 1000 <= toMs; minute += 60) {
      for (const capture of captureNames) {
        if (!known.has(`${capture} ${minute}`) && !isNamed(life, capture, minute))
          offences.push(`minute ${minute} of ${capture} was not heard but has no gap`);
      }
    }
  }
  return offences;
}

function isNamed(life: Life, capture: string, minute: number): boolean {
  return life.gaps.some(
    ({ gap }) =>
      (gap.capture === '' || gap.capture === capture) && gap.fromMinute <= minute && minute <= gap.toMinute,
  );
}

function idOf(address: string): number {
  const [, a, b, c] = address.split('.').map(Number);
  return (a! << 16) | (b! << 8) | c!;
}
