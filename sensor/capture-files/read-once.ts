import { readSync } from 'node:fs';

const emptyWaitMs = 5;

/** Reads once; waits for data in an empty pipe. */
export function readOnce(descriptor: number, into: Uint8Array, at: number, length: number): number {
  for (;;) {
    try {
      return readSync(descriptor, into, at, length, null);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EOF') return 0;
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, emptyWaitMs);
    }
  }
}
