import { closeSync, openSync, readSync } from 'node:fs';

/**
 * A random key from the kernel, unknown outside the process. Read directly, because loading Node's `crypto` takes
 * longer than reading a small capture file.
 */
export function randomKey(): [number, number] {
  const words = new Int32Array(2);
  if (!readKernelRandom(words)) crypto.getRandomValues(words);
  return [words[0]!, words[1]!];
}

/** False when the system has no such file. */
function readKernelRandom(words: Int32Array): boolean {
  let descriptor: number;
  try {
    descriptor = openSync('/dev/urandom', 'r');
  } catch {
    return false;
  }
  try {
    return readSync(descriptor, words) === words.byteLength;
  } finally {
    closeSync(descriptor);
  }
}
