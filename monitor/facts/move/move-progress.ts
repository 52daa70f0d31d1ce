/** What a move says of itself while it copies. */
import type { Clock } from '#common/clock/index.ts';

export type MoveProgress = ReturnType<typeof createMoveProgress>;

interface Measured {
  captureMinutes: number;
}

const everyMs = 5_000;

export function createMoveProgress(clock: Clock, say: (line: string) => void) {
  let days = { done: 0, total: 0 };
  let minutes = { done: 0, left: 0 };
  let rows = 0;
  let begunMs = clock.monotonicMs();
  let saidMs = begunMs;
  const sum = (of: readonly Measured[]) => of.reduce((total, one) => total + one.captureMinutes, 0);
  const line = () => {
    const seconds = Math.max((clock.monotonicMs() - begunMs) / 1000, 0.001);
    const leftSeconds = minutes.done === 0 ? null : (seconds / minutes.done) * minutes.left;
    const rest = leftSeconds === null ? '' : `, ${durationText(leftSeconds)} left`;
    say(
      `${days.done} of ${days.total} days of sites, ${count(rows)} rows, ${count(rows / seconds)} rows/s${rest}`,
    );
    saidMs = clock.monotonicMs();
  };
  return {
    /** Of these days so many are left. */
    begin(all: readonly Measured[], left: readonly Measured[]) {
      days = { done: all.length - left.length, total: all.length };
      minutes = { done: 0, left: sum(left) };
      rows = 0;
      begunMs = clock.monotonicMs();
      if (left.length > 0) line();
    },
    addRows(more: number) {
      rows += more;
      if (clock.monotonicMs() - saidMs >= everyMs) line();
    },
    addDay(captureMinutes: number) {
      days.done += 1;
      minutes.done += captureMinutes;
      minutes.left -= captureMinutes;
      if (days.done === days.total || clock.monotonicMs() - saidMs >= everyMs) line();
    },
  };
}

const count = (value: number): string => Math.round(value).toLocaleString('en-US');

function durationText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.ceil((seconds % 3600) / 60)} min`;
}
