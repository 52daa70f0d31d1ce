/**
 * Kills the sensor and reports the minutes that it can not have observed completely: from its kill until its log says
 * that all its captures listen again, and the previous minute if it was not on disk yet.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';

export interface Death {
  /** Wall time before the kill. */
  fromMs: number;
  /** Length of the log at the kill. */
  logEnd: number;
  /** The spool contained the previous minute. A sensor collects a minute some seconds after its end. */
  isMinuteBeforeKept: boolean;
}

export interface DeafTime {
  fromMs: number;
  toMs: number;
}

const minuteMs = 60_000;
const spoolBytesMax = 160 * 1024 * 1024;

export interface SensorToKill {
  pid: number;
  /** Directory of its spool. */
  stateDirectory: string;
  readLog(): string;
}

/**
 * Kills the sensor; null when it had already ended.
 *
 * It is stopped first, and its log and spool are read before the kill, so that both belong to this life even if this
 * process is delayed.
 */
export async function killSensor({ pid, stateDirectory, readLog }: SensorToKill): Promise<Death | null> {
  const fromMs = Date.now();
  process.kill(pid, 'SIGSTOP');
  try {
    if (!(await isStopped(pid))) return null;
    const minuteBefore = Math.floor(fromMs / minuteMs) * 60 - 60;
    const isMinuteBeforeKept = isKept(stateDirectory, minuteBefore);
    return { fromMs, logEnd: readLog().length, isMinuteBeforeKept };
  } finally {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It had ended.
    }
  }
}

/** Waits until the kernel has stopped the process; false when it is gone. */
async function isStopped(pid: number): Promise<boolean> {
  for (;;) {
    const state = readState(pid);
    if (state === 'T') return true;
    if (state === null || state === 'Z' || state === 'X') return false;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

function readState(pid: number): string | null {
  try {
    return /\) (.) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))![1]!;
  } catch {
    return null;
  }
}

/** True when the spool contains this minute or a gap for it. Reads a copy, as the next start would. */
function isKept(stateDirectory: string, minute: number): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'svc-spool-copy-'));
  try {
    const filter = (path: string) => statSync(path).isDirectory() || statSync(path).isFile();
    cpSync(stateDirectory, directory, { recursive: true, filter });
    const spool = createSpool({
      directory,
      bytesMax: spoolBytesMax,
      sensorVersion: '',
      kinds: recordKinds,
      clock: systemClock,
      reporter: silentReporter,
    });
    spool.open();
    try {
      return spool.isCovered(minute);
    } finally {
      spool.close();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Null while the sensor does not listen again after one of the kills. `log` is the whole log of all its lives. */
export function findDeafTimes(log: string, deaths: readonly Death[]): DeafTime[] | null {
  const captures = findCaptures(log);
  if (!captures) throw new Error(`the log of the sensor does not say which captures it runs:\n${log}`);
  const times: DeafTime[] = [];
  for (const { fromMs, logEnd, isMinuteBeforeKept } of deaths) {
    const lines = log.slice(logEnd).split('\n');
    const ends = captures.map((name) => {
      const line = lines.find((one) => isListening(one, name));
      return line ? momentAfter(fromMs, line.slice(0, 8)) : Number.POSITIVE_INFINITY;
    });
    const toMs = Math.max(...ends);
    if (!Number.isFinite(toMs)) return null;
    times.push({ fromMs: isMinuteBeforeKept ? fromMs : fromMs - minuteMs, toMs });
  }
  return times;
}

/** Minutes, in seconds, that overlap one of these times. */
export function minutesOf(times: readonly DeafTime[]): Set<number> {
  const minutes = new Set<number>();
  for (const { fromMs, toMs } of times) {
    const first = Math.floor(fromMs / minuteMs) * 60;
    for (let minute = first; minute * 1000 <= toMs; minute += 60) minutes.add(minute);
  }
  return minutes;
}

/** True when the sensor runs and each of its captures has listened. */
export function hasListened(log: string): boolean {
  const lines = log.split('\n');
  return findCaptures(log)?.every((name) => lines.some((line) => isListening(line, name))) ?? false;
}

function isListening(line: string, capture: string): boolean {
  return line.includes('capture listens') && line.endsWith(`capture=${capture}`);
}

/** Names of the captures that the sensor logged at its start; null before. */
function findCaptures(log: string): string[] | null {
  const [, list] = /sensor runs .*captures="?([^\s"]+)/.exec(log) ?? [];
  return list?.split(',').map((entry) => entry.slice(entry.indexOf(':') + 1)) ?? null;
}

/** The end of the first second after `fromMs` whose time of day, in UTC, is `clockText`. */
function momentAfter(fromMs: number, clockText: string): number {
  const dayMs = 86_400_000;
  const endMs = Date.parse(`1970-01-01T${clockText}Z`) + 1000;
  return fromMs + ((((endMs - fromMs) % dayMs) + dayMs) % dayMs);
}
