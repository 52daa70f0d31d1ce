/** A line on a terminal that says how far the reading of a long file has come; nothing where there is no terminal. */
import type { WriteStream } from 'node:tty';
import type { CaptureFile } from '#sensor/packet-source/capture-file.ts';

const everyMs = 200;
/** Whoever waits less than this needs no line. */
const silentMs = 700;

export interface Progress {
  show(file: CaptureFile, packets: number): void;
  clear(): void;
}

/** Makes the line of this terminal. */
export function createProgress(terminal: Pick<WriteStream, 'isTTY' | 'write'>): Progress {
  const startedAt = performance.now();
  let shownAt = startedAt + silentMs - everyMs;
  let isShown = false;
  return {
    show(file, packets) {
      const now = performance.now();
      if (!terminal.isTTY || now - shownAt < everyMs) return;
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
