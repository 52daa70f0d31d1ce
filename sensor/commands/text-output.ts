/**
 * Text to standard output, in pieces: it waits for a slow reader instead of keeping what was not taken.
 *
 * `process.stdout` would queue everything in memory when the other end is slow, and loading it takes a tenth of the start.
 */
import { writeSync } from 'node:fs';

const pieceLength = 65_536;
const fullPipeWaitMs = 2;

export interface TextOutput {
  write(text: string): void;
  /** Text that is bytes already; they are taken before this returns. */
  writeBytes(bytes: Uint8Array): void;
  /** Hands over what is left. */
  end(): void;
}

/** The other end was closed: `| head` has seen enough. */
export class OutputClosedError extends Error {}

/** Output to a file descriptor. Throws `OutputClosedError` once its reader has gone. */
export function createTextOutput(descriptor: number): TextOutput {
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
    write(text) {
      parts.push(text);
      length += text.length;
      if (length >= pieceLength) flush();
    },
    writeBytes(bytes) {
      if (length > 0) flush();
      writeAll(bytes);
    },
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
