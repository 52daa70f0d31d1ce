/** A line on a terminal that says how far the reading of a long file has come; nothing where there is no terminal. */
import type { WriteStream } from 'node:tty';
import type { CaptureFile } from '#sensor/packet-source/capture-file.ts';

const everyMs = 200;
/** Shorter readings need no line. */
const silentMs = 700;

export interface Progress {
  show(file: CaptureFile, packets: number): void;
  clear(): void;
}

/** Makes the line of this terminal; null without one. */
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
        `\r\x1b[Kreading: ${share}${packets.toLocaleString('en-US')} packets, ${rate} thousand a second`,
      );
    },
    clear() {
      if (isShown) terminal.write('\r\x1b[K');
    },
  };
}
