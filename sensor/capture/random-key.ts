import { closeSync, openSync, readSync } from 'node:fs';

/**
 * A key that nobody outside can know. The kernel's random numbers are read as they are: Node.js has them in its `crypto`,
 * whose modules take longer to load than a small file takes to read.
 */
export function randomKey(): [number, number] {
  const words = new Int32Array(2);
  if (!readKernelRandom(words)) crypto.getRandomValues(words);
  return [words[0]!, words[1]!];
}

/** False where the system has no such file. */
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
