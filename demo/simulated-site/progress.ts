/** How far the history of the simulated site is loaded, and how long the rest may take. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Progress {
  /** Whole percent; 100 only when nothing is missing. */
  percent: number;
  /** Null while too little is known. */
  secondsLeft: number | null;
}

export const progressFileOf = (dataDir: string) => join(dataDir, 'demo', 'simulated-site-progress.json');

export function readProgress(file: string): Progress | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Progress;
  } catch {
    return null;
  }
}

export function writeProgress(file: string, progress: Progress): void {
  writeFileSync(`${file}.new`, JSON.stringify(progress));
  renameSync(`${file}.new`, file);
}

/** A sentence for people: `34 %, about 3 min left`. */
export function describeProgress({ percent, secondsLeft }: Progress): string {
  if (percent >= 100) return 'loaded';
  if (secondsLeft === null) return `${percent} %`;
  const left =
    secondsLeft < 90 ? `${Math.max(1, Math.round(secondsLeft))} s` : `${Math.round(secondsLeft / 60)} min`;
  return `${percent} %, about ${left} left`;
}

/** Says each percent once: the last one may take minutes. */
export function createTeller(say: (text: string) => void): (progress: Progress) => void {
  let told: number | null = null;
  return (progress) => {
    if (progress.percent !== told) say(describeProgress(progress));
    told = progress.percent;
  };
}

/** Says how far loading is from counts of minutes; the rate is of the whole time since the first count. */
export function createEstimate(startMs: number, loadedAtStart: number) {
  return (nowMs: number, { loaded, total }: { loaded: number; total: number }): Progress => {
    const missing = total - loaded;
    const perMs = (loaded - loadedAtStart) / Math.max(1, nowMs - startMs);
    return {
      percent: missing <= 0 ? 100 : Math.min(99, Math.floor((100 * loaded) / total)),
      secondsLeft: missing <= 0 ? 0 : perMs > 0 ? Math.ceil(missing / perMs / 1000) : null,
    };
  };
}
