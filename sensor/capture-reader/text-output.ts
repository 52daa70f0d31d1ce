/**
 * Writes text to standard output in pieces, and waits for a slow reader instead of buffering.
 *
 * `process.stdout` would buffer everything in memory for a slow reader, and loading it takes a tenth of the start-up
 * time.
 */
import { writeSync } from 'node:fs';

const pieceLength = 65_536;
const fullPipeWaitMs = 2;

export type TextOutput = ReturnType<typeof createTextOutput>;

/** The reader closed the pipe, for example `| head`. */
export class OutputClosedError extends Error {}

/** Output to a file descriptor. Throws `OutputClosedError` after its reader closed it. */
export function createTextOutput(descriptor: number) {
  let parts: string[] = [];
  let length = 0;

  function writeAll(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at += writeSome(descriptor, bytes, at);
  }

  function flush(): void {
    const bytes = Buffer.from(parts.join(''));
    parts = [];
    length = 0;
    writeAll(bytes);
  }

  return {
    write(text: string) {
      parts.push(text);
      length += text.length;
      if (length >= pieceLength) flush();
    },
    /** Writes bytes; they are used before this returns. */
    writeBytes(bytes: Uint8Array) {
      if (length > 0) flush();
      writeAll(bytes);
    },
    /** Writes the rest. */
    end() {
      if (length > 0) flush();
    },
  };
}

function writeSome(descriptor: number, bytes: Uint8Array, at: number): number {
  try {
    return writeSync(descriptor, bytes, at);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EPIPE') throw new OutputClosedError('the output was closed');
    if (code !== 'EAGAIN') throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, fullPipeWaitMs);
    return 0;
  }
}
