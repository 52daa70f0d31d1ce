/** Sensors in processes of their own, on a clock that runs many times as fast, to be killed. */

import { spawn } from 'node:child_process';
import type { Clock } from '#common/clock/index.ts';

interface FastTime {
  /** Wall time at which the fast clock showed `startMinute`. */
  epochMs: number;
  startMinute: number;
  speed: number;
}

export function fastClock({ epochMs, startMinute, speed }: FastTime): Clock {
  return {
    nowMs: () => startMinute * 1000 + (Date.now() - epochMs) * speed,
    monotonicMs: () => performance.now() * speed,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const timer = setTimeout(resolve, ms / speed);
        signal?.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve();
        });
      }),
  };
}

/** Starts a program that prints `runs` once it does, and then a line for all that it has committed. */
export function startToKill(path: string, input: object, onCommitted: (line: string) => void) {
  const words = ['--disable-warning=ExperimentalWarning', path, JSON.stringify(input)];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  let rest = '';
  const runs = new Promise<void>((resolve) => {
    child.stdout.on('data', (piece: Buffer) => {
      const lines = (rest + piece.toString()).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        if (line === 'runs') resolve();
        else onCommitted(line);
      }
    });
  });
  return {
    runs,
    /** The exit code, once all that it wrote was read. */
    gone: new Promise<number | null>((resolve) => child.once('close', resolve)),
    kill: () => child.kill('SIGKILL'),
  };
}
