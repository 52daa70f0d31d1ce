/** A progress line on the terminal for long files; nothing without a terminal. */
import type { WriteStream } from 'node:tty';
import type { CaptureFile } from '#sensor/capture-files/index.ts';

const everyMs = 200;
/** Shorter readings show no line. */
const silentMs = 700;

export interface Progress {
  show(file: CaptureFile, packets: number): void;
  clear(): void;
}

/** Creates the line; null without a terminal. */
export function createProgress(terminal: Pick<WriteStream, 'write'> | null): Progress | null {
  if (!terminal) return null;
  const startedAt = performance.now();
  let shownAt = startedAt + silentMs - everyMs;
  let isShown = false;
  return {
    show(file, packets) {
      const now = performance.now();
      if (now - shownAt < everyMs) return;
      shownAt = now;
      isShown = true;
      const rate = Math.round(packets / (now - startedAt));
      const share = file.progress === null ? '' : `${Math.floor(file.progress * 100)} %, `;
      terminal.write(
        `\r\x1b[Kreading: ${share}${packets.toLocaleString('en-US')} packets, ${rate} thousand per second`,
      );
    },
    clear() {
      if (isShown) terminal.write('\r\x1b[K');
    },
  };
}
